"""What breaks for a while costs nobody a match: the database, a model's server, a worker, the worker's own player."""

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, create_engine, event, select, text, update
from sqlalchemy.engine import make_url

from app.core.config import ROOT
from app.core.extensions import reading, writing
from app.jobs import states
from app.jobs.leases import MOST_DEATHS
from app.matches import live, selfplay, turns
from app.matches.events import Aborted
from app.matches.stored import StoredMatch, StoredSeat, load
from app.matches.sweep import take_forgotten_turns
from app.matches.turns import WorkerContext, play_turn
from app.model_calls.request_runner import make_request
from app.models import GenerationRow, MatchRow, ModelRequest
from app.players import make_player
from app.registry import add_api_model
from tests.forwarder import Forwarder
from tests.model_requests import ask_for_test
from tests.rounds import add_models, make_round, play, row_of
from tests.stack import PATIENCE, free_port, wait_until
from tests.stub_openai import StubServer, failing, negotiator

SPLIT = {"counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]], "first": 1}
Away = Callable[[], contextlib.AbstractContextManager[None]]


@pytest.fixture
def against(engine: Engine, stub: StubServer) -> Callable[..., StoredMatch]:
    """Starts a match in which a model of the stub, which is asked once a call, is to move."""

    def start(model: str) -> StoredMatch:
        spec = {"base_url": stub.url, "model": model, "key_env": "", "retries": 0, "timeout": PATIENCE}
        with writing(engine) as session:
            row = add_api_model(session, model, None, ["negotiation"], spec)
            seats = StoredSeat("person"), StoredSeat.of(row)
            return live.create(session, "negotiation", SPLIT, seats, seed=3, source="live", instant=True)

    return start


@pytest.fixture
def far_database(app: Flask, engine: Engine) -> Iterator[tuple[Engine, Away]]:
    """The database as a worker has it, and a block in which it takes nothing from that worker."""
    if engine.dialect.name == "sqlite":
        worker = create_engine(engine.url)
        impatient = lambda connection, _record: connection.execute("PRAGMA busy_timeout=20")  # noqa: E731
        event.listen(worker, "connect", impatient)

        @contextlib.contextmanager
        def away() -> Iterator[None]:
            with engine.connect() as connection:
                connection.execute(text("DELETE FROM lease"))  # takes the lock
                yield
                connection.rollback()

        yield worker, away
        worker.dispose()
        return
    url = make_url(app.config["SETTINGS"].database_url)
    way = Forwarder(free_port(), url.host or "127.0.0.1", url.port or 5432)
    worker = create_engine(url.set(host="127.0.0.1", port=way.port))

    @contextlib.contextmanager
    def cut_off() -> Iterator[None]:
        way.close()
        yield
        way.listen()

    yield worker, cut_off
    worker.dispose()
    way.close()


def record_of(engine: Engine, match_id: str) -> StoredMatch:
    with reading(engine) as session:
        return load(session, match_id)


def said(engine: Engine, record: StoredMatch) -> list[str]:
    return [type(logged.event).__name__ for logged in record_of(engine, record.id).log]


# ---- Live matches ------------------------------------------------------------------


def test_a_match_goes_on_when_the_database_was_away_while_the_model_was_thinking(
    engine: Engine,
    far_database: tuple[Engine, Away],
    desk: Callable[..., WorkerContext],
    against: Callable[..., StoredMatch],
    stub: StubServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    worker_database, away = far_database
    monkeypatch.setattr("app.core.extensions._AWAY", 0.05)
    thought = threading.Event()
    stub.script("thinker", lambda _: "[message] I am back." if thought.wait(PATIENCE) else "")
    record = against("thinker")
    context = desk("thinking", TURN_LEASE=0.6, TURN_SECONDS=PATIENCE)
    own = WorkerContext(worker_database, context.settings, "thinking", loop=context.loop, notify=context.notify)
    renewed: list[str] = []
    renew = turns.turn_leases.renew
    monkeypatch.setattr(turns.turn_leases, "renew", lambda *args: (renew(*args), renewed.append("renewed")))
    worker = threading.Thread(target=play_turn, args=(own, record.id))
    worker.start()
    wait_until(lambda: stub.requests, "a call")
    with away():
        before = len(renewed)
        wait_until(lambda: len(renewed) >= before + 2, "a lease that could not be renewed twice")
        thought.set()
    worker.join(PATIENCE)
    assert said(engine, record) == ["Started", "Event"]
    assert len(stub.requests) == 1


def test_a_model_whose_server_is_away_for_a_while_is_asked_again_and_the_match_goes_on(
    engine: Engine,
    desk: Callable[..., WorkerContext],
    against: Callable[..., StoredMatch],
    stub: StubServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "LONGEST_PAUSE", 0.02)
    stub.script("moody", *failing(6, "[message] Here I am again."))
    record = against("moody")
    assert play_turn(desk(TURN_SECONDS=PATIENCE), record.id)
    assert said(engine, record) == ["Started", "Event"]
    with reading(engine) as session:
        rows = session.execute(text("SELECT error IS NULL FROM generation ORDER BY id")).scalars().all()
    assert [bool(answered) for answered in rows] == [False] * 6 + [True]


class Breaking:
    """A player that breaks some times in a way that nobody has foreseen, and is whole then."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self, *args: Any) -> Any:
        player, breaking = make_player(*args), self

        class Broken:
            at_once = 4

            async def reply(self, *args: Any) -> Any:
                breaking.fail()
                return await player.reply(*args)  # type: ignore[union-attr]

            async def complete(self, *args: Any, **more: Any) -> Any:
                breaking.fail()
                return await player.complete(*args, **more)  # type: ignore[union-attr]

        return Broken()

    def fail(self) -> None:
        if self.left:
            self.left -= 1
            raise OSError(24, "Too many open files")


def test_a_player_that_breaks_for_a_moment_is_asked_again(
    engine: Engine,
    desk: Callable[..., WorkerContext],
    against: Callable[..., StoredMatch],
    stub: StubServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "LONGEST_PAUSE", 0.02)
    monkeypatch.setattr(turns, "make_player", Breaking(4))
    stub.script("polite", "[message] Good day.")
    record = against("polite")
    assert play_turn(desk(TURN_SECONDS=PATIENCE), record.id)
    assert said(engine, record) == ["Started", "Event"]


def test_a_player_that_stays_broken_ends_the_match_as_our_fault(
    engine: Engine,
    desk: Callable[..., WorkerContext],
    against: Callable[..., StoredMatch],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "LONGEST_PAUSE", 0.02)
    monkeypatch.setattr(turns, "make_player", Breaking(1_000_000))
    record = against("stub-negotiator")
    play_turn(desk(TURN_SECONDS=0.2), record.id)
    stopped = record_of(engine, record.id).match.stopped
    assert isinstance(stopped, Aborted)
    assert (stopped.fault, "Too many open files" in stopped.detail) == ("us", True)


def died(engine: Engine, record: StoredMatch, times: int, seconds_ago: float) -> None:
    """So many workers have died at the turn, and the lease of the last ran out so long ago."""
    ended = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    row = {"lease_owner": "dead", "lease_until": ended, "lease_count": times, "moved_at": ended, "enqueued_at": None}
    with writing(engine) as session:
        session.execute(update(MatchRow).where(MatchRow.id == record.id).values(**row))


def test_a_turn_at_which_workers_were_killed_is_played_all_the_same_a_little_later_each_time(
    engine: Engine, desk: Callable[..., WorkerContext], against: Callable[..., StoredMatch]
) -> None:
    record = against("stub-negotiator")
    for times, too_soon in ((4, 1), (7, 20), (MOST_DEATHS - 1, 40)):
        died(engine, record, times, too_soon)
        with writing(engine) as session:
            assert list(take_forgotten_turns(session)) == []
        assert not play_turn(desk(), record.id)
        assert said(engine, record) == ["Started"]
    died(engine, record, MOST_DEATHS - 1, 90)
    with writing(engine) as session:
        assert list(take_forgotten_turns(session)) == [record.id]
    assert play_turn(desk(), record.id)
    assert said(engine, record) == ["Started", "Event"]


_ASKING = """
import asyncio, sys
from app.matches.turns import answer_within

async def ask():
    print("asked", flush=True)
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    line = await reader.readline()
    for _ in range(20):  # as an answer comes through several layers
        await asyncio.sleep(0)
    return line.decode()

print(asyncio.run(answer_within(3.0, ask)), flush=True)
"""


def test_an_answer_that_came_while_the_whole_worker_stood_still_is_taken() -> None:
    command = [sys.executable, "-c", _ASKING]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stdout.readline() == "asked\n"
        worker.send_signal(signal.SIGSTOP)
        worker.stdin.write("Here I am.\n")
        worker.stdin.flush()
        time.sleep(3.5)  # beyond all that the model may take
        worker.send_signal(signal.SIGCONT)
        assert worker.stdout.readline() == "Here I am.\n"


# ---- Rounds, test calls ------------------------------------------------------------


@pytest.mark.parametrize(("breaks", "aborted"), [(4, 0), (5, 1)])
def test_a_match_of_a_round_outlives_a_player_that_breaks_for_a_moment(
    engine: Engine,
    settings: Any,
    stub: StubServer,
    monkeypatch: pytest.MonkeyPatch,
    breaks: int,
    aborted: int,
) -> None:
    monkeypatch.setattr(selfplay.OutageTimer, "FIRST", 0.01)
    monkeypatch.setattr(selfplay.OutageTimer, "LONGEST", 0.02)
    monkeypatch.setattr(selfplay, "make_player", Breaking(breaks))
    add_models(engine, stub.url, "stub-negotiator")
    round_id = make_round(engine, "stub-negotiator", matches=1)
    play(engine, settings, round_id)
    row = row_of(engine, round_id)
    assert (row.status, row.finished, row.aborted) == (states.DONE, 1, aborted)


def test_a_test_call_waits_for_a_database_that_is_away_and_is_made_once(
    engine: Engine,
    far_database: tuple[Engine, Away],
    desk: Callable[..., WorkerContext],
    stub: StubServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker_database, away = far_database
    monkeypatch.setattr("app.core.extensions._AWAY", 0.05)
    answered = threading.Event()
    stub.script("thinker", lambda messages: negotiator(messages) if answered.wait(PATIENCE) else "")
    spec = {"base_url": stub.url, "model": "thinker", "key_env": "", "retries": 0, "timeout": PATIENCE}
    with writing(engine) as session:
        model = add_api_model(session, "thinker", None, ["negotiation"], spec).id
    number = ask_for_test(engine, model)
    context = desk("asking", TURN_SECONDS=PATIENCE)
    own = WorkerContext(worker_database, context.settings, "asking", loop=context.loop, notify=context.notify)
    worker = threading.Thread(target=make_request, args=(own, number))
    worker.start()
    wait_until(lambda: stub.requests, "a call")
    log: list[str] = []
    monkeypatch.setattr("app.core.extensions.log.warning", lambda what, **_: log.append(what), raising=False)
    with away():
        answered.set()
        wait_until(lambda: log, "a result that waits")
    worker.join(PATIENCE)
    with reading(engine) as session:
        request = session.get_one(ModelRequest, number)
        assert (request.status, request.result["ok"]) == (states.DONE, True)  # type: ignore[index]
        stored = session.scalars(select(GenerationRow).where(GenerationRow.request_id == number)).all()
    sent = [json.dumps(each.body, sort_keys=True) for each in stub.requests]
    assert len(stored) == len(sent) == len(set(sent))  # of the calls of a test none was sent twice
