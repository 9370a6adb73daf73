"""What happens to people in the same second: each has one ending and one pay, and arms differ by one at most."""

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from app.core.errors import TooMany
from app.core.extensions import reading, transact_with_retry, writing
from app.matches import live, outages
from app.matches.stored import load
from app.models import Arm, Enrolment, EventRow, Lease, MatchRow, Payment, StudyEvent, StudyVersion, Wave
from app.studies import matches
from app.studies.answers import take
from app.studies.assignment import assign, replay
from app.studies.cost import most_a_place
from app.studies.payments import record_owed
from app.studies.places import committed
from app.studies.previews import Preview, enter_preview, preview_walks
from app.studies.progress import end, find_progress
from app.studies.store import design_of
from app.studies.withdrawal import stop
from tests.enrolments import enrol, load_example, open_wave
from tests.stack import PATIENCE
from tests.study_matches import go_to
from tests.waves import assigned, join, new_wave

LATE = 300.0  # seconds, more than a turn of two-models may take
Act = Callable[[Engine, int, str], None]


def run_out(engine: Engine, enrolment_id: int, match_id: str) -> None:
    """What upkeep does with a clock that has run out."""
    if live.end_overdue(engine, match_id):
        transact_with_retry(engine, lambda session: matches.end_after_silence(session, match_id), PATIENCE)


def restart(engine: Engine, enrolment_id: int, match_id: str) -> None:
    """The first sign of life of a web process."""
    transact_with_retry(engine, lambda session: outages.write_heartbeat(session, "one", "its second life"), PATIENCE)


def withdraw(engine: Engine, enrolment_id: int, match_id: str) -> None:
    """The person stops on their private link."""
    transact_with_retry(
        engine, lambda session: stop(session, find_progress(session, enrolment_id, lock=True)), PATIENCE
    )


ACTS: Sequence[Act] = (run_out, restart, withdraw)


def a_turn_that_ran_out(engine: Engine, folder: Path, *, served: bool) -> tuple[int, str]:
    """The ids of a person and of the match whose clock has run out at that person; the server was there or not."""
    with writing(engine) as session:
        version = load_example(session, folder)
        progress = enrol(session, open_wave(session, version), "P1", version)
        record = matches.start(session, progress, go_to(progress, "match 1"))
        outages.write_heartbeat(session, "one", "its first life")
        enrolment_id = progress.enrolment.id
    past = timedelta(seconds=LATE)
    with writing(engine) as session:
        for event in session.scalars(select(EventRow).where(EventRow.match_id == record.id)):
            event.at -= past
        row = session.get_one(MatchRow, record.id)
        assert row.deadline is not None
        row.deadline -= past
        if not served:
            session.get_one(Lease, f"{outages.WEB}one").until -= past
    return enrolment_id, record.id


def at_once(works: Sequence[Callable[[], object]]) -> None:
    """Do all of it in threads that begin together."""
    ready = threading.Barrier(len(works))

    def begin(work: Callable[[], object]) -> None:
        ready.wait(PATIENCE)
        work()

    threads = [threading.Thread(target=begin, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)


def check_ended_once(engine: Engine, enrolment_id: int, match_id: str, *endings: str) -> None:
    with reading(engine) as session:
        enrolment = session.get_one(Enrolment, enrolment_id)
        assert enrolment.ending in endings
        logged = session.scalars(
            select(StudyEvent.body).where(StudyEvent.kind == "ending").order_by(StudyEvent.id)
        ).all()
        assert [body["ending"] for body in logged] == [enrolment.ending]
        assert sorted(session.scalars(select(Payment.key))) == ["base", "bonus"]
        record = load(session, match_id)
        assert [each.seq for each in record.log] == list(range(len(record.log)))
        assert record.match.over
        # Who withdraws after the time ran out, and before anybody has noticed, leaves a match that is out of time.
        reason = session.get_one(MatchRow, match_id).reason
        assert reason == "timeout" or (reason, enrolment.ending) == ("resigned", "withdrawn")


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("served", [True, False])
def test_a_time_out_a_restart_and_a_withdrawal_end_a_person_once_in_any_order(
    app: Flask, engine: Engine, tmp_path: Path, order: tuple[int, ...], served: bool
) -> None:
    known = a_turn_that_ran_out(engine, tmp_path, served=served)
    for number in (*order, *order):  # each of them twice, as by two tabs and two rounds of upkeep
        ACTS[number](engine, *known)
    check_ended_once(engine, *known, "withdrawn")  # after the clock, the person is asked, and may still withdraw


@pytest.mark.parametrize("served", [True, False])
def test_a_time_out_a_restart_and_a_withdrawal_at_the_same_moment_end_a_person_once(
    app: Flask, engine: Engine, tmp_path: Path, served: bool
) -> None:
    known = a_turn_that_ran_out(engine, tmp_path, served=served)
    at_once([lambda act=act: act(engine, *known) for act in (*ACTS, *ACTS)])
    check_ended_once(engine, *known, "withdrawn")


def test_a_press_in_time_and_the_end_of_the_grace_at_the_same_moment_decide_once(
    app: Flask, engine: Engine, tmp_path: Path
) -> None:
    enrolment_id, match_id = a_turn_that_ran_out(engine, tmp_path, served=True)
    run_out(engine, enrolment_id, match_id)
    with writing(engine) as session:
        session.get_one(MatchRow, match_id).moved_at -= timedelta(minutes=5, seconds=-1)
    sent = {"here": ["yes"]}
    at_once(
        [
            lambda: transact_with_retry(
                engine,
                lambda session: take(session, find_progress(session, enrolment_id, lock=True), "match 1", sent),
                PATIENCE,
            ),
            lambda: transact_with_retry(
                engine, lambda session: matches.end_unanswered(session, enrolment_id), PATIENCE
            ),
        ]
        * 2
    )
    with reading(engine) as session:
        progress = find_progress(session, enrolment_id)
        pressed = session.scalars(select(StudyEvent.kind).where(StudyEvent.kind == "still there")).all()
        assert (progress.enrolment.ending, len(pressed)) in ((None, 1), ("inactive", 0))


def test_when_the_cap_is_reached_whoever_is_in_ends_once_and_is_paid(app: Flask, engine: Engine) -> None:
    with writing(engine) as session:
        wave_id = new_wave(session, places=40).id
        wave = session.get_one(Wave, wave_id)
        one = most_a_place(design_of(session.get_one(StudyVersion, wave.study_version_id))) * Decimal("1.5")
        wave.settings = {**wave.settings, "most_spent": str(10 * one)}
    at_once([lambda name=name: _come(engine, wave_id, name) for name in range(14)])
    with reading(engine) as session:
        found = select(Enrolment).where(Enrolment.wave_id == wave_id)
        rows = session.scalars(found.order_by(Enrolment.id)).all()
        assert Counter(row.ending for row in rows) == {None: 10, "full": 4}
        under_way = [row.id for row in rows if row.ending is None]
        assert committed(session, session.get_one(Wave, wave_id)) == 10 * one
    at_once([lambda number=number: _finish(engine, number) for number in (*under_way, *under_way)])
    with reading(engine) as session:
        endings = session.scalars(select(StudyEvent.enrolment_id).where(StudyEvent.kind == "ending")).all()
        assert sorted(endings) == [row.id for row in rows]
        paid = session.scalars(select(Payment.enrolment_id).where(Payment.key == "base")).all()
        assert sorted(each for each in paid if each in under_way) == under_way
        assert committed(session, session.get_one(Wave, wave_id)) <= 10 * one


def _come(engine: Engine, wave_id: int, name: int) -> None:
    transact_with_retry(engine, lambda session: join(session, session.get_one(Wave, wave_id), name), PATIENCE)


def _finish(engine: Engine, enrolment_id: int) -> None:
    def finish(session: Session) -> None:
        progress = find_progress(session, enrolment_id, lock=True)
        end(session, progress, "completed")
        record_owed(session, progress)

    transact_with_retry(engine, finish, PATIENCE)


def test_the_last_slot_that_two_want_is_given_to_one_and_arms_stay_apart_by_one(app: Flask, engine: Engine) -> None:
    with writing(engine) as session:
        wave = new_wave(session, places=8)
        wave_id = wave.id
        people = [assigned(session, wave, f"person {number}") for number in range(8)]
        end(session, people[3], "withdrawn")
        left = people[3].enrolment.arm_id
    at_once([lambda name=name: _begin(engine, wave_id, name) for name in ("ann", "ben")])
    with reading(engine) as session:
        late = session.scalars(select(Enrolment).order_by(Enrolment.id.desc()).limit(2)).all()
        assert sorted((row.ending or "in", row.arm_id) for row in late) == [("full", None), ("in", left)]
        held = select(Arm.name).join(Enrolment, Enrolment.arm_id == Arm.id).where(Enrolment.holds_place)
        assert set(Counter(session.scalars(held)).values()) == {2}
        assert all(each.agrees for each in replay(session, session.get_one(Wave, wave_id)))


def _begin(engine: Engine, wave_id: int, name: str) -> None:
    def begin(session: Session) -> None:
        progress = join(session, session.get_one(Wave, wave_id), name)
        if progress.enrolment.ending is None:
            assign(session, progress)

    transact_with_retry(engine, begin, PATIENCE)


def test_a_preview_link_that_many_open_at_once_makes_ten_walks(engine: Engine, tmp_path: Path) -> None:
    with writing(engine) as session:
        version = load_example(session, tmp_path)
        arms = session.scalars(select(Arm.id).where(Arm.study_version_id == version.id).order_by(Arm.id)).all()
        first, second, *_ = arms
        number = version.id
    refused, begun = [], threading.Barrier(14)

    def walk() -> None:
        begun.wait()
        try:
            transact_with_retry(
                engine, lambda session: enter_preview(session, Preview(number, first), "desktop"), PATIENCE
            )
        except TooMany as error:
            refused.append(error)

    threads = [threading.Thread(target=walk) for _ in range(14)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with reading(engine) as session:
        assert preview_walks(session, number) == {first: 10, None: 10}
    assert len(refused) == 4
    with writing(engine) as session:  # another arm's link, and the next one of this arm, make walks of their own
        enter_preview(session, Preview(number, second), "desktop")
        enter_preview(session, Preview(number, first, part=1), "desktop")
