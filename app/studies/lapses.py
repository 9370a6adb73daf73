"""Turns that a person let run out, and the question “Are you still there?” that follows. Nothing here commits.

Only the matches themselves are stored: a step whose match ended by the person's silence asks until the person moves on.
The first such match ends the study only if nobody answers within the design's grace period, the second one at once.
Practice asks as well, but does not count. Any time of the grace period in which the server was away is added to it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import and_, exists, select
from sqlalchemy.orm import Session, aliased

from app.matches.clocks import LATE, TURN
from app.matches.engine import ABANDONED, TIMEOUT
from app.matches.events import TimedOut
from app.matches.outages import time_away
from app.matches.stored import load_log
from app.models import Enrolment, MatchRow, SeatRow
from app.studies.design import SHORTEST_GRACE
from app.studies.extra_time import factor_of
from app.studies.participant_steps import MATCH
from app.studies.progress import StudyProgress

MOST = 2  # the last of these lapses ends the study
_BY_TIME = (TIMEOUT, ABANDONED)


class Lapse(NamedTuple):
    """A match that ended because its person did nothing. `until` is when the answer is due; None in practice."""

    row: MatchRow
    until: datetime | None

    def left(self, now: datetime) -> float | None:
        """The seconds left in which an answer counts; None if unlimited."""
        return None if self.until is None else max(0.0, (self.until - now).total_seconds())

    def has_passed(self, now: datetime) -> bool:
        """Whether nobody has answered in time; the actual deadline is a little later than the one shown."""
        return self.until is not None and now >= self.until + LATE


def was_silent(session: Session, row: MatchRow) -> bool:
    """Whether a finished match ended because its person did nothing."""
    if row.reason != TIMEOUT:
        return row.reason == ABANDONED
    events = (logged.event for logged in load_log(session, row.id))
    return any(isinstance(event, TimedOut) and event.clock == TURN for event in events)


def lapse_of(session: Session, progress: StudyProgress, row: MatchRow | None, now: datetime) -> Lapse | None:
    """The lapse in the match of the due step; None if it did not end by silence."""
    if row is None or row.status != "over" or progress.enrolment.ending is not None or not was_silent(session, row):
        return None
    if progress.step.kind != MATCH:
        return Lapse(row, None)
    grace = grace_of(session, progress) + time_away(session, row.moved_at, now)
    return Lapse(row, row.moved_at + grace)


def grace_of(session: Session, progress: StudyProgress) -> timedelta:
    """The time a person has to confirm that they are there; longer for a person with extra time."""
    return progress.design.same_for_all.idle.end * float(factor_of(session, progress.enrolment.id))


def count(session: Session, enrolment_id: int) -> int:
    """How many matches that count have ended by a person's silence."""
    rows = (
        select(MatchRow)
        .join(SeatRow, SeatRow.match_id == MatchRow.id)
        .where(SeatRow.enrolment_id == enrolment_id, MatchRow.position.is_not(None), MatchRow.reason.in_(_BY_TIME))
    )
    return sum(was_silent(session, row) for row in session.scalars(rows))


def ends_study(session: Session, progress: StudyProgress, lapse: Lapse, now: datetime) -> bool:
    """Whether it is too late to go on: it was not the first lapse, or nobody has answered within the grace."""
    if lapse.until is None:
        return False
    return lapse.has_passed(now) or count(session, progress.enrolment.id) >= MOST


def waiting(session: Session, now: datetime) -> Sequence[int]:
    """The enrolments under way whose last match ended by a clock longer ago than the shortest grace."""
    before = now - SHORTEST_GRACE
    later, its_seat = aliased(MatchRow), aliased(SeatRow)
    followed = exists().where(
        its_seat.enrolment_id == Enrolment.id, later.id == its_seat.match_id, later.started_at > MatchRow.started_at
    )
    found = (
        select(Enrolment.id)
        .join(SeatRow, SeatRow.enrolment_id == Enrolment.id)
        .join(MatchRow, MatchRow.id == SeatRow.match_id)
        .where(and_(Enrolment.ending.is_(None), Enrolment.wave_id.is_not(None), Enrolment.stage == MATCH))
        .where(MatchRow.position.is_not(None), MatchRow.reason.in_(_BY_TIME), MatchRow.moved_at < before, ~followed)
    )
    return session.scalars(found.order_by(Enrolment.id)).all()
