"""Compares people's endings here with the recruiter's statuses of their visits."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.models import Enrolment, Submission
from app.studies.endings import COMPLETED, PROLIFIC
from app.studies.visits import ACTIVE, APPROVED, PARTIAL, REJECTED, RETURNED, SCREENED_OUT, SUBMITTED, TIMED_OUT

STATUSES = (ACTIVE, SUBMITTED, APPROVED, PARTIAL, SCREENED_OUT, REJECTED, RETURNED, TIMED_OUT)
_GONE = (REJECTED, RETURNED, TIMED_OUT)


class RecruiterRow(NamedTuple):
    """People of one ending (None: under way) by the status of their latest visit; `odd` are mismatching statuses."""

    ending: str | None
    counts: Mapping[str, int]
    odd: Sequence[str]


def against_recruiter(session: Session, wave_id: int) -> list[RecruiterRow]:
    """All people of a wave who have a visit, those under way last; empty where the recruiter names no visits."""
    latest = select(func.max(Submission.id)).where(Submission.wave_id == wave_id).group_by(Submission.enrolment_id)
    rows = session.execute(
        select(Enrolment.ending, Submission.status, func.count())
        .join(Submission, Submission.enrolment_id == Enrolment.id)
        .where(Submission.id.in_(latest))
        .group_by(Enrolment.ending, Submission.status)
    )
    found: dict[str | None, Counter[str]] = {}
    for ending, status, count in rows:
        found.setdefault(ending, Counter())[status] += count
    # People who completed it should be paid, and those under way should be there.
    return [
        RecruiterRow(ending, found[ending], _GONE if ending in (COMPLETED, None) else ())
        for ending in (*PROLIFIC, None)
        if ending in found
    ]
