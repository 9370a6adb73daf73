"""How long each kind of job holds SQLite's write lock, and how long forms and moves wait beside four busy jobs.

    python -m bench.write_locks                     200 forms beside a round, a society, a training and datasets
    python -m bench.write_locks --forms 60 --json

It starts a Parlor in a folder of its own and four commands that begin again whenever they are over. Meanwhile
experimenters send a form, guests begin matches, and one after the other plays a move, from four threads. It prints how
many were refused and how long they waited, and for each place in the code that wrote how long it held the lock. The
exit code is 1 if a form or a move was refused.
"""

import argparse
import contextlib
import http.cookiejar
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.figures import percentile
from bench.processes import ROOT, yardstick_ms
from tests.participant import Participant, start
from tests.stack import PATIENCE, Stack, new_home, wait_until

PROBE = ROOT / "bench" / "lock_probe"
THREADS = 4  # simultaneous people
PAUSE = 0.3  # maximum seconds between two actions of one of them
_ROUND = ("round", "run", "negotiation", "--models", "scripted", "scripted")
JOBS: dict[str, tuple[str, ...]] = {
    "round": (*_ROUND, "--matches", "3000"),
    "society": ("society", "run", "--agents", "scripted-agent", "--observers", "scripted-observer",
                "--config", "size=6", "iterations=30"),
    "training": ("training", "run", "tiny", "--dataset", "1", "--name", "NAME", "--config", "epochs=3", "width=32",
                 "heads=2", "log_every=1"),
    "dataset": ("dataset", "build", "--round", "1", "--filter", "all", "--style", "compact"),
}  # fmt: skip


@dataclass
class Waits:
    """People's actions: seconds until each was answered, and how many were refused, by kind."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, what: str, seconds: float, done: bool) -> None:
        with self.lock:
            self.seconds[what].append(seconds)
            self.refused[what] += not done


class Busy(threading.Thread):
    """Runs a command repeatedly until stopped."""

    def __init__(self, parlor: Stack, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.runs = 0
        self.failure = ""
        self._parlor = parlor
        self._stopped = threading.Event()
        self._process: subprocess.Popen[str] | None = None

    def run(self) -> None:
        while not self._stopped.is_set():
            words = [f"model-{self.runs}" if word == "NAME" else word for word in JOBS[self.name]]
            command = [sys.executable, "-m", "flask", *words]
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self._parlor.env,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
            said = self._process.communicate()[1]
            if self._process.returncode and not self._stopped.is_set():
                self.failure = " ".join(said.split())[-300:]
                return
            self.runs += 1

    def writes(self, notes: Path) -> bool:
        """Whether it has begun to work: it has written more than every start does, or has finished once."""
        path = notes / f"{self._process.pid if self._process else 0}.jsonl"
        return self.runs > 0 or (path.exists() and len(path.read_bytes().splitlines()) > 4)

    def stop(self) -> None:
        self._stopped.set()
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        self.join(60)
        if self._process is not None and self._process.poll() is None:
            self._process.kill()


class Experimenter:
    """A signed-in person who renames a model."""

    def __init__(self, url: str, link: str) -> None:
        self._url = url
        self._open = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())).open
        self._token = ""
        self._post(link, {})
        self._token = self._token_of("/admin/models/1")

    def rename(self, label: str) -> bool:
        """Whether the form was accepted."""
        return self._post("/admin/models/1", {"action": "edit", "label": label, "csrf_token": self._token}) == 200

    def _token_of(self, path: str) -> str:
        page = self._open(self._url + path, timeout=PATIENCE).read().decode()
        found = re.search(r'name="csrf_token" value="([^"]+)"', page)
        return found[1] if found else ""

    def _post(self, path: str, fields: dict[str, str]) -> int:
        token = self._token or self._token_of(path)
        body = urllib.parse.urlencode({"csrf_token": token, **fields}).encode()
        try:
            with self._open(self._url + path, data=body, timeout=PATIENCE) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.write_locks", description=__doc__)
    parser.add_argument("--forms", type=int, default=200, help="forms that experimenters send")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
    options = parser.parse_args()
    home = new_home()
    notes = home / "write-locks"
    notes.mkdir()
    env = {
        "WRITE_LOCKS": str(notes),
        "PYTHONPATH": os.pathsep.join([str(PROBE), str(ROOT)]),
        "SMALL_MODELS": "true",
        "GUEST_MATCHES_PER_MINUTE": "0",
        "OPEN_MATCHES": "0",
    }
    parlor = Stack(home, env)
    jobs: list[Busy] = []
    try:
        parlor.wait_until_ready()
        waits, jobs = measure(parlor, notes, options.forms)
        locks = list(read_notes(notes))
    finally:
        for each in jobs:
            each.stop()
        parlor.stop()
        shutil.rmtree(home, ignore_errors=True)
    failed = [f"{each.name}: {each.failure}" for each in jobs if each.failure]
    result: dict[str, Any] = {
        "yardstick_ms": round(yardstick_ms(), 1),
        "runs": {each.name: each.runs for each in jobs},
        "failed": failed,
        "people": people(waits),
        "places": places(locks),
    }
    print(json.dumps(result) if options.as_json else table(result))
    return 1 if failed or any(each["refused"] for each in result["people"]) else 0


def measure(parlor: Stack, notes: Path, forms: int) -> tuple[Waits, list[Busy]]:
    """Let people write beside the four jobs until `forms` forms have been sent."""
    flask(parlor, *_ROUND, "--matches", "1000", "--seed", "1")
    flask(parlor, "dataset", "build", "--round", "1", "--filter", "all", "--style", "compact")
    link = re.search(r"(/enter/\S+)", parlor.output())
    assert link is not None, parlor.output()
    experimenter = Experimenter(parlor.url, link[1])
    for path in notes.glob("*.jsonl"):
        path.unlink()
    jobs = [Busy(parlor, name) for name in JOBS]
    for each in jobs:
        each.start()
    wait_until(lambda: all(each.writes(notes) or each.failure for each in jobs), "jobs that write")
    waits, left = Waits(), iter(range(forms))
    threads = [threading.Thread(target=person, args=(parlor, experimenter, left, waits, n)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return waits, jobs


_taking = threading.Lock()


def person(parlor: Stack, experimenter: Experimenter, left: Iterator[int], waits: Waits, seed: int) -> None:
    """Send forms while any are left; in between, begin a match and make a move in it."""
    rng = random.Random(seed)
    while True:
        with _taking:
            number = next(left, None)
        if number is None:
            return
        began = time.monotonic()
        taken = experimenter.rename(f"Label {number}")
        waits.note("form", time.monotonic() - began, taken)
        if number % 2 == 0:
            began = time.monotonic()
            with Participant(start(parlor.url, "taboo", role="attacker")) as player:
                waits.note("guest's start", time.monotonic() - began, True)
                began = time.monotonic()
                answer = player.ask("move", {"move_id": "one", "ply": 0, "text": "It is sour."}, 90)
                waits.note("move", time.monotonic() - began, bool(answer["ok"]))
        time.sleep(rng.uniform(0, PAUSE))


def flask(parlor: Stack, *words: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "flask", *words], cwd=ROOT, env=parlor.env, check=True, stdout=subprocess.DEVNULL
    )


def read_notes(folder: Path) -> Iterator[dict[str, float | str]]:
    for path in folder.glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):  # a truncated line
                yield json.loads(line)


def people(waits: Waits) -> list[dict[str, float | str]]:
    found: list[dict[str, float | str]] = []
    for what, seconds in sorted(waits.seconds.items()):
        found.append({"what": what, "times": len(seconds), "refused": waits.refused[what], **spread(seconds, 1000)})
    return found


def places(locks: Sequence[dict[str, float | str]]) -> list[dict[str, float | str]]:
    """By place in the code: how often it wrote, and how long it held the lock; the longest first."""
    by_place: dict[str, list[dict[str, float | str]]] = defaultdict(list)
    for each in locks:
        by_place[str(each["place"])].append(each)
    found: list[dict[str, float | str]] = []
    for place, mine in by_place.items():
        longest = max(mine, key=lambda each: each["longest"])
        found.append(
            {
                "place": place,
                "times": len(mine),
                **spread([float(each["held"]) for each in mine], 1),
                "statement": f"{longest['statement']} ({float(longest['longest']):.0f} ms)",
            }
        )
    return sorted(found, key=lambda each: -float(each["max"]))


def spread(values: Sequence[float], scale: float) -> dict[str, float]:
    """Median, 95th percentile and maximum, in milliseconds."""
    ordered = sorted(values)
    return {
        "p50": round(scale * percentile(ordered, 0.5), 1),
        "p95": round(scale * percentile(ordered, 0.95), 1),
        "max": round(scale * ordered[-1], 1),
    }


def table(result: Mapping[str, Any]) -> str:
    lines = [f"Yardstick {result['yardstick_ms']} ms; runs {result['runs']}; failed {result['failed']}", ""]
    lines += ["| people | times | refused | waited, ms: p50 | p95 | max |", "|---|---|---|---|---|---|"]
    for row in result["people"]:
        lines.append(
            f"| {row['what']} | {row['times']} | {row['refused']} | {row['p50']} | {row['p95']} | {row['max']} |"
        )
    lines += [
        "",
        "| place that wrote | times | held, ms: p50 | p95 | max | longest statement |",
        "|---|---|---|---|---|---|",
    ]
    for row in result["places"]:
        lines.append(
            f"| `{row['place']}` | {row['times']} | {row['p50']} | {row['p95']} | {row['max']} | {row['statement']} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
