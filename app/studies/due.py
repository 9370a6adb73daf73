"""The people whom the next batch of a wave pays: they have ended and are owed something that is in no batch yet.

The full base is paid by the recruiter, who approves the submission. A base that approval cannot pay is paid as a bonus:
for an ending that pays another amount than the full base, for a submission that was returned, timed out or rejected,
and in a wave without a recruiter.
"""

from decimal import Decimal
from itertools import groupby
from typing import Any, NamedTuple, cast

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from app.models import Enrolment, Participant, Payment, Wave
from app.studies.amounts import NOTHING, is_paid_by_approval
from app.studies.endings import EndingName
from app.studies.payments import BASE, recruiter_of
from app.studies.store import design_of_wave
from app.studies.visits import statuses_of_visits


class OwedPerson(NamedTuple):
    """The amount that a person is owed by a file and that is in no batch yet."""

    enrolment_id: int
    code: str  # the participant's
    ending: str
    amount: Decimal
    currency: str
    payments: tuple[int, ...]
    participant_id: int


def due(session: Session, wave: Wave) -> list[OwedPerson]:
    """The people whom the next batch may pay, in order of enrolment, without those who are owed nothing.

    All of them have ended; `settle_all` records what they are owed. Those held back because of a doubt are included.
    """
    design = design_of_wave(session, wave)
    statuses = statuses_of_visits(session, wave)
    rows = session.execute(
        payment_rows(wave).where(Payment.batch_id.is_(None), Enrolment.ending.is_not(None))
        .order_by(Enrolment.id, Payment.id)
    )  # fmt: skip
    found = []
    for enrolment_id, group in groupby(rows, key=lambda row: row.enrolment_id):
        payments = list(group)
        ending = cast(EndingName, payments[0].ending)
        last = statuses[enrolment_id][-1] if enrolment_id in statuses else None
        by_approval = is_paid_by_approval(design, ending, recruiter_of(wave), last)
        own = [row for row in payments if row.amount and not (row.key == BASE and by_approval)]
        amount = sum((row.amount for row in own), NOTHING)
        if amount > 0:
            first = payments[0]
            paid = tuple(row.id for row in own)
            found.append(
                OwedPerson(enrolment_id, first.code, ending, amount, first.currency, paid, first.participant_id)
            )
    return found


def payment_rows(wave: Wave) -> Select[Any]:
    """The payments of a wave, each with its enrolment and its person."""
    columns: tuple[Any, ...] = (
        Payment.id, Payment.key, Payment.amount, Payment.currency, Payment.enrolment_id, Enrolment.ending,
        Enrolment.participant_id, Participant.code,
    )  # fmt: skip
    return (
        select(*columns)
        .join(Enrolment, Enrolment.id == Payment.enrolment_id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .where(Enrolment.wave_id == wave.id)
    )
