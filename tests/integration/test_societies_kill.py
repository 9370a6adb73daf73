"""`kill -9` of the worker in the middle of a society: whoever comes next repeats nothing and leaves nothing out."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine

from app.core.extensions import reading
from app.jobs import states
from app.society.job import SOCIETY
from tests.conftest import CHAOS_SEED
from tests.societies import add_chat_models, facts, make_society, opinion, row_of
from tests.stack import Stack, running_parlor, wait_until
from tests.stub_openai import Reply, StubServer
from tests.tables import database, settings_of

ENV = {"ROUND_LEASE": "2", "UPKEEP_EVERY": "0.4", "WORKER_QUEUES": "batch"}
SLOW, QUICK = "slow", "quick"
WORLD: dict[str, Any] = {"size": 3, "iterations": 3, "critics": 3}


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        server.script(SLOW, Reply(opinion, delay=0.05))
        server.script(QUICK, opinion)
        yield server


@pytest.fixture
def running(stub: StubServer) -> Iterator[Stack]:
    with running_parlor(**ENV) as parlor:
        with database(parlor) as engine:
            add_chat_models(engine, stub.url, SLOW, QUICK, in_flight=4)
        yield parlor


def begin(parlor: Stack, engine: Engine, model: str) -> int:
    number = make_society(engine, model, queued=True, **WORLD)
    SOCIETY.enqueue(settings_of(parlor).broker_url, number)
    return number


def owner(engine: Engine, number: int) -> str | None:
    with reading(engine) as session:
        return SOCIETY.get(session, number).lease_owner


def test_a_society_outlives_its_workers_and_comes_to_what_it_would_have_come_to(running: Stack) -> None:
    rng = random.Random(CHAOS_SEED)
    with database(running) as engine:
        undisturbed = begin(running, engine, QUICK)
        wait_until(lambda: row_of(engine, undisturbed).status == states.DONE, "the end of the undisturbed one")
        total = row_of(engine, undisturbed).calls
        number, owners = begin(running, engine, SLOW), set()
        for kill in range(3):
            share = (kill + rng.random()) / 4  # at a random point of each quarter but the last
            wait_until(lambda share=share: row_of(engine, number).calls > share * total, f"{share:.0%} of the calls")  # type: ignore[misc]
            wait_until(lambda: owner(engine, number) not in owners, "a worker of its own")
            owners.add(owner(engine, number))
            running.kill("batch")
        wait_until(lambda: row_of(engine, number).status == states.DONE, "the end of the society")
        told, wanted = facts(engine, number), facts(engine, undisturbed)
        assert len(told) == 27
        assert told == wanted
        for figure in ("iteration", "interactions", "failed", "ratings", "unread_ratings", "calls", "prompt_tokens"):
            assert getattr(row_of(engine, number), figure) == getattr(row_of(engine, undisturbed), figure), figure
