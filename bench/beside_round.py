"""How long a person waits for the first answer of a local model while a round of 500 matches plays with the same model.

    python -m bench.beside_round                   60 first answers without and with the round, each way
    python -m bench.beside_round --answers 20 --json

Twice the same, on Parlors of their own: with one process that holds local models for all workers of the machine, as
`make run` starts it, where a person's turn comes first; and, as the baseline, with a copy in each worker. One person
after the other begins a match of Adversarial Taboo with the shipped model, which defends, says something, and leaves
after the first answer. Beside the round, and before it.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from app.core.config import Settings
from bench.figures import percentiles
from bench.processes import ROOT, Server, yardstick_ms
from bench.talk import CONFIG, small_talk
from tests.participant import Participant, start
from tests.stack import Stack, new_home
from workers import broker

MODEL, LABEL = "tiny", "House partner 2"
SIDES = {"one process for all workers": True, "a copy in each worker": False}
_TURNS = ["-A", "workers.celery_app", "worker", "-Q", "turns", "-P", "threads", "-c", "32", "--loglevel", "warning"]


def measure(one_process: bool, answers: int, matches: int) -> dict[str, Any]:
    """Seconds until first answers, alone and beside a round, and how many of its matches were played."""
    home = new_home()
    try:
        with _parlor(home, one_process) as (parlor, flask):
            first_answers(parlor.url, 3)
            idle = first_answers(parlor.url, answers)
            line = (
                "round",
                "run",
                "taboo",
                "--models",
                MODEL,
                MODEL,
                "--matches",
                str(matches),
                "--seed",
                "1",
                "--queue",
            )
            flask(*line)
            while not (before := _played(flask)):
                time.sleep(0.5)
            busy = first_answers(parlor.url, answers)
            return {"idle": idle, "busy": busy, "matches": _played(flask) - before, "of": matches}
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def _parlor(home: Path, one_process: bool) -> Iterator[tuple[Stack, Callable[..., str]]]:
    """A web process with the workers of turns and of rounds, and a function that runs commands there."""
    program = broker.server_program()
    assert program is not None
    socket = home / "redis.sock"
    own = {
        "SMALL_MODELS": "true",
        "REDIS_URL": f"unix://{socket}",
        "WORKER_QUEUES": "none",
        "MODELS_PROCESS": str(one_process).lower(),
        "GUEST_MATCHES_PER_MINUTE": "0",
        "OPEN_MATCHES": "0",
    }
    with contextlib.ExitStack() as running:
        with (home / "redis.log").open("wb") as log:
            redis = subprocess.Popen(broker.command(program, socket, home), stdout=log, stderr=log)
        running.callback(redis.wait)
        running.callback(redis.terminate)
        parlor = Stack(home, own)
        running.callback(parlor.close)
        parlor.wait_until_ready()
        processes = [("turns", "celery", _TURNS), ("batch", "workers.polling", ["batch", "4"])]
        if one_process:
            processes.insert(0, ("models", "workers.models", []))
        for name, module, arguments in processes:
            server = running.enter_context(Server(name, module, arguments, parlor.env, home / f"{name}.out"))
            if name == "batch":  # yields to people's processes, as under the supervisor
                os.setpriority(os.PRIO_PROCESS, server.process.pid, Settings.model_fields["WORK_NICENESS"].default)

        def flask(*line: str) -> str:
            command = [sys.executable, "-m", "flask", *line]
            done = subprocess.run(command, cwd=ROOT, env=parlor.env, capture_output=True, check=True)
            return done.stdout.decode()

        yield parlor, flask


def first_answers(url: str, number: int) -> list[float]:
    """Seconds from a person's first message to the model's answer, for one person after another."""
    chance, found = random.Random(1), []
    for _ in range(number):
        table = start(url, "taboo", config=CONFIG["taboo"], role="attacker", opponent=LABEL)
        with Participant(table) as person:
            person.wait_for_turn()
            began = time.perf_counter()
            person.move(small_talk(chance))
            person.wait_for_turn()
            found.append(time.perf_counter() - began)
            person.ask("resign")
    return found


def _played(flask: Callable[..., str]) -> int:
    """How many matches of the round are over."""
    found: int = json.loads(flask("round", "show", "1", "--json"))["done"]
    return found


def table(found: dict[str, Any]) -> str:
    """Both variants, for a terminal."""
    lines = [f"{'first answer, ms':70} {'p50':>7} {'p95':>7} {'max':>7} {'p95, ratio':>11}"]
    for name, side in found["sides"].items():
        spread = {when: percentiles(1000 * seconds for seconds in side[when]) for when in ("idle", "busy")}
        for when, title in (
            ("idle", "nobody else"),
            ("busy", f"beside a round, {side['matches']} of {side['of']} matches"),
        ):
            ratio = f"{spread[when]['p95'] / spread['idle']['p95']:.2f}"
            figures = " ".join(f"{spread[when][each]:>7.0f}" for each in ("p50", "p95", "max"))
            lines.append(f"{name + ': ' + title:70} {figures} {ratio:>11}")
    before, after = found["yardstick_ms"]
    return "\n".join([*lines, f"a fixed piece of Python before / after, ms: {before:.1f} / {after:.1f}"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.beside_round", description="Waiting for a local model.")
    parser.add_argument("--answers", type=int, default=60, help="first answers without and with the round (60)")
    parser.add_argument("--matches", type=int, default=500, help="of the round (500)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    before = yardstick_ms()
    sides = {name: measure(one, options.answers, options.matches) for name, one in SIDES.items()}
    found = {"sides": sides, "yardstick_ms": [before, yardstick_ms()]}
    print(json.dumps(found) if options.json else table(found))


if __name__ == "__main__":
    main()
