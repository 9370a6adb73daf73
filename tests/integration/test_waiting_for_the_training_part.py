"""What needs a local model before the training part is there says so and goes on by itself; nobody else waits."""

import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine, select

from app import training_part
from app.core.config import Settings
from app.core.extensions import reading, writing
from app.jobs import states
from app.matches import live, selfplay, turns
from app.matches.events import Aborted
from app.matches.stored import StoredMatch, StoredSeat, load
from app.matches.sweep import turn_is_free
from app.matches.turns import WorkerContext, play_turn
from app.models import MatchRow
from app.registry import CHAT_USE, get_model
from app.training_part import Lacking
from tests import societies
from tests.checkpoints import register, word_model
from tests.experimenter import signed_in
from tests.rounds import WORDS, add_models, make_round, play, row_of
from tests.shell import Finished
from tests.stack import PATIENCE, wait_until
from tests.stub_openai import StubServer

INSTALLING = Lacking(step="torch, 190.0 MB", percent=40, pid=os.getpid())
WAITS = "is being installed (torch, 190.0 MB, 40 %); wait until it is done"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the test's own says how far the installation is; matches and jobs look again soon."""
    monkeypatch.setattr(training_part, "STATE", tmp_path / "training.json")
    monkeypatch.setattr(turns, "REST", 0.05)
    monkeypatch.setattr(selfplay.OutageTimer, "FIRST", 0.01)
    monkeypatch.setattr(selfplay.OutageTimer, "LONGEST", 0.02)


@pytest.fixture
def local(engine: Engine, tmp_path: Path, state: None) -> str:
    """A local model that nobody has loaded, whose libraries are still to come."""
    register(engine, "small", tmp_path / "small", word_model(tmp_path / "small"), temperature=0)
    training_part.record_missing(INSTALLING)
    return "small"


def against(engine: Engine, model: str) -> StoredMatch:
    """A match in which a model has the first move."""
    with writing(engine) as session:
        seats = StoredSeat.of(get_model(session, model)), StoredSeat("person")
        return live.create(session, "taboo", {"word": "lemon"}, seats, seed=1, source="live", instant=False)


def record_of(engine: Engine, record: StoredMatch) -> StoredMatch:
    with reading(engine) as session:
        return load(session, record.id)


def test_a_turn_is_given_back_and_played_when_the_model_can_be_loaded(
    engine: Engine, desk: Callable[..., WorkerContext], local: str
) -> None:
    record = against(engine, local)
    for _ in range(2):  # as often as it is taken up again: the worker is free at once, and nothing was tried
        assert not play_turn(desk(), record.id)
        assert (record.id, True) not in desk.told  # type: ignore[attr-defined]
        wait_until(lambda: is_free(engine, record), "the end of the turn's rest")
    assert [type(logged.event).__name__ for logged in record_of(engine, record).log] == ["Started"]
    training_part.record_missing(None)
    assert play_turn(desk(), record.id)
    assert record_of(engine, record).match.ply == 1


def is_free(engine: Engine, record: StoredMatch) -> bool:
    with reading(engine) as session:
        free = select(MatchRow.id).where(MatchRow.id == record.id, turn_is_free(datetime.now(UTC)))
        return session.scalar(free) is not None


@pytest.mark.parametrize(
    ("lacking", "reason"),
    [
        (Lacking(error="no space left"), "its installation failed (no space left)"),
        (Lacking(is_off=True), "PARLOR_TRAINING is off"),
    ],
    ids=["failed", "off"],
)
def test_a_match_ends_with_the_reason_where_the_model_cannot_be_waited_for(
    engine: Engine, desk: Callable[..., WorkerContext], local: str, lacking: Lacking, reason: str
) -> None:
    record = against(engine, local)
    training_part.record_missing(lacking)
    assert play_turn(desk(), record.id)
    stopped = record_of(engine, record).match.stopped
    assert isinstance(stopped, Aborted)
    assert stopped.fault == "us"
    assert reason in stopped.detail


def test_other_turns_are_played_meanwhile_by_the_same_worker(
    engine: Engine, desk: Callable[..., WorkerContext], local: str, stub: StubServer
) -> None:
    add_models(engine, stub.url, "stub-negotiator")
    waiting, other = against(engine, local), against(engine, "stub-negotiator")
    assert [play_turn(desk(), record.id) for record in (waiting, other)] == [False, True]
    assert record_of(engine, other).match.ply == 1


def test_a_round_says_on_its_page_and_in_the_terminal_what_it_waits_for_and_goes_on(
    app: Flask, engine: Engine, flask: Callable[..., Finished], local: str
) -> None:
    with writing(engine) as session:
        get_model(session, local).usable_in_rounds = True
    number = make_round(engine, local, game="taboo", matches=2, material=WORDS, queued=True)
    settings: Settings = app.config["SETTINGS"].model_copy(update={"ROUND_PATIENCE": 0.05})
    playing = threading.Thread(target=play, args=(engine, settings, number))
    playing.start()
    try:
        wait_until(lambda: WAITS in (row_of(engine, number).error or ""), "what the round waits for")
        assert "It waits:</strong>" in (page := signed_in(app).get(f"/admin/rounds/{number}").text)
        assert WAITS in page
        assert WAITS in flask("round", "show", number).stdout
    finally:
        training_part.record_missing(None)
        playing.join(PATIENCE)
    row = row_of(engine, number)
    assert (row.status, row.finished, row.aborted, row.error) == (states.DONE, 2, 0, None)


def test_a_society_says_on_its_page_and_in_the_terminal_what_it_waits_for_and_goes_on(
    app: Flask, engine: Engine, flask: Callable[..., Finished], local: str
) -> None:
    with writing(engine) as session:
        row = get_model(session, local)
        row.uses = [*row.uses, CHAT_USE]
    number = societies.make_society(engine, local, queued=True)
    settings: Settings = app.config["SETTINGS"].model_copy(update={"ROUND_PATIENCE": 0.05})
    running = threading.Thread(target=societies.run, args=(engine, settings, number))
    running.start()
    try:
        wait_until(lambda: WAITS in (societies.row_of(engine, number).error or ""), "what the society waits for")
        assert "It waits:</strong>" in (page := signed_in(app).get(f"/admin/societies/{number}").text)
        assert WAITS in page
        assert WAITS in flask("society", "show", number).stdout
    finally:
        training_part.record_missing(None)
        running.join(PATIENCE)
    society = societies.row_of(engine, number)
    assert (society.status, society.error) == (states.DONE, None)
