"""Bots go through both shipped studies while web and worker processes are killed at random, and all is counted after.

`python -m tests.chaos.studies --bots 200` starts a Parlor of its own with SQLite and the embedded broker, or with
`--services` on a database of its own where DATABASE_URL says and the Redis of REDIS_URL, with two web processes. It
ends by itself; exit code 1: something was wrong.
"""

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Engine, select

from app.core.config import ROOT
from app.core.extensions import reading, writing
from app.models import Wave
from app.studies import waves
from app.studies.bots.copies import link_of, open_rehearsal
from app.studies.bots.notes import BotNotes
from app.studies.bots.sending import send_bots
from tests.chaos.aborted import aborted_by_cause, unexcused
from tests.chaos.aborted import table as aborted_table
from tests.chaos.storm import unhandled
from tests.chaos.study_audit import audit_wave, unsettled
from tests.chaos.study_killer import SecondWeb, StudyKiller
from tests.services import emptied_redis, new_database
from tests.stack import PATIENCE, Stack, new_home, wait_until
from tests.tables import database

STUDIES = ("two-models", "taboo-roles")
ENV = {"SMALL_MODELS": "true", "TURN_LEASE": "4", "UPKEEP_EVERY": "1", "GUEST_MATCHES_PER_MINUTE": "0"}


@dataclass(frozen=True)
class StudyResult:
    """What came of the bots of one study."""

    study: str
    bots: int
    matches: int
    moves: int
    endings: Mapping[str, int]
    paid: str
    assignments: int
    problems: Sequence[str]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.studies", description=__doc__)
    parser.add_argument("--bots", type=int, default=200, help="through each study")
    parser.add_argument("--at-once", type=int, default=40, help="bots under way, of both studies together")
    parser.add_argument("--seed", type=int, default=None, help="which processes are killed when, and what bots choose")
    parser.add_argument("--every", type=float, default=20, help="mean seconds between two kills")
    parser.add_argument("--services", action="store_true", help="PostgreSQL, Redis and two web processes")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
    options = parser.parse_args()
    seed = secrets.randbelow(10_000) if options.seed is None else options.seed
    home, env = new_home(), dict(ENV)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        if options.services:
            env["DATABASE_URL"] = stack.enter_context(new_database(os.environ["DATABASE_URL"]))
            env["REDIS_URL"] = stack.enter_context(emptied_redis(os.environ["REDIS_URL"]))
        parlor = Stack(home, env)
        stack.callback(parlor.stop)
        parlor.wait_until_ready()
        second = stack.enter_context(SecondWeb(parlor)) if options.services else None
        began = time.monotonic()
        results, killer = _run(parlor, second, options.bots, options.at_once, seed, options.every)
        seconds = round(time.monotonic() - began)
        with database(parlor) as engine:
            causes = aborted_by_cause(engine)
        matches = sum(each.matches for each in results)
        problems = [f"{each.study}: {line}" for each in results for line in each.problems]
        problems += [*unexcused(causes), *(f"log: {line}" for line in unhandled(parlor))]
        if problems:
            shutil.copytree(home / "logs", logs := new_home(), dirs_exist_ok=True)
            problems.append(f"the logs are in {logs}")
    if options.as_json:
        found = {"seed": seed, "seconds": seconds, "kills": killer.count, "results": [*map(asdict, results)]}
        found["aborted"] = dict(causes)
        print(json.dumps({**found, "problems": problems}))
    else:
        print(_table(results, killer.count, seed, seconds))
        print(aborted_table(matches, causes))
        for problem in problems:
            print(f"- {problem}")
    return 1 if problems else 0


def _run(
    parlor: Stack, second: SecondWeb | None, bots: int, at_once: int, seed: int, every: float
) -> tuple[list[StudyResult], StudyKiller]:
    servers = [parlor.url, *([second.url] if second else [])]
    with database(parlor) as engine:
        opened = {name: _open(parlor, engine, name, bots) for name in STUDIES}
        notes: dict[str, list[BotNotes]] = {name: [] for name in STUDIES}
        killer = StudyKiller(parlor, second, seed, every)
        killer.start()
        try:
            asyncio.run(_send(engine, servers, opened, notes, bots, at_once, seed))
        finally:
            killer.stop()
        wait_until(parlor.healthy, "a web process")
        wait_until(lambda: not unsettled(engine, [*opened.values()]), "everybody's pay", 2 * PATIENCE)
        results = []
        for name, wave_id in opened.items():
            with writing(engine) as session:
                waves.close(session, session.get_one(Wave, wave_id))
            found = audit_wave(parlor, engine, wave_id, sorted(notes[name], key=lambda each: each.number))
            results.append(StudyResult(name, bots, **found._asdict()))
    return results, killer


def _open(parlor: Stack, engine: Engine, name: str, bots: int) -> int:
    """Load an example as anybody does, and open a wave of a copy of it."""
    path = ROOT / "data" / "studies" / name / f"{name}.yaml"
    command = [sys.executable, "-m", "flask", "study", "load", str(path)]
    subprocess.run(command, cwd=ROOT, env=parlor.env, check=True, stdout=subprocess.DEVNULL)
    with writing(engine) as session:
        return open_rehearsal(session, name, bots, live=False).id


async def _send(
    engine: Engine,
    servers: Sequence[str],
    opened: Mapping[str, int],
    notes: Mapping[str, list[BotNotes]],
    bots: int,
    at_once: int,
    seed: int,
) -> None:
    """All bots of all studies, in turn to the servers."""
    each_at_once = max(1, at_once // (len(servers) * len(opened)))
    with reading(engine) as session:
        found = session.scalars(select(Wave).where(Wave.id.in_(opened.values())))
        links = {wave.id: link_of(session, wave) for wave in found}
    async with asyncio.TaskGroup() as group:
        for name, wave_id in opened.items():
            for place, server in enumerate(servers):
                numbers = range(place, bots, len(servers))
                keep = notes[name].append
                group.create_task(send_bots(engine, server, links[wave_id], numbers, seed, keep, at_once=each_at_once))


def _table(results: Sequence[StudyResult], kills: Counter[str], seed: int, seconds: int) -> str:
    """As Markdown, for docs/results.md."""
    lines = [f"Seed {seed}, {seconds} s, killed: {', '.join(f'{name} {n}' for name, n in sorted(kills.items()))}.", ""]
    lines += [
        "| study | bots | matches | moves | endings | paid | assignments | wrong |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in results:
        endings = ", ".join(f"{name} {count}" for name, count in sorted(each.endings.items()))
        lines.append(
            f"| `{each.study}` | {each.bots} | {each.matches} | {each.moves} | {endings} | {each.paid} |"
            f" {each.assignments} | {len(each.problems)} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
