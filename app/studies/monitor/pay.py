"""What was paid in a wave: batches by how far they are, adjustments, and sums that are not written yet."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.models import Enrolment, Payment
from app.studies.batches import CONFIRMED, DRAFTED, UPLOADED, ListedBatch, OwedPerson
from app.studies.monitor.people import with_code
from app.studies.payments import ADJUSTMENT, BASE, BONUS


class BatchSum(NamedTuple):
    """How many batches are in a state, and what they come to."""

    batches: int
    amount: Decimal


def batch_sums(listed: Sequence[ListedBatch]) -> Mapping[str, BatchSum]:
    """The sums of batches by their state, also of one that none is in."""
    found = {}
    for status in (DRAFTED, UPLOADED, CONFIRMED):
        own = [each.amount for each in listed if each.batch.status == status]
        found[status] = BatchSum(len(own), sum(own, Decimal(0)))
    return found


class PaidParts(NamedTuple):
    """What a sum is made of."""

    base: Decimal = Decimal(0)
    bonus: Decimal = Decimal(0)
    adjusted: Decimal = Decimal(0)


def parts(session: Session, people: Sequence[OwedPerson]) -> Mapping[int, PaidParts]:
    """What is owed to people, part by part, by enrolment."""
    found: dict[int, PaidParts] = {}
    wanted = [number for person in people for number in person.payments]
    for number, key, amount in session.execute(
        select(Payment.enrolment_id, Payment.key, Payment.amount).where(Payment.id.in_(wanted))
    ):
        part = key if key in (BASE, BONUS) else "adjusted"
        own = found.setdefault(number, PaidParts())
        found[number] = own._replace(**{part: getattr(own, part) + amount})
    return found


class ListedAdjustment(NamedTuple):
    """A payment by hand, with whose it is."""

    payment: Payment
    code: str


def adjustments(session: Session, wave_id: int) -> list[ListedAdjustment]:
    """What was adjusted in a wave, the latest first."""
    rows = session.execute(
        with_code(Payment)
        .where(Enrolment.wave_id == wave_id, Payment.key.startswith(ADJUSTMENT))
        .order_by(Payment.id.desc())
    )
    return [ListedAdjustment(*row) for row in rows]


def unsettled(session: Session, wave_id: int) -> int:
    """How many people of a wave have ended without a sum being written."""
    written = select(Payment.id).where(Payment.enrolment_id == Enrolment.id).exists()
    wanted = select(func.count()).select_from(Enrolment)
    return session.scalar(wanted.where(Enrolment.wave_id == wave_id, Enrolment.ending.is_not(None), ~written)) or 0
