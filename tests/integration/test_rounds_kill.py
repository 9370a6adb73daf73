"""`kill -9` of workers, and a broker that forgets everything, in the middle of rounds: nothing is lost or doubled."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from redis import Redis
from sqlalchemy import Engine, create_engine, select
from sqlalchemy.exc import OperationalError

from app.core.extensions import reading, writing
from app.jobs import states
from app.models import RoundRange, RoundRow
from app.rounds.job import ROUND
from tests.conftest import CHAOS_SEED, service
from tests.rounds import add_models, check, facts, haggler, make_round, row_of
from tests.services import emptied_redis, new_database, redis_of
from tests.shell import Shell
from tests.stack import PATIENCE, ROOT, Stack, alive, another_worker, put_to_sleep, running_parlor, wait_until, worker
from tests.stub_openai import Reply, StubServer
from tests.tables import database, settings_of

MATCHES = 300
ENV = {"ROUND_LEASE": "4", "UPKEEP_EVERY": "0.4", "WORKER_QUEUES": "batch"}
SLOW, QUICK = "slow", "quick"
FLASK = [sys.executable, "-m", "flask", "--app", "wsgi"]


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        server.script(SLOW, Reply(haggler, delay=0.05))
        server.script(QUICK, haggler)
        yield server


@pytest.fixture(scope="module", params=["embedded", pytest.param("services", marks=pytest.mark.long)])
def running(request: pytest.FixtureRequest, stub: StubServer) -> Iterator[Stack]:
    """Parlor on SQLite and its own broker, and on PostgreSQL and a Redis server."""
    env = dict(ENV)
    with ExitStack() as services:
        if request.param == "services":
            env["DATABASE_URL"] = services.enter_context(new_database(service("DATABASE_URL")))
            env["REDIS_URL"] = services.enter_context(emptied_redis(redis_of(service("REDIS_URL"), worker())))
        parlor = services.enter_context(running_parlor(**env))
        with database(parlor) as engine:
            add_models(engine, stub.url, SLOW, QUICK, in_flight=12)
        yield parlor


@pytest.fixture(scope="module")
def undisturbed() -> list[object]:
    """What the round comes to where nothing happens, on either database: played when it is asked for first."""
    return []


def queue_round(parlor: Stack, engine: Engine, model: str, matches: int = MATCHES) -> int:
    round_id = make_round(engine, model, "scripted", matches=matches, queued=True)
    ROUND.enqueue(broker_of(parlor), round_id, 3)
    return round_id


def broker_of(parlor: Stack) -> str:
    settings = settings_of(parlor)
    return parlor.env["REDIS_URL"] or settings.broker_url


def told_without_models(engine: Engine, round_id: int) -> list[object]:
    return [{**match, "seats": None} for _, match in sorted(facts(engine, round_id).items())]


def owners(engine: Engine, round_id: int) -> set[str]:
    """Who holds a part of the round."""
    with reading(engine) as session:
        held = select(RoundRange.lease_owner).where(RoundRange.round_id == round_id)
        return {owner for owner in session.scalars(held) if owner is not None}


def test_a_worker_that_is_asked_to_stop_gives_its_part_back_before_it_ends(running: Stack) -> None:
    with database(running) as engine:
        round_id = queue_round(running, engine, SLOW, 100)
        wait_until(lambda: row_of(engine, round_id).finished >= 5, "some matches that are over")
        asked, its = running.pid("batch"), owners(engine, round_id)
        assert its
        os.kill(asked, signal.SIGTERM)
        wait_until(lambda: not alive(asked), "the worker's end")
        assert not its & owners(engine, round_id)
        wait_until(lambda: row_of(engine, round_id).status == states.DONE, "the end of the round")
        check(engine, round_id, 100)


def test_a_round_outlives_its_workers_and_ends_as_if_nothing_had_happened(
    running: Stack, undisturbed: list[object]
) -> None:
    rng = random.Random(CHAOS_SEED)
    with database(running) as engine, another_worker(running, "batch") as second:
        round_id = sleep_beyond_its_lease(running, engine, second.pid)
        for kill in range(4):
            share = (kill + rng.random()) / 5  # at a random point of each fifth of the round
            wait_until(lambda share=share: so_far(engine, round_id) >= share, f"{share:.0%} of the matches")  # type: ignore[misc]
            if kill == 1:
                os.killpg(second.pid, signal.SIGKILL)
                second.wait(PATIENCE)
            elif kill == 3:
                with Redis.from_url(broker_of(running).replace("redis+socket", "unix")) as broker:
                    broker.flushdb()  # forgets every message
                running.kill("batch")
            else:
                running.kill("batch")
        wait_until(lambda: row_of(engine, round_id).status == states.DONE, "the end of the round")
        check(engine, round_id, MATCHES)
        if not undisturbed:
            other = queue_round(running, engine, QUICK)
            wait_until(lambda: row_of(engine, other).status == states.DONE, "the end of the other round")
            undisturbed += told_without_models(engine, other)
        assert told_without_models(engine, round_id) == undisturbed


def so_far(engine: Engine, round_id: int) -> float:
    """The share of a round's matches that are over; fails when it has stopped."""
    row = row_of(engine, round_id)
    assert row.status in (states.WAITING, states.RUNNING, states.DONE), f"{row.status}: {row.error}"
    return row.finished / row.matches


def sleep_beyond_its_lease(running: Stack, engine: Engine, pid: int) -> int:
    """Queue a round, stop the worker that begins it until the other has taken its parts, and let it go on."""
    other = running.pid("batch")
    put_to_sleep(engine, other)  # so that it is the one of `pid` who begins
    round_id = queue_round(running, engine, SLOW)
    wait_until(lambda: owners(engine, round_id), "a worker at the round")
    put_to_sleep(engine, pid)
    its = owners(engine, round_id)
    os.killpg(other, signal.SIGCONT)
    wait_until(lambda: not its & owners(engine, round_id), "the other worker at its parts")
    os.killpg(pid, signal.SIGCONT)
    return round_id


def test_rounds_whose_models_are_away_keep_no_worker_from_a_healthy_one(running: Stack) -> None:
    with database(running) as engine:
        add_models(engine, "http://127.0.0.1:9/v1", "nowhere")  # nothing listens there
        threads = settings_of(running).ROUND_THREADS
        away = [queue_round(running, engine, "nowhere", matches=8) for _ in range(threads)]
        wait_until(lambda: all(row_of(engine, number).started_at for number in away), "every thread at such a round")
        healthy = queue_round(running, engine, QUICK, matches=8)
        wait_until(lambda: row_of(engine, healthy).status == states.DONE, "the end of the healthy round", 120)
        wait_until(lambda: all(row_of(engine, number).error for number in away), "what the others wait for")
        for number in away:
            row = row_of(engine, number)
            assert (row.status in states.OPEN, row.aborted) == (True, 0)
            with writing(engine) as session:
                ROUND.cancel(session, number)


@pytest.mark.long
def test_a_command_that_was_killed_is_resumed_by_another(home: Path, stub: StubServer, shell: Shell) -> None:
    api = ("--model", SLOW, "--base-url", stub.url, "--key-env", "", "--option", "in_flight=3")
    add = ("model", "add-api", SLOW, *api)
    assert shell.flask(add, env=env_of(home)).exit_code == 0
    run = ["round", "run", "negotiation", "--models", SLOW, "--matches", "60", "--seed", "5", "--json"]
    first = subprocess.Popen([*FLASK, *run], cwd=ROOT, env=env_of(home), stdout=subprocess.PIPE)
    engine = database_of(home)
    wait_until(lambda: finished(engine) >= 5, "some matches that are over")
    first.kill()
    first.wait()
    assert finished(engine) < 60
    time.sleep(float(ENV["ROUND_LEASE"]))
    assert "interrupted" in shell.flask(("round", "list"), env=env_of(home)).stdout
    second = shell.flask(("round", "resume", 1, "--json"), env=env_of(home))
    assert second.exit_code == 0, second.stderr
    assert json.loads(second.stdout)["status"] == "done"
    check(engine, 1, 60)


def test_ctrl_c_leaves_a_round_that_can_be_resumed_and_says_how(home: Path, shell: Shell) -> None:
    run = ["round", "run", "negotiation", "--models", "scripted", "scripted", "--matches", "20000"]
    first = subprocess.Popen([*FLASK, *run], cwd=ROOT, env=env_of(home), stderr=subprocess.PIPE, text=True)
    engine = database_of(home)
    wait_until(lambda: finished(engine) >= 5 or first.poll() is not None, "some matches that are over")
    assert first.poll() is None, first.communicate()[1]
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=PATIENCE)
    assert first.returncode == 130
    assert said.strip().endswith("of 20000 matches of round 1 are over; `flask round resume 1` plays the rest.")
    assert "Round 1 is cancelled" in shell.flask(("round", "cancel", 1), env=env_of(home)).stdout


def test_ctrl_c_ends_a_round_in_the_middle_of_a_local_models_answers_as_any_other(home: Path, shell: Shell) -> None:
    folder = ROOT / "data" / "models" / "little-base"
    added = ("model", "add-local", "small", "--path", folder, "--prompt-style", "compact", "--game", "negotiation")
    assert shell.flask(added, env=env_of(home)).exit_code == 0
    run = ["round", "run", "negotiation", "--models", "small", "--matches", "2000"]
    first = subprocess.Popen([*FLASK, *run], cwd=ROOT, env=env_of(home), stderr=subprocess.PIPE, text=True)
    engine = database_of(home)
    wait_until(lambda: finished(engine) >= 1 or first.poll() is not None, "a match that is over")
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=PATIENCE)
    assert first.returncode == 130, said
    assert said.strip().endswith("of 2000 matches of round 1 are over; `flask round resume 1` plays the rest.")


def database_of(home: Path) -> Engine:
    return create_engine(f"sqlite:///{home / 'parlor.db'}")


def finished(engine: Engine) -> int:
    """How many matches of the only round are over; 0 while there is no round, and no table for it."""
    with suppress(OperationalError), reading(engine) as session:
        return session.scalar(select(RoundRow.finished)) or 0
    return 0


def env_of(home: Path) -> dict[str, str]:
    return {**os.environ, "PARLOR_HOME": str(home), "DATABASE_URL": "", "REDIS_URL": "", **ENV}
