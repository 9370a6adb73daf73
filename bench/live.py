"""How fast live play is: people at WebSockets against the scripted player, in Parlor as it really runs.

    python -m bench.live --clients 100 --seconds 20             # each plays on as soon as it is its turn
    python -m bench.live --clients 1000 --seconds 20 --every 5  # each moves once in 5 s
    python -m bench.live --clients 1000 --seconds 40 --every 5 --flood  # half of the time beside a socket that floods

Matches are made before the clock starts. Going from a match that is over to the next one, connection and all, is part
of what is timed. Afterwards every acknowledged move is looked up in the database. docs/results.md has the figures.
"""

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, cast

from bench import contenders, flood, hotspots, report
from bench.contenders import Contender
from bench.figures import percentiles, shares, verify
from bench.processes import ROOT, BenchError, Usage, allow_many_sockets, busy_seconds, together, usage, yardstick_ms
from bench.talk import MOVES_A_MATCH, SAY

MOST_MOVES = 6000  # client moves a second for which there are enough matches, unless --matches says otherwise


class Clients:
    """The player processes, from their start to their results."""

    def __init__(self, contender: Contender, options: argparse.Namespace) -> None:
        self._processes: list[subprocess.Popen[str]] = []
        self._contender = contender
        self._options = options

    def __enter__(self) -> "Clients":
        options, count = self._options, self._options.processes
        for number in range(count):
            process = subprocess.Popen(
                [sys.executable, "-m", "bench.clients"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
            )
            self._processes.append(process)
            task = {
                "url": self._contender.urls[number % len(self._contender.urls)],
                "game": options.game,
                "clients": len(range(number, options.clients, count)),
                "every": options.every,
                "seed": number,
                "matches": self._contender.matches[number::count],
            }
            self._say(process, task)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def wait_until_ready(self) -> None:
        """Wait until every player has reached its first match."""
        answers = self._hear()
        ready = sum(answer["ready"] for answer in answers)
        if ready != self._options.clients:
            errors = sum((Counter(answer["errors"]) for answer in answers), Counter[str]())
            raise BenchError(
                f"expected {self._options.clients} clients to connect to {self._contender.name}, got {ready};"
                f" {', '.join(errors) or 'no reason given'}"
            )

    def begin(self, play: float, since: float, until: float) -> None:
        """Tell the players when to begin, and what to measure."""
        for process in self._processes:
            self._say(process, {"play": play, "from": since, "until": until})

    def cpu(self) -> float:
        """The CPU seconds used by all of them so far."""
        return sum(usage(process.pid).cpu for process in self._processes)

    def results(self) -> list[dict[str, Any]]:
        """What they observed, once they have finished."""
        return self._hear()

    @staticmethod
    def _say(process: "subprocess.Popen[str]", what: dict[str, Any]) -> None:
        assert process.stdin
        process.stdin.write(json.dumps(what) + "\n")
        process.stdin.flush()

    def _hear(self) -> list[dict[str, Any]]:
        lines = [process.stdout.readline() for process in self._processes if process.stdout]
        if not all(lines):
            raise BenchError("expected an answer from the players, got none; their last words are above")
        return [json.loads(line) for line in lines]


class Flooder:
    """The process of the flooding socket, active in every second part of the measured time."""

    PARTS = 4  # alternately off and on, so that a machine that slows down slows both

    def __init__(self, kind: str, contender: Contender) -> None:
        self._kind = kind
        self._url = contender.urls[0]
        self._match, self._ticket = contender.matches.pop()  # the players leave enough over
        self._times: list[tuple[float, float]] = []

    def begin(self, since: float, until: float) -> None:
        """Start the process, telling it when to send."""
        length = (until - since) / self.PARTS
        self._times = [(since + part * length, since + (part + 1) * length) for part in range(1, self.PARTS, 2)]
        task = {"url": self._url, "match": self._match, "ticket": self._ticket, "kind": self._kind}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.flood"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        assert self._process.stdin
        self._process.stdin.write(json.dumps({**task, "times": self._times}) + "\n")
        self._process.stdin.flush()

    def result(self, results: list[dict[str, Any]]) -> dict[str, Any]:
        """The players' acknowledgement times without and beside it, and what it sent."""
        assert self._process.stdout
        with self._process:
            sent = self._process.stdout.readline()
        if not sent:
            raise BenchError("expected the flood to say what it sent, got nothing; its last words are above")
        acked = [(at, ms) for result in results for at, ms in zip(result["ack_at"], result["ack_ms"], strict=True)]
        undisturbed, disturbed = shares(acked, self._times)
        found = {"undisturbed": percentiles(undisturbed), "disturbed": percentiles(disturbed)}
        ratio = found["disturbed"]["p95"] / found["undisturbed"]["p95"]
        return {"kind": self._kind, **json.loads(sent), **found, "p95_ratio": ratio}


def measure(contender: Contender, options: argparse.Namespace, folded: Path | None = None) -> dict[str, Any]:
    """Play, and collect all results. `folded` is where the samples of a profile go."""
    flooder = Flooder(options.flood, contender) if options.flood else None
    with Clients(contender, options) as clients:
        clients.wait_until_ready()
        yardstick = [yardstick_ms()]
        since = time.monotonic() + 0.2 + options.warm_up
        until = since + options.seconds
        clients.begin(since - options.warm_up, since, until)
        if flooder:
            flooder.begin(since, until)
        time.sleep(since - time.monotonic())
        begun, *before = contender.rows_so_far(), together(contender.pids), clients.cpu(), busy_seconds()
        spy = hotspots.start(contender.pids[0], options.seconds, folded, gil=options.gil) if folded else None
        time.sleep(until - time.monotonic())
        ended, *after = contender.rows_so_far(), together(contender.pids), clients.cpu(), busy_seconds()
        if spy and spy.wait() != 0:
            raise BenchError(f"expected a profile from py-spy, got: {spy.stderr.read().decode() if spy.stderr else ''}")
        results = clients.results()
        yardstick.append(yardstick_ms())
    if not any(result["ack_ms"] for result in results):
        raise BenchError(f"expected moves, got none from {contender.name}")
    found = what_was_seen(results, contender, (begun, ended), options.seconds)
    web_before, web_after = cast(Usage, before[0]), cast(Usage, after[0])
    web, loop = web_after.cpu - web_before.cpu, web_after.main_thread - web_before.main_thread
    players, everything = cast(float, after[1]) - cast(float, before[1]), cast(float, after[2]) - cast(float, before[2])
    moves = found["moves_per_second"] * options.seconds
    if flooder:
        found["flood"] = flooder.result(results)
    return found | {
        "web_cpu_share": web / options.seconds,
        "web_cpu_ms_per_move": 1000 * web / moves,
        "web_main_thread_ms_per_move": 1000 * loop / moves,
        "client_cpu_share": players / options.seconds,
        "client_cpu_ms_per_move": 1000 * players / moves,
        "other_cpu_share": (everything - web - players) / options.seconds,
        "yardstick_ms": yardstick,
        "rss_mib": {"start": web_before.rss, "end": web_after.rss, "peak": web_after.peak},
    }


def what_was_seen(
    results: list[dict[str, Any]], contender: Contender, window: tuple[int, int], seconds: float
) -> dict[str, Any]:
    """The players' combined observations, compared with the log."""

    def all_of(name: str) -> list[Any]:
        return [each for result in results for each in result[name]]

    moves, log = all_of("moves"), contender.log()
    check = verify(
        [row for _, row in log],
        {(match, move_id) for match, move_id, _ in moves},
        {(match, move_id): ply for match, move_id, ply in moves if ply is not None},
    )
    return {
        "moves_per_second": len(all_of("ack_ms")) / seconds,
        "plies_per_second": sum(1 for number, row in log if row.is_move and window[0] < number <= window[1]) / seconds,
        "ack_ms": percentiles(all_of("ack_ms")),
        "reply_ms": percentiles(all_of("reply_ms")),
        "connections": len(all_of("connect_ms")),
        "connect_ms": percentiles(all_of("connect_ms")),
        "errors": dict(sum((Counter(result["errors"]) for result in results), Counter[str]())),
        "moves_checked": len(moves),
        **asdict(check),
    }


def run(options: argparse.Namespace, home: Path) -> dict[str, Any]:
    """Measure Parlor, then the baseline, in an empty folder."""
    found: dict[str, Any] = {"options": {name: value for name, value in vars(options).items() if name != "json"}}
    turns = MOVES_A_MATCH[options.game]
    folded = home / "folded" if options.profile is not None else None
    sides: list[tuple[str, Callable[[], AbstractContextManager[Contender]], Path | None]] = [
        (
            "parlor",
            lambda: contenders.parlor(
                home / "parlor",
                options.game,
                options.clients,
                options.matches,
                options.web,
                limits=options.flood is not None,
            ),
            folded,
        )
    ]
    for name, wanted in (("baseline", options.baseline), ("bare", options.bare)):
        if wanted:
            server = partial(contenders.reference, name, home / name, turns, options.clients, options.matches)
            sides.append((name, server, None))
    for name, opened, samples in sides:
        print(f"{name}: starting it and making {options.matches} matches …", file=sys.stderr, flush=True)
        with opened() as contender:
            print(f"{name}: playing for {options.warm_up + options.seconds} s …", file=sys.stderr, flush=True)
            found[name] = measure(contender, options, samples)
    speed = {name: found[name]["moves_per_second"] for name in report.SIDES if name in found}
    found["ratios"] = {name: speed["parlor"] / other for name, other in speed.items() if name != "parlor"}
    if folded:
        lines = folded.read_text(encoding="utf-8").splitlines()
        found["functions"] = [asdict(each) for each in hotspots.functions(lines)]
        found["packages"] = [asdict(each) for each in hotspots.packages(lines)]
        if options.profile:
            shutil.copy(folded, options.profile)
    return found


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line. Exits with one line if an option is invalid."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.live", description="Measures live play; see docs/results.md."
    )
    parser.add_argument("--clients", type=int, default=100, help="people who play at the same time (100)")
    parser.add_argument("--seconds", type=int, default=20, help="how long to measure (20)")
    parser.add_argument("--warm-up", type=int, default=2, help="seconds of play before that (2)")
    parser.add_argument("--every", type=float, default=0, help="seconds between two moves of a client; 0: no pause (0)")
    parser.add_argument("--game", choices=sorted(SAY), default="taboo", help="what is played (taboo)")
    parser.add_argument("--matches", type=int, help="matches to make beforehand (enough)")
    parser.add_argument("--processes", type=int, help="processes that the clients share (one for two cores)")
    parser.add_argument("--web", type=int, default=1, help="web processes of Parlor that share the matches (1)")
    parser.add_argument("--no-baseline", dest="baseline", action="store_false", help="measure Parlor alone")
    parser.add_argument(
        "--flood", nargs="?", const="sync", choices=flood.KINDS, metavar="KIND",
        help=f"have a socket send {', '.join(flood.KINDS)} (sync) as fast as it can, in every second quarter of the"
        " time; limits are as by default, so it needs --every; Parlor alone",
    )  # fmt: skip
    parser.add_argument("--bare", action="store_true", help="measure the bare stack too: no rules, no partner")
    parser.add_argument(
        "--profile", nargs="?", const="", metavar="FILE", help="sample Parlor's web process; FILE keeps the stacks"
    )
    parser.add_argument("--gil", action="store_true", help="profile only who holds the interpreter's lock")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    if min(options.clients, options.seconds, options.web) < 1 or min(options.warm_up, options.every) < 0:
        parser.error("expected at least 1 client and 1 second, and nothing negative")
    if options.flood and not options.every:
        parser.error("expected --every with --flood: players without a pause would meet the limits themselves")
    options.baseline = options.baseline and not options.flood
    rate = options.clients / options.every if options.every else MOST_MOVES
    played = rate * (options.seconds + options.warm_up) / MOVES_A_MATCH[options.game]
    options.matches = options.matches or 2 * options.clients + math.ceil(played)
    options.processes = max(options.web, options.processes or (os.cpu_count() or 1) // 2)
    return options


def main() -> int:
    """0: measured, and nothing was lost; 1: something was lost or did not start."""
    options = read_options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    home = Path(tempfile.mkdtemp(prefix="parlor-bench-"))
    try:
        allow_many_sockets(2 * options.clients + 500)
        found = run(options, home)
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(json.dumps(found) if options.json else report.table(found))
    return 0 if all(report.sound(found[name]) for name in report.SIDES if name in found) else 1


if __name__ == "__main__":
    sys.exit(main())
