"""What is written at the same moment, by people and by those who pay them: nobody is paid twice, and nobody waits for
somebody who waits for them, on both databases.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Engine, select, text
from sqlalchemy.orm import Session

from app.core.errors import Invalid, NotFound
from app.core.extensions import reading, writing
from app.models import Enrolment, Payment, Submission, Wave
from app.studies import batches, payments
from app.studies.due import due
from app.studies.forget import forget_person
from app.studies.progress import StudyProgress, end, lock_wave
from app.studies.submissions import VisitStatus, take_statuses
from tests.enrolments import KnownWave, begin, finish, person, play
from tests.stack import wait_until


def found(session: Session, known: KnownWave, code: str) -> StudyProgress:
    """A person, kept from others."""
    return payments.find_progress_by_code(session, session.get_one(Wave, known.wave), code)


def meanwhile(
    engine: Engine,
    first: Callable[[Session], Any],
    second: Callable[[Session], Any],
    then: Callable[[Session], Any] = lambda _session: None,
) -> Future[Any]:
    """`second` in a transaction that begins while that of `first` and `then` is open, and waits for it."""

    def apart() -> Any:
        with writing(engine) as session:
            return second(session)

    with ThreadPoolExecutor(1) as pool:
        with writing(engine) as session:
            first(session)
            session.flush()
            waiting = pool.submit(apart)
            wait_until(lambda: waiting.done() or _somebody_waits(engine), "the other transaction to wait")
            then(session)
        waiting.exception()
    return waiting


def _somebody_waits(engine: Engine) -> bool:
    if engine.dialect.name == "sqlite":
        return True  # whoever writes waits for all others
    with reading(engine) as session:
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(session.scalar(text(waiting)))


def test_who_completes_while_the_data_are_deleted_has_completed_and_is_paid_once(
    engine: Engine, known: KnownWave
) -> None:
    with writing(engine) as session:
        number = person(session, known, "P1").enrolment.participant_id

    def complete(session: Session) -> None:
        payments.record_owed(session, finish(session, found(session, known, "P1")))

    meanwhile(
        engine, lambda session: found(session, known, "P1"), lambda session: forget_person(session, number), complete
    ).result()
    with reading(engine) as session:
        assert session.scalars(select(Enrolment.ending)).one() == "completed"
        assert due(session, session.get_one(Wave, known.wave)) == []  # approval pays the base


def test_what_is_being_drafted_cannot_be_taken_away(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        progress = finish(session, person(session, known, "P1"), "quiz_failed")
        payments.record_owed(session, progress)
    late = meanwhile(
        engine,
        lambda session: batches.draft(session, session.get_one(Wave, known.wave)),
        lambda session: payments.adjust(session, found(session, known, "P1"), Decimal("-1.00"), "paid by hand"),
    )
    with pytest.raises(Invalid, match="at most"):
        late.result()
    with reading(engine) as session:
        assert sum(session.scalars(select(Payment.amount))) == 1


def test_a_draft_waits_for_who_is_at_work_without_keeping_the_wave(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        finish(session, person(session, known, "P1"), "quiz_failed")
    drafted = meanwhile(
        engine,
        lambda session: found(session, known, "P1"),
        lambda session: len(batches.draft(session, session.get_one(Wave, known.wave))),
        lambda session: lock_wave(session, known.wave),
    )
    assert drafted.result() == 1


def test_a_recruiters_table_waits_for_who_ends_without_keeping_the_wave(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        person(session, known, "P1")
        person(session, known, "P2")
    visits = [VisitStatus("visitp1", "returned"), VisitStatus("visitp2", "returned")]
    taken = meanwhile(
        engine,
        lambda session: found(session, known, "P2"),
        lambda session: take_statuses(session, session.get_one(Wave, known.wave), visits).changed,
        lambda session: end(session, found(session, known, "P2"), "completed"),
    )
    assert taken.result() == 2
    with reading(engine) as session:
        ended = session.scalars(select(Enrolment.ending).order_by(Enrolment.id)).all()
        assert ended == ["withdrawn", "completed"]


def test_a_visit_that_is_returned_in_a_match_ends_the_match_and_is_settled(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        progress = person(session, known, "P1")
        play(session, progress, 0)
        begin(session, progress, 1)
        take_statuses(session, session.get_one(Wave, known.wave), [VisitStatus("visitp1", "timed_out")])
        assert [row.key for row in payments.payments_of(session, progress.enrolment.id)] == ["base", "bonus"]
        assert session.scalars(select(Submission.status)).one() == "timed_out"


def test_of_two_who_discard_a_draft_the_second_is_told_in_a_line(engine: Engine, known: KnownWave) -> None:
    with writing(engine) as session:
        finish(session, person(session, known, "P1"), "quiz_failed")
        batches.draft(session, session.get_one(Wave, known.wave))

    def discard(session: Session) -> None:
        batches.discard(session, batches.find_batch(session, session.get_one(Wave, known.wave), 1))

    with pytest.raises(NotFound, match="of this wave"):
        meanwhile(engine, discard, discard).result()
