"""Inactive participants: upkeep ends their enrolments, so that their places go to others.

Recruiters do not report that somebody closed the tab. Nothing here commits.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.matches.engine import ABORTED
from app.matches.outages import time_away
from app.models import Enrolment, EventRow, SeatRow, StudyEvent
from app.studies import matches
from app.studies.design import REPLACE, StudyDesign
from app.studies.endings import INACTIVE
from app.studies.extra_time import factor_of
from app.studies.progress import STILL_THERE, StudyProgress, find_progress, log_event
from app.studies.withdrawal import leave

LEAST = timedelta(hours=1)
_TIMES = 3  # the time stated by the design


def silent(session: Session, now: datetime | None = None) -> Sequence[int]:
    """The enrolments under way that have not reached a new step for an hour; see `end_silent`."""
    before = (now or datetime.now(UTC)) - LEAST
    seen = func.coalesce(Enrolment.seen_at, Enrolment.enrolled_at)
    under_way = select(Enrolment.id).where(Enrolment.ending.is_(None), Enrolment.wave_id.is_not(None), seen < before)
    return session.scalars(under_way.order_by(Enrolment.id)).all()


def longest_silence(design: StudyDesign) -> timedelta:
    """The maximum time without a sign of life, without extra time."""
    return max(LEAST, timedelta(minutes=_TIMES * design.minutes))


def end_silent(session: Session, enrolment_id: int, now: datetime | None = None) -> Sequence[str] | None:
    """End an enrolment without a sign of life for three times the minutes that the design states, and for an hour.

    The time in which the server was away does not count.

    Both times are longer for a person with extra time. A person who left a match earlier gets the ending that follows
    from it, and one who is at the debrief has completed the study. What was earned is stored. Returns the ids of the
    matches that were ended, and None if the person is here or has ended.
    """
    progress = find_progress(session, enrolment_id, lock=True)
    if progress.enrolment.ending is not None or _time_left(session, progress, now) >= timedelta(0):
        return None
    _follow_last_match(session, progress)
    return leave(session, progress, INACTIVE)


def left(session: Session, progress: StudyProgress, now: datetime | None = None) -> timedelta | None:
    """How long a person may remain without a sign of life; None if they cannot lose anything by it."""
    if progress.enrolment.wave_id is None or not progress.can_leave:
        return None
    return max(timedelta(0), _time_left(session, progress, now))


def say_here(session: Session, progress: StudyProgress) -> None:
    """Record that a person said they are still there, on any page."""
    if progress.enrolment.ending is None:
        progress.enrolment.seen_at = datetime.now(UTC)
        log_event(session, progress, STILL_THERE, {"step": progress.step.key})


def _time_left(session: Session, progress: StudyProgress, now: datetime | None) -> timedelta:
    """The time for which a person may still be silent, not counting the server's absence; below 0 once exceeded."""
    now, seen = now or datetime.now(UTC), _last_sign(session, progress.enrolment)
    longest = longest_silence(progress.design) * float(factor_of(session, progress.enrolment.id))
    return longest - (now - seen - time_away(session, seen, now))


def _last_sign(session: Session, enrolment: Enrolment) -> datetime:
    """When the person last went on, or something happened in one of their matches."""
    steps = select(StudyEvent.at).where(StudyEvent.enrolment_id == enrolment.id).order_by(StudyEvent.at.desc())
    moves = select(EventRow.at).join(SeatRow, SeatRow.match_id == EventRow.match_id)
    moves = moves.where(SeatRow.enrolment_id == enrolment.id).order_by(EventRow.at.desc())
    found = (enrolment.seen_at, session.scalar(steps.limit(1)), session.scalar(moves.limit(1)))
    return max(at for at in (enrolment.enrolled_at, *found) if at is not None)


def _follow_last_match(session: Session, progress: StudyProgress) -> None:
    """Apply what follows from the end of the last match, unless that is another match: nobody is here to play it."""
    row = matches.due(session, progress)
    if row is not None and not (row.reason == ABORTED and progress.design.same_for_all.model_failure.then == REPLACE):
        matches.after(session, progress, progress.step)
