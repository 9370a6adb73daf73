"""Somebody else holds the database's write lock: pages answer, forms say that they come back, moves wait."""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import gevent
import pytest
from flask import Flask
from sqlalchemy import Engine, create_engine, func, select, text, update
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import Conflict, Invalid, NotFound, Unavailable
from app.core.extensions import reading, transact, writing
from app.datasets import build, register, store
from app.datasets import rounds as imported
from app.datasets.records import ImportedMatch
from app.datasets.spec import read_spec
from app.models import (
    DatasetRow,
    EventRow,
    LanguageModel,
    LoginLink,
    MatchRow,
    RoundRange,
    RoundRow,
    SeatRow,
    User,
)
from app.rounds.job import ROUND
from app.web import form_writes
from tests.datasets import cut, take_in
from tests.experimenter import signed_in
from tests.participant import Participant, request
from tests.rounds import make_round, play
from tests.stack import Stack
from tests.tables import database, moves_of, taboo
from workers.prepare import new_admin_link


@contextlib.contextmanager
def locked(engine: Engine) -> Iterator[None]:
    """Nobody else can write as long as the block lasts; on PostgreSQL, not into the tables of matches and people."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.execute(text("DELETE FROM lease"))
        else:
            connection.execute(text('LOCK TABLE "match", "user", login_link, language_model, round IN EXCLUSIVE MODE'))
        yield
        connection.rollback()


@pytest.fixture
def other(app: Flask, engine: Engine) -> Iterator[Engine]:
    """The database, over connections that the app knows nothing of."""
    own = create_engine(engine.url)
    yield own
    own.dispose()


FORMS = (
    ("/api/matches", {"json": {"game": "taboo"}}),
    ("/start/taboo", {}),
    ("/enter/LINK", {}),
    ("/account", {"data": {"new": "correct horse battery", "again": "correct horse battery"}}),
    ("/admin/models/1", {"data": {"action": "edit", "label": "Another"}}),
    ("/admin/models/new", {"data": {"name": "far", "model": "m", "games": "taboo"}}),
    ("/admin/rounds/new", {"data": {"game": "taboo", "players": "pair", "model_0": "scripted", "model_1": "scripted",
                                    "matches": "2", "words": "list", "order": "each", "rule": "strict"}}),
)  # fmt: skip


def test_whoever_sends_a_form_to_a_locked_database_is_told_when_to_come_back(
    app: Flask, other: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin, link = signed_in(app), new_admin_link(app).rpartition("/")[2]
    with locked(other), monkeypatch.context() as sooner:
        sooner.setattr(form_writes, "PATIENCE", 0.1)
        for path, sent in FORMS:
            answer = admin.post(path.replace("LINK", link), **sent)  # type: ignore[arg-type]
            assert (path, answer.status_code, answer.headers.get("Retry-After")) == (path, 503, "2")
            if path.startswith("/api/"):
                assert answer.json["error"]["code"] == "unavailable"  # type: ignore[index]
            else:
                assert "nothing was changed" in answer.text
            assert admin.get("/").status_code == admin.get("/admin/").status_code == 200
            assert admin.get("/healthz").text == "ok\n"
    with reading() as session:
        assert session.scalar(select(func.count()).select_from(MatchRow)) == 0
        assert session.scalar(select(func.count()).select_from(LoginLink).where(LoginLink.used_at.is_(None))) == 1
        assert session.scalar(select(User.password_hash)) is None
    assert admin.post(f"/enter/{link}").status_code == 303
    assert admin.post("/api/matches", json={"game": "taboo"}).status_code == 201


def test_the_event_loop_goes_on_while_a_form_waits(app: Flask, other: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form_writes, "PATIENCE", 1.0)
    ticks = []

    def tick() -> None:
        while True:
            ticks.append(1)
            gevent.sleep(0.01)

    ticking = gevent.spawn(tick)
    with locked(other), pytest.raises(Unavailable):
        form_writes.write(lambda session: session.execute(text("UPDATE language_model SET enabled = true")))
    ticking.kill()
    assert len(ticks) > 2


def test_what_was_given_up_is_not_done_later(app: Flask, other: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form_writes, "PATIENCE", 0.1)
    done: list[int] = []

    def tried(number: int) -> str:
        with app.app_context():
            try:
                form_writes.write(lambda session: _rename(session, number, done))
            except Unavailable:
                return "unavailable"
        return "done"

    with locked(other):
        waiting = [gevent.spawn(tried, number) for number in range(5)]
        gevent.joinall(waiting)
    assert [each.value for each in waiting] == ["unavailable"] * 5
    monkeypatch.setattr(form_writes, "PATIENCE", 10)
    assert tried(7) == "done"
    assert done[-1] == 7
    with reading() as session:
        assert session.scalar(select(LanguageModel.label).where(LanguageModel.id == 1)) == "Label 7"


def _rename(session: Session, number: int, done: list[int]) -> None:
    session.execute(update(LanguageModel).where(LanguageModel.id == 1).values(label=f"Label {number}"))
    done.append(number)


# ---- A running Parlor --------------------------------------------------------------


def test_moves_wait_for_a_locked_database_and_everybody_else_is_served(parlor: Stack) -> None:
    one, two = taboo(parlor, "attacker"), taboo(parlor, "attacker")
    with Participant(one) as first, Participant(two) as second, ThreadPoolExecutor(8) as pool:
        with database(parlor) as engine, locked(engine):
            moves = [pool.submit(first.ask, "move", {"move_id": "one", "ply": 0, "text": "It is sour."}, 90)]
            starts = [pool.submit(request, parlor.url, {"game": "taboo"}) for _ in range(4)]
            assert second.ask("sync") == {"ok": True, "ply": 0}
            assert second.ask("typing", {"on": True})["ok"]
            assert "Parlor" in parlor.get("/")
            assert parlor.healthy()
            assert {start.result()[0] for start in starts} == {503}
            moves.append(pool.submit(second.ask, "move", {"move_id": "two", "ply": 0, "text": "It is yellow."}, 90))
            assert "Parlor" in parlor.get("/")
            assert not any(move.done() for move in moves)
        assert [move.result() for move in moves] == [{"ok": True, "ply": 1}] * 2
    assert moves_of(parlor, one.match)[0] == "It is sour."
    assert moves_of(parlor, two.match)[0] == "It is yellow."
    assert request(parlor.url, {"game": "taboo"})[0] == 201


# ---- Our own transactions ----------------------------------------------------------


def played(engine: Engine, settings: Settings) -> int:
    number = make_round(engine, "scripted", matches=6)
    play(engine, settings, number)
    return number


def test_a_dataset_is_registered_in_short_transactions_and_seen_when_it_is_whole(
    engine: Engine, home: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(register, "_ROWS_AT_ONCE", 3)
    round_id = played(engine, settings)
    with reading(engine) as session:
        found = build.prepare(session, read_spec({"rounds": [round_id], "filter": "all"}))
        draft = store.write(home, found, build.training_rows(session, found))
    seen: list[int] = []

    def watched(work: Callable[[Session], object]) -> object:
        with reading(engine) as session:  # as another process sees it, which could write here, too
            seen.append(len(store.list_datasets(session)))
            match = session.scalar(select(DatasetRow.match_id).limit(1))
            assert match is None or not store.datasets_of_match(session, match)
        with writing(engine) as session:
            return work(session)

    number = register.save(watched, draft, "whole")  # type: ignore[arg-type]
    assert draft.rows > 3
    assert seen == [0] * (3 + -(-draft.rows // 3))
    with reading(engine) as session:
        assert store.find_dataset(session, "whole").id == number
        rows = select(func.count()).select_from(DatasetRow).where(DatasetRow.dataset_id == number)
        assert session.scalar(rows) == draft.rows


def test_what_is_left_of_a_registration_that_was_killed_is_removed(
    engine: Engine, home: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = cut(engine, home, "mine", rounds=[played(engine, settings)], filter="all")
    with reading(engine) as session:
        found = build.prepare(session, read_spec({"rounds": [1], "filter": "nonzero"}))
        draft = store.write(home, found, build.training_rows(session, found))
    left = register.add(transact(engine), draft, "mine")
    with reading(engine) as session, pytest.raises(NotFound):
        store.get_dataset(session, left)
    monkeypatch.setattr(register, "_FORGOTTEN", timedelta(0))
    again = register.save(transact(engine), draft, "mine")
    with reading(engine) as session:
        assert [(row.id, row.version) for row in store.list_datasets(session)] == [(again, 2), (whole.id, 1)]
        assert set(session.scalars(select(DatasetRow.dataset_id))) == {whole.id, again}


def lines_of(file: Path, number: int) -> imported.Import:
    """So many dialogues of people, to be imported."""
    agreed = "YOU: <selection> item0=0 item1=4 item2=0 <eos> reward=8 agree 1 4 4 1 1 2\n"
    file.write_text("".join(f"1 0 4 2 1 2 YOU: {n} hats for me <eos> THEM: deal <eos> {agreed}" for n in range(number)))
    return imported.dialogues(str(file))


def rows_in(engine: Engine, *tables: type) -> list[int]:
    with reading(engine) as session:
        return [session.scalar(select(func.count()).select_from(table)) or 0 for table in tables]


def test_games_are_imported_in_short_transactions(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imported, "AT_ONCE", 3)
    wanted = lines_of(tmp_path / "dialogues.txt", 8)
    seen: list[tuple[int, str]] = []

    def watched(work: Callable[[Session], object]) -> object:
        with writing(engine) as session:  # as another process, which can write between any two of them
            for row in session.scalars(select(RoundRow)):
                row.name = "renamed meanwhile"
                seen.append((row.finished, ROUND.state_of(session, row)))
        with writing(engine) as session:
            return work(session)

    number = imported.take_in(watched, wanted, wanted.source, 8, "person", 15)  # type: ignore[arg-type]
    assert seen == [(0, "running"), (3, "running"), (6, "running"), (8, "running")]
    with reading(engine) as session:
        row = ROUND.get(session, number)
        assert (row.name, row.status, row.matches, row.finished) == ("renamed meanwhile", "done", 8, 8)


def test_an_import_that_fails_or_is_cancelled_leaves_nothing(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imported, "AT_ONCE", 3)
    wanted = lines_of(tmp_path / "dialogues.txt", 8)

    def cancelled() -> Iterator[ImportedMatch]:
        for place, match in enumerate(wanted.source):
            if place == 4:
                with writing(engine) as session:
                    ROUND.cancel(session, session.scalars(select(RoundRow.id)).one())
            yield match

    def cut_off() -> Iterator[ImportedMatch]:
        yield from list(wanted.source)[:7]

    def interrupted() -> Iterator[ImportedMatch]:
        yield from list(wanted.source)[:7]
        raise KeyboardInterrupt

    for games, error, said in (
        (cancelled(), Conflict, "was cancelling meanwhile"),
        (cut_off(), Invalid, "expected 8 games, as when it was checked, got 7"),
        (interrupted(), KeyboardInterrupt, None),
    ):
        with pytest.raises(error, match=said):
            imported.take_in(transact(engine), wanted, games, 8, "person", 15)
        assert rows_in(engine, RoundRow, RoundRange, MatchRow, EventRow, SeatRow) == [0, 0, 0, 0, 0]


def test_what_a_killed_import_has_left_is_removed_by_the_next(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imported, "AT_ONCE", 3)
    wanted = lines_of(tmp_path / "dialogues.txt", 8)

    class Killed(BaseException):
        pass

    def killed(work: Callable[[Session], Any]) -> Any:
        if rows_in(engine, MatchRow) == [6]:
            raise Killed
        with writing(engine) as session:
            return work(session)

    with pytest.raises(Killed):
        imported.take_in(killed, wanted, wanted.source, 8, "person", 15)  # nor can it clean up
    with reading(engine) as session:
        left = session.scalars(select(RoundRow)).one()
        assert (left.finished, ROUND.state_of(session, left)) == (6, "running")
    whole = take_in(engine, wanted)
    assert rows_in(engine, RoundRow, MatchRow) == [2, 14]  # somebody may still be at the first
    with writing(engine) as session:
        session.execute(update(RoundRange).values(lease_until=datetime.now(UTC) - timedelta(seconds=1)))
    with reading(engine) as session:
        assert ROUND.state_of(session, ROUND.get(session, left.id)) == "interrupted"
    again = take_in(engine, wanted)
    with reading(engine) as session:
        assert set(session.scalars(select(RoundRow.id))) == {whole, again}
        assert session.scalars(select(MatchRow.round_id).distinct().order_by(MatchRow.round_id)).all() == [whole, again]
