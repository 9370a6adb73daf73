"""How fast a society is run: by scripted agents on this machine, and by a model behind an API beside the ideal.

    python -m bench.society                    # 10 by 10 agents, 10 iterations; then 32 calls in flight, 200 ms each
    python -m bench.society --in-flight 64 --profile

Both run as a worker runs them: every call and every step committed to SQLite in a fresh folder. The ideal of the second
is calls x latency / calls in flight. docs/results.md has the figures.
"""

import argparse
import json
import sys
import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select

from app.core.extensions import db, reading, writing
from app.jobs import states
from app.jobs.context import JobContext
from app.models import GenerationRow, SocietyInteraction
from app.registry import CHAT_USE, add_api_model
from app.society import lifecycle, store
from app.society.job import SOCIETY
from app.society.material import PriorMemories, QuestionList
from app.society.runner import run_society
from app.society.spec import SocietySpec
from bench.in_process import fresh_parlor, timed
from bench.processes import yardstick_ms
from bench.stub import running

MODEL = "stub"
_THINGS = ("vase", "book", "key", "letter", "bicycle", "lamp", "garden", "train", "party", "secret", "debt", "promise")
_DEEDS = ("lost", "broke", "borrowed", "forgot", "sold", "hid", "found", "kept", "gave away", "painted")
_PEOPLE = ("my friend's", "my sister's", "a stranger's", "my teacher's", "the neighbours'", "my own")
_SCENES = [(deed, whose, thing) for deed in _DEEDS for whose in _PEOPLE for thing in _THINGS]
QUESTIONS = [f"What should I do if I {deed} {whose} {thing}?" for deed, whose, thing in _SCENES]
PRIORS = [
    (f"Was it right that I {deed} {whose} {thing}?", f"Tell them about the {thing}, and be kind.")
    for deed, whose, thing in _SCENES
]


def measured(agents: str, observer: str, size: int, iterations: int, *, url: str = "", in_flight: int = 1,
            profile: bool = False) -> dict[str, Any]:  # fmt: skip
    """Run a society in a new folder: seconds, calls, and whether all of it is in the database.

    `url` is where the model MODEL is served, with `in_flight` calls at once; if empty, it is not registered.
    """
    with fresh_parlor() as settings:
        if url:
            _register(url, in_flight)
        number = _create(agents, observer, size, iterations)
        return _run(settings, number, profile)


def _register(url: str, in_flight: int) -> None:
    with writing() as session:
        options = {"model": MODEL, "base_url": url, "key_env": "", "in_flight": in_flight}
        row = add_api_model(session, MODEL, None, [], options)
        row.uses = sorted({*row.uses, CHAT_USE})


def _create(agents: str, observer: str, size: int, iterations: int) -> int:
    # With global interaction, so that all agents have equally many critics, whatever the size.
    world = {"size": size, "iterations": iterations, "setting": "half_half", "global_interaction": True, "seed": 1}
    spec = SocietySpec.read({"agents": {agents: 1.0}, "observers": [observer], "config": world})
    asked = QuestionList("the benchmark", QUESTIONS)
    priors = PriorMemories("the benchmark", {"good": PRIORS, "bad": PRIORS})
    with writing() as session:
        return lifecycle.create(session, spec, asked, priors, queued=False).id


def _run(settings: Any, number: int, profile: bool) -> dict[str, Any]:
    async def work() -> None:
        await run_society(JobContext(db.engine, settings, uuid.uuid4().hex), number)

    seconds, cpu = timed(work(), profile=profile)
    with reading() as session:
        row = SOCIETY.get(session, number)
        done = session.scalar(select(func.count()).where(SocietyInteraction.status == store.DONE)) or 0
        calls = session.scalar(select(func.count()).select_from(GenerationRow)) or 0
        wanted = row.config["iterations"] * row.config["size"] ** 2
        whole = row.status == states.DONE and row.calls == calls and done == row.interactions == wanted
    return {"seconds": seconds, "cpu_seconds": cpu, "interactions": done, "calls": calls, "whole": whole}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Both variants."""
    before = yardstick_ms()
    found: dict[str, Any] = {"size": options.size, "iterations": options.iterations, "latency": options.latency}
    found["scripted"] = measured(
        "scripted-agent", "scripted-observer", options.size, options.iterations, profile=options.profile
    )
    with running(options.latency, "rater") as url:
        asked = measured(
            MODEL, MODEL, options.size, options.api_iterations, url=url, in_flight=options.in_flight,
            profile=options.profile,
        )  # fmt: skip
    asked["of_ideal"] = asked["calls"] * options.latency / options.in_flight / asked["seconds"]
    return {**found, "in_flight": options.in_flight, "api": asked, "yardstick_ms": [before, yardstick_ms()]}


def table(found: dict[str, Any]) -> str:
    """All results, for a terminal."""
    scripted, asked, (before, after) = found["scripted"], found["api"], found["yardstick_ms"]
    whole = {True: "yes", False: "NO"}
    lines = [
        f"Societies of {found['size']} by {found['size']} agents",
        (
            f"scripted: {scripted['interactions']} interactions, {scripted['calls']} calls in"
            f" {scripted['seconds']:.1f} s, {scripted['cpu_seconds']:.1f} s of CPU; all committed:"
            f" {whole[scripted['whole']]}"
        ),
        (
            f"API, {found['in_flight']} in flight, {1000 * found['latency']:g} ms: {asked['calls']} calls in"
            f" {asked['seconds']:.1f} s, {asked['of_ideal']:.2f} of the ideal,"
            f" {1000 * asked['cpu_seconds'] / asked['calls']:.3f} ms of CPU a call;"
            f" all committed: {whole[asked['whole']]}"
        ),
        f"a fixed piece of Python before / after, ms: {before:.1f} / {after:.1f}",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """0: measured; 1: something was not committed."""
    parser = argparse.ArgumentParser(prog="python -m bench.society", description="Measures societies.")
    parser.add_argument("--size", type=int, default=10, help="agents on a side of the grid (10)")
    parser.add_argument("--iterations", type=int, default=10, help="of scripted agents (10)")
    parser.add_argument("--api-iterations", type=int, default=2, help="of the model behind an API (2)")
    parser.add_argument("--in-flight", type=int, default=32, help="calls of that model at once (32)")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that the stub takes (0.2)")
    parser.add_argument("--profile", action="store_true", help="say where the time goes, which makes all slower")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    found = measure(options)
    print(json.dumps(found) if options.json else table(found))
    return 0 if found["scripted"]["whole"] and found["api"]["whole"] else 1


if __name__ == "__main__":
    sys.exit(main())
