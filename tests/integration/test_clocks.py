"""Clocks over real databases and processes: a match ends once, not before its time, whoever notices first."""

import os
import signal
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from flask import Flask
from sqlalchemy import Engine, delete, select, update

from app.core.config import Settings
from app.core.extensions import reading, writing
from app.matches import clocks, live, outages
from app.matches.clocks import Clocks
from app.matches.lobby import GuestMatchRequest, start_guest_match
from app.matches.stored import StoredMatch, StoredSeat, load
from app.matches.sweep import overdue_matches
from app.models import EventRow, Lease, MatchRow, Outage, RoundRange, RoundRow
from tests.chaos.killer import SERVING, pid_of
from tests.participant import Participant
from tests.rounds import make_round
from tests.stack import TURNS_ALONE, Stack, wait_until
from tests.tables import database, taboo
from workers.upkeep import look_after

CONFIG = {"counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]], "first": 0}
HELLO = "[message] hi"


def begin(engine: Engine, clocks: Clocks) -> StoredMatch:
    """A negotiation of two people with clocks."""
    with writing(engine) as session:
        people = StoredSeat("person"), StoredSeat("person")
        return live.create(session, "negotiation", CONFIG, people, seed=1, source="live", instant=True, clocks=clocks)


def let_pass(engine: Engine, record: StoredMatch, seconds: float) -> None:
    """Make all of a match so much older."""
    past = timedelta(seconds=seconds)
    with writing(engine) as session:
        for event in session.scalars(select(EventRow).where(EventRow.match_id == record.id)):
            event.at -= past
        deadline = session.scalars(select(MatchRow.deadline).where(MatchRow.id == record.id)).one()
        session.execute(update(MatchRow).where(MatchRow.id == record.id).values(deadline=deadline and deadline - past))


def kinds(engine: Engine, record: StoredMatch) -> list[str]:
    with reading(engine) as session:
        rows = select(EventRow.kind).where(EventRow.match_id == record.id).order_by(EventRow.seq)
        return list(session.scalars(rows))


def row_of(engine: Engine, record: StoredMatch) -> MatchRow:
    with reading(engine) as session:
        return session.get_one(MatchRow, record.id)


def say(engine: Engine, record: StoredMatch, seat: int, text: str | None) -> live.MoveReply:
    return live.commit(engine, live.MoveSubmission(record.id, seat, text), instant=True).answer


def test_every_move_sets_the_deadline_of_the_next(engine: Engine) -> None:
    record = begin(engine, Clocks(turn=60, match=90))
    start = record.log[0].at
    assert row_of(engine, record).deadline == start + timedelta(seconds=60)
    let_pass(engine, record, 50)
    say(engine, record, 0, HELLO)
    row = row_of(engine, record)
    assert row.deadline == start + timedelta(seconds=90 - 50)  # the match's comes first now
    say(engine, record, 1, None)
    assert row_of(engine, record).deadline is None


def test_a_match_is_ended_after_its_deadline_and_only_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "LATE", timedelta(hours=1))  # a second may be gone before anybody looks
    record = begin(engine, Clocks(turn=3600))
    assert not live.end_overdue(engine, record.id)
    let_pass(engine, record, 3601)  # late, but what was sent in time may still be on its way
    assert not live.end_overdue(engine, record.id)
    let_pass(engine, record, 3600)
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(live.end_overdue(engine, record.id))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False] * 5 + [True]
    assert kinds(engine, record) == ["started", "timeout", "ended"]
    row = row_of(engine, record)
    assert (row.status, row.reason, row.winner, row.deadline) == ("over", "timeout", None, None)
    assert (row.utility_0, row.utility_1) == (0, 0)


def test_a_move_or_a_resignation_after_the_deadline_ends_the_match_and_is_not_played(engine: Engine) -> None:
    for text in (HELLO, None):
        record = begin(engine, Clocks(turn=60))
        let_pass(engine, record, 62)
        answer = say(engine, record, 0, text)
        assert (answer.code, answer.message) == ("over", "The time ran out before this arrived.")
        assert kinds(engine, record) == ["started", "timeout", "ended"]


def test_a_move_in_the_last_moment_counts(engine: Engine) -> None:
    record = begin(engine, Clocks(turn=60))
    let_pass(engine, record, 60.2)
    assert say(engine, record, 0, HELLO).ok
    assert not live.end_overdue(engine, record.id)
    assert kinds(engine, record) == ["started", "message"]


def test_moves_and_the_clock_at_the_same_moment_end_it_once(engine: Engine) -> None:
    for _ in range(5):
        record = begin(engine, Clocks(turn=60))
        let_pass(engine, record, 60.99)
        works: list[Callable[[], Any]] = [
            lambda record=record: live.end_overdue(engine, record.id),
            lambda record=record: say(engine, record, 0, HELLO),
            lambda record=record: say(engine, record, 0, None),
        ]
        threads = [threading.Thread(target=work) for work in works for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert kinds(engine, record).count("ended") <= 1
        with reading(engine) as session:
            assert [logged.seq for logged in load(session, record.id).log] == list(range(len(kinds(engine, record))))


def test_upkeep_ends_what_is_overdue_and_tells_the_web(app: Flask, engine: Engine, broker: str) -> None:
    settings: Settings = app.config["SETTINGS"].model_copy(update={"REDIS_URL": broker})
    late, early = begin(engine, Clocks(turn=60)), begin(engine, Clocks(turn=600))
    let_pass(engine, late, 70)
    let_pass(engine, early, 70)
    told: list[tuple[str, bool]] = []
    for _ in range(2):
        look_after(engine, settings, "me", lambda match, typing: told.append((match, typing)))
    assert told == [(late.id, False)]
    assert row_of(engine, late).reason == "timeout"
    assert row_of(engine, early).status == "playing"
    with reading(engine) as session:
        assert overdue_matches(session) == []


def test_a_match_that_everybody_left_open_is_ended_as_abandoned(app: Flask, engine: Engine, broker: str) -> None:
    settings: Settings = app.config["SETTINGS"].model_copy(update={"REDIS_URL": broker, "OPEN_MATCH_HOURS": 1})
    left, fresh, back = (begin(engine, Clocks()) for _ in range(3))
    for record in (left, back):
        let_pass(engine, record, 3700)
        with writing(engine) as session:
            old = datetime.now(UTC) - timedelta(seconds=3700)
            session.execute(update(MatchRow).where(MatchRow.id == record.id).values(moved_at=old))
    assert say(engine, back, 0, HELLO).ok
    told: list[tuple[str, bool]] = []
    look_after(engine, settings.model_copy(update={"OPEN_MATCH_HOURS": 0}), "me", lambda *match: told.append(match))
    assert told == []
    for _ in range(2):
        look_after(engine, settings, "me", lambda *match: told.append(match))
    assert told == [(left.id, False)]
    assert kinds(engine, left) == ["started", "timeout", "ended"]
    row = row_of(engine, left)
    assert (row.status, row.reason, row.winner, row.utility_0, row.utility_1) == ("over", "abandoned", None, 0, 0)
    assert [row_of(engine, each).status for each in (fresh, back)] == ["playing", "playing"]


def test_upkeep_ends_leases_of_a_clock_that_has_jumped(app: Flask, engine: Engine, broker: str) -> None:
    settings: Settings = app.config["SETTINGS"].model_copy(update={"REDIS_URL": broker})
    now = datetime.now(UTC)
    far, near = now + timedelta(hours=1), now + timedelta(seconds=15)
    queued, other = (make_round(engine, "scripted", matches=8, queued=True) for _ in range(2))
    with writing(engine) as session:
        held = update(RoundRange).values(lease_owner="dead")
        session.execute(held.where(RoundRange.round_id == queued).values(lease_until=far))
        session.execute(held.where(RoundRange.round_id == other).values(lease_until=near))
    look_after(engine, settings, "me", lambda *_: None)
    with reading(engine) as session:
        until = dict(
            session.execute(select(RoundRange.round_id, RoundRange.lease_until).order_by(RoundRange.start)).all()
        )
        rung = dict(session.execute(select(RoundRow.id, RoundRow.enqueued_at)).all())
    assert until[queued] < datetime.now(UTC)
    assert until[other] == near
    assert rung[queued] is not None
    assert rung[other] is None


def test_guests_have_the_clocks_of_the_settings(app: Flask, engine: Engine) -> None:
    settings = app.config["SETTINGS"].model_copy(update={"TURN_CLOCK": 30, "MATCH_CLOCK": 300})
    with writing(engine) as session:
        record = start_guest_match(session, settings, GuestMatchRequest("taboo", {}, role="attacker"))
    assert record.match.clocks == Clocks(turn=30, match=300)
    assert row_of(engine, record).deadline == record.log[0].at + timedelta(seconds=30)


def age_heartbeats(engine: Engine, seconds: float) -> None:
    """Have the web process been silent for so long."""
    with writing(engine) as session:
        session.get_one(Lease, f"{outages.WEB}one").until -= timedelta(seconds=seconds)


def serve(engine: Engine) -> list[str]:
    """A sign of life; the matches whose clocks it moved."""
    with writing(engine) as session:
        return [*outages.write_heartbeat(session, "one", "its first life")]


def test_a_clock_does_not_run_out_while_the_server_is_away(engine: Engine) -> None:
    untimed, record = begin(engine, Clocks()), begin(engine, Clocks(turn=60, match=90))
    assert serve(engine) == serve(engine) == []
    let_pass(engine, record, 70)
    age_heartbeats(engine, 70)
    assert not live.end_overdue(engine, record.id)
    assert serve(engine) == [record.id]
    assert kinds(engine, record) == ["started", "away"]
    assert kinds(engine, untimed) == ["started"]
    back = datetime.now(UTC)
    with reading(engine) as session:
        deadline = load(session, record.id).deadline
    assert deadline is not None
    assert (deadline.clock, row_of(engine, record).deadline) == ("turn", deadline.at)
    assert back + timedelta(seconds=50) < deadline.at <= back + timedelta(seconds=60)
    let_pass(engine, record, 62)  # the server is there, the person is not
    assert serve(engine) == []
    assert live.end_overdue(engine, record.id)
    assert kinds(engine, record) == ["started", "away", "timeout", "ended"]


def test_the_clock_of_a_match_is_longer_by_an_outage(engine: Engine) -> None:
    record = begin(engine, Clocks(match=90))
    serve(engine)
    let_pass(engine, record, 80)
    age_heartbeats(engine, 80)
    serve(engine)
    assert say(engine, record, 0, HELLO).ok
    left = row_of(engine, record).deadline - datetime.now(UTC)  # type: ignore[operator]
    assert timedelta(seconds=70) < left <= timedelta(seconds=91)


def test_a_move_that_comes_before_the_first_heartbeat_counts(engine: Engine) -> None:
    record = begin(engine, Clocks(turn=60))
    serve(engine)
    let_pass(engine, record, 70)
    age_heartbeats(engine, 70)
    assert say(engine, record, 0, HELLO).ok
    assert kinds(engine, record) == ["started", "message"]


def test_of_two_web_processes_each_holds_the_clocks_up_until_it_is_back_or_gone(engine: Engine) -> None:
    record = begin(engine, Clocks(turn=60))
    let_pass(engine, record, 70)
    serve(engine)
    with writing(engine) as session:
        outages.write_heartbeat(session, "other", "its first life", datetime.now(UTC) - timedelta(seconds=30))
    assert not live.end_overdue(engine, record.id)  # whoever is at the other one cannot move
    with writing(engine) as session:
        assert [*outages.write_heartbeat(session, "other", "its second life")] == [record.id]
        session.get_one(Lease, f"{outages.WEB}other").until -= timedelta(minutes=6)
    let_pass(engine, record, 70)
    serve(engine)
    assert live.end_overdue(engine, record.id)


def test_times_never_run_backwards_in_a_log_whose_lock_was_waited_for(engine: Engine) -> None:
    record = begin(engine, Clocks(turn=60))
    serve(engine)
    age_heartbeats(engine, 30)
    back = datetime.now(UTC)
    assert say(engine, record, 0, HELLO).ok
    with writing(engine) as session:
        assert [*outages.write_heartbeat(session, "one", "its first life", back)] == [record.id]
    with reading(engine) as session:
        times = [logged.at for logged in load(session, record.id).log]
    assert kinds(engine, record) == ["started", "message", "away"]
    assert times == sorted(times)


def test_a_match_was_not_left_open_while_the_server_was_away(app: Flask, engine: Engine, broker: str) -> None:
    settings: Settings = app.config["SETTINGS"].model_copy(update={"REDIS_URL": broker, "OPEN_MATCH_HOURS": 1})
    serve(engine)
    record = begin(engine, Clocks())
    let_pass(engine, record, 3700)
    with writing(engine) as session:
        session.execute(update(MatchRow).values(moved_at=record.log[0].at - timedelta(seconds=3700)))
    age_heartbeats(engine, 600)
    serve(engine)
    look_after(engine, settings, "me", lambda *_: None)
    assert row_of(engine, record).status == "playing"
    with writing(engine) as session:
        session.execute(delete(Outage))
    look_after(engine, settings, "me", lambda *_: None)
    assert row_of(engine, record).reason == "abandoned"


@pytest.mark.long
def test_who_is_to_move_has_time_again_after_an_outage_and_runs_out_of_it_by_being_silent(
    stack: Callable[..., Stack],
) -> None:
    env = {"TURN_CLOCK": "15", "UPKEEP_EVERY": "0.5", "READING_WORDS_PER_MINUTE": "0", **TURNS_ALONE}
    parlor = stack(env)
    table = taboo(parlor, "attacker")
    with Participant(table) as person:
        assert person.move("It is yellow and it grows.")["ok"]
        person.wait_for_turn()
        deadline = datetime.fromisoformat(person.view["clock"]["deadline"])
        assert person.view["clock"]["of"] == "turn"
        serving = parlor.pid("web"), pid_of(parlor, SERVING)
        os.kill(parlor.process.pid, signal.SIGSTOP)  # nobody starts another
        try:
            for pid in serving:
                os.kill(cast(int, pid), signal.SIGKILL)
            wait_until(lambda: datetime.now(UTC) > deadline + timedelta(seconds=3), "a deadline that has passed")
        finally:
            os.kill(parlor.process.pid, signal.SIGCONT)
        person.wait(lambda: person.connections == 2, "the line to be back")
        person.wait(lambda: person.over or datetime.fromisoformat(person.view["clock"]["deadline"]) > deadline, "time")
        assert person.move("It is sweet.")["ok"]
        person.wait(lambda: person.over, "the end")
        assert (person.view["outcome"]["reason"], person.view["clock"]) == ("timeout", None)
    with database(parlor) as engine, engine.connect() as connection:
        found = select(EventRow.kind, EventRow.seat).where(EventRow.match_id == table.match).order_by(EventRow.seq)
        rows = [tuple(row) for row in connection.execute(found)]
    assert ("away", None) in rows
    assert rows[-2:] == [("timeout", 0), ("ended", None)]


def test_outages_that_overlap_are_counted_once(engine: Engine) -> None:
    now = datetime.now(UTC)
    with writing(engine) as session:
        for began, ended in ((90, 60), (80, 50), (75, 70), (20, 10)):
            minutes = (timedelta(minutes=each) for each in (began, ended))
            session.add(Outage(**dict(zip(("began", "ended"), (now - each for each in minutes), strict=True))))
    with reading(engine) as session:
        assert outages.time_away(session, now - timedelta(minutes=85), now) == timedelta(minutes=35 + 10)
