"""The recruiter's records of visits, and the people it considers done who are under way here. Reads only."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.models import Enrolment, Participant, StudyEvent, Submission, Wave

ACTIVE, SUBMITTED, APPROVED, REJECTED = "active", "submitted", "approved", "rejected"
RETURNED, TIMED_OUT = "returned", "timed_out"
SCREENED_OUT, PARTIAL = "screened_out", "partial"  # paid something other than the base: a fixed reward, a part of it

DONE = (SUBMITTED, APPROVED, PARTIAL, SCREENED_OUT)  # the recruiter's states for visits of people who are finished
TABLE = "recruiter's table"  # in the log: a table of all visits was imported
NO_CODE, OTHER_CODE = "no code", "other code"  # entered in place of an ending's code


def last_table(session: Session, wave: Wave) -> datetime | None:
    """When the last table of all the recruiter's visits was imported; None if none was."""
    of_all = select(func.max(StudyEvent.at)).where(StudyEvent.wave_id == wave.id, StudyEvent.kind == TABLE)
    return session.scalar(of_all)


def statuses_of_visits(session: Session, wave: Wave) -> Mapping[int, list[str]]:
    """The recruiter's statuses of the visits of each enrolment, the first visit first; none without a visit."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    rows = session.execute(
        select(Submission.enrolment_id, Submission.status)
        .where(Submission.wave_id == wave.id)
        .order_by(Submission.created_at, Submission.id)
    )
    for number, status in rows:
        found[number].append(status)
    return found


class DoneElsewhere(NamedTuple):
    """A person under way here who has a visit that the recruiter considers submitted, approved or paid."""

    enrolment_id: int
    code: str  # the participant's
    status: str
    handed_in: str | None


def done_elsewhere(session: Session, wave: Wave) -> Sequence[DoneElsewhere]:
    """All such people in a wave, in order of enrolment. A person who opens the link again with another visit is
    included.
    """
    done = select(func.max(Submission.id)).where(Submission.wave_id == wave.id, Submission.status.in_(DONE))
    rows = session.execute(
        select(Enrolment.id, Participant.code, Submission.status, Submission.handed_in)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .join(Submission, Submission.enrolment_id == Enrolment.id)
        .where(Submission.id.in_(done.group_by(Submission.enrolment_id)), Enrolment.ending.is_(None))
        .order_by(Enrolment.id)
    )
    return [DoneElsewhere(*row) for row in rows]
