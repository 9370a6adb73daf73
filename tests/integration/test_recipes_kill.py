"""`kill -9` of the worker and of the terminal of a recipe in each of its steps: it ends as an undisturbed run does."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, func, select, update

from app.core.extensions import reading, writing
from app.jobs import states
from app.models import RecipeRun, RecipeStep, RoundRow
from tests.recipes import GAMES, KEYS, came_of, row_of
from tests.stack import ROOT, Stack, running_parlor, wait_until
from tests.tables import database

ENV = {"ROUND_LEASE": "1.5", "UPKEEP_EVERY": "0.3", "WORKER_QUEUES": "batch"}
# Of a game whose material is a list: to generate some takes each process a second.
RECIPE = (
    GAMES.replace("negotiation", "taboo")
    .replace(", figures: [score_mean, agreement_rate]", "")
    .replace("matches: 6}", "matches: 60}")  # so that no step is over at once
    .replace("matches: 12,", "matches: 1200,")
)


@pytest.fixture(scope="module")
def running() -> Iterator[Stack]:
    with running_parlor(**ENV) as parlor:
        (parlor.home / "games.yaml").write_text(RECIPE)
        yield parlor


def flask(parlor: Stack, *line: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "flask", "--app", "wsgi", "recipe", *line]
    return subprocess.Popen(command, cwd=ROOT, env=parlor.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def told(process: "subprocess.Popen[bytes]") -> Any:
    output, errors = process.communicate()
    assert process.returncode == 0, errors.decode()
    return json.loads(output)


def begun(engine: Engine, number: int) -> int:
    """How many steps have begun."""
    with reading(engine) as session:
        found = select(func.count()).select_from(RecipeStep).where(RecipeStep.run_id == number)
        return session.scalar(found) or 0


def status(engine: Engine, number: int) -> str:
    return row_of(engine, number).status


def check(engine: Engine, calm: int, killed: int) -> None:
    """That both came to the same, with each job once."""
    assert row_of(engine, killed).error is None
    found = came_of(engine, killed)
    assert tuple(found) == KEYS
    assert found == came_of(engine, calm)
    with reading(engine) as session:
        name = row_of(engine, killed).name
        rounds = session.scalars(select(RoundRow.name).where(RoundRow.name.startswith(f"{name}, "))).all()
    assert sorted(rounds) == sorted(f"{name}, {key}" for key in KEYS if key.startswith(("play", "measure")))


@pytest.fixture(scope="module")
def calm(running: Stack) -> int:
    """A run that nobody disturbs."""
    described = told(flask(running, "run", str(running.home / "games.yaml"), "--name", "calm", "--json"))
    assert (described["status"], described["done"], described["of"]) == (states.DONE, 7, 7)
    return int(described["recipe_id"])


def expire(engine: Engine, number: int) -> None:
    """Have the lease of whoever was killed end, as it does by itself after two minutes."""
    past = datetime.now(UTC) - timedelta(hours=1)
    with writing(engine) as session:
        session.execute(update(RecipeRun).where(RecipeRun.id == number).values(lease_until=past))


def test_a_worker_that_is_killed_in_every_step_changes_nothing(running: Stack, calm: int) -> None:
    line = ("run", str(running.home / "games.yaml"), "--name", "by-workers", "--queue", "--json")
    number = int(told(flask(running, *line))["recipe_id"])
    kills = 0
    with database(running) as engine:
        while status(engine, number) != states.DONE:
            before = begun(engine, number)
            wait_until(lambda before=before: next_step(engine, number, before), f"what follows {before} steps")  # type: ignore[misc]
            if status(engine, number) != states.DONE:
                running.kill("batch")
                expire(engine, number)
                kills += 1
        assert kills >= 3  # the second evaluation may be over as soon as it has begun
        check(engine, calm, number)


def next_step(engine: Engine, number: int, before: int) -> bool:
    return begun(engine, number) > before or status(engine, number) == states.DONE


@pytest.mark.long
def test_a_terminal_that_is_killed_in_every_step_changes_nothing(running: Stack, calm: int) -> None:
    with database(running) as engine:
        process = flask(running, "run", str(running.home / "games.yaml"), "--name", "by-hand")
        wait_until(lambda: by_hand(engine) > calm or process.poll() is not None, "the run")
        number, kills = by_hand(engine), 0
        while status(engine, number) != states.DONE:
            before = begun(engine, number)
            wait_until(lambda before=before: next_step(engine, number, before), f"what follows {before} steps")  # type: ignore[misc]
            if status(engine, number) != states.DONE:
                process.kill()
                process.communicate()
                kills += 1
                expire(engine, number)
                process = flask(running, "resume", str(number))
        process.communicate()
        assert kills >= 4
        check(engine, calm, number)


def by_hand(engine: Engine) -> int:
    with reading(engine) as session:
        return session.scalar(select(RecipeRun.id).where(RecipeRun.name == "by-hand")) or 0
