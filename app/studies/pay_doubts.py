"""What somebody should look at before a wave is paid: where the recruiter and Parlor may pay the same, or neither pays.

Approving a submission pays the full base. Parlor learns of it from the recruiter's table alone, so it can only say
where what it holds does not fit together. Reads, and writes nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import Enrolment, Participant, Payment, StudyVersion, Submission, Wave
from app.studies.amounts import APPROVING, is_paid_by_approval
from app.studies.endings import EndingName
from app.studies.payments import BASE, recruiter_of
from app.studies.store import design_of
from app.studies.submissions import APPROVED, PARTIAL, SCREENED_OUT

NO_SUBMISSION, PAID_TWICE, WOULD_PAY_TWICE, IN_PART = "no submission", "paid twice", "would pay twice", "paid in part"
_PAID_FOR = (APPROVED, PARTIAL, SCREENED_OUT)  # what a recruiter has paid something for


class PayDoubt(NamedTuple):
    """Something to look at: whose base it is about, how much that is, and what may be wrong.

    `kind`: the recruiter has no submission of the person that it could approve; it approved one whose base is in a
    batch, or would be in the next; or it paid another amount than the base that approving one pays.
    """

    enrolment_id: int
    code: str  # of the participant
    kind: str
    amount: Decimal


def pay_doubts(session: Session, wave: Wave) -> list[PayDoubt]:
    """All of a wave, as people enrolled; none where no recruiter approves anything."""
    recruiter = recruiter_of(wave)
    return list(_doubts(session, wave, recruiter)) if recruiter in APPROVING else []


def _doubts(session: Session, wave: Wave, recruiter: str) -> Iterator[PayDoubt]:
    design = design_of(session.get_one(StudyVersion, wave.study_version_id))
    visits = _visits(session, wave)
    rows = session.execute(
        select(Payment.amount, Payment.batch_id, Enrolment.id, Enrolment.ending, Participant.code)
        .join(Enrolment, Enrolment.id == Payment.enrolment_id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .where(Enrolment.wave_id == wave.id, Payment.key == BASE)
        .order_by(Enrolment.id)
    )
    for amount, batch_id, number, ending, code in rows:
        if not amount:
            continue
        statuses = visits.get(number, [])
        last = statuses[-1] if statuses else None
        by_approval = batch_id is None and is_paid_by_approval(design, cast(EndingName, ending), recruiter, last)
        paid = [status for status in statuses if status in _PAID_FOR]
        if by_approval and not statuses:
            yield PayDoubt(number, code, NO_SUBMISSION, amount)
        elif by_approval and last in (PARTIAL, SCREENED_OUT):
            yield PayDoubt(number, code, IN_PART, amount)
        elif paid and not by_approval:
            yield PayDoubt(number, code, WOULD_PAY_TWICE if batch_id is None else PAID_TWICE, amount)


def _visits(session: Session, wave: Wave) -> Mapping[int, list[str]]:
    """How the visits of each enrolment stand, the first one first."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    rows = session.execute(
        select(Submission.enrolment_id, Submission.status)
        .where(Submission.wave_id == wave.id)
        .order_by(Submission.created_at, Submission.id)
    )
    for number, status in rows:
        found[number].append(status)
    return found
