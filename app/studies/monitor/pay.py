"""The payments of a wave: batches by status, adjustments, and enrolments without a recorded sum."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from sqlalchemy import Float, cast, func, select
from sqlalchemy.orm import Session

from app.core.errors import Phrase, Verbatim
from app.core.lists import NOWHERE, ListColumn, Listing, Reference, State, attribute, computed, of_other
from app.models import Enrolment, Participant, Payment, PaymentBatch
from app.studies.batches import CONFIRMED, DRAFTED, UPLOADED, ListedBatch, listed_batches
from app.studies.due import OwedPerson
from app.studies.payments import ADJUSTMENT, BASE, BONUS, REVERSAL, number_of

_STATUS_MARKS = {DRAFTED: "open", UPLOADED: "warn", CONFIRMED: "good"}


class BatchSum(NamedTuple):
    """The number of batches with a status, and their total amount."""

    batches: int
    amount: Decimal


def batch_sums(listed: Sequence[ListedBatch]) -> Mapping[str, BatchSum]:
    """The sums of batches by status, including statuses without batches."""
    found = {}
    for status in (DRAFTED, UPLOADED, CONFIRMED):
        own = [each.amount for each in listed if each.batch.status == status]
        found[status] = BatchSum(len(own), sum(own, Decimal(0)))
    return found


BATCHES: Listing[PaymentBatch] = Listing(
    name="batches",
    table=PaymentBatch,
    columns=(
        ListColumn(
            "batch",
            Phrase("Batch"),
            lambda each: Reference("batch", (each.row.wave_id, each.row.number), each.row.number),
            sort=PaymentBatch.number,
        ),
        attribute(PaymentBatch.id, Phrase("Number"), "batch_id", numeric=True, seen=NOWHERE),
        ListColumn(
            "status",
            Phrase("Status"),
            lambda each: State(each.row.status, _STATUS_MARKS[each.row.status]),
            sort=PaymentBatch.status,
        ),
        ListColumn(
            "people",
            Phrase("People"),
            lambda each: each.people,
            sort=of_other(func.count(Payment.enrolment_id.distinct()), Payment.batch_id == PaymentBatch.id),
            numeric=True,
        ),
        ListColumn(
            "amount",
            Phrase("Sum"),
            lambda each: each.amount,
            sort=of_other(func.sum(cast(Payment.amount, Float)), Payment.batch_id == PaymentBatch.id),
            numeric=True,
        ),
        computed(
            "last_step_at",
            Phrase("Last step, UTC"),
            func.coalesce(PaymentBatch.confirmed_at, PaymentBatch.uploaded_at, PaymentBatch.created_at),
            notes=lambda each: (
                [Phrase("drafted by %(name)s", name=Verbatim(each.row.created_by))] if each.row.created_by else []
            ),
            numeric=True,
        ),
        attribute(PaymentBatch.format, Phrase("File")),
        attribute(PaymentBatch.created_at, Phrase("Drafted, UTC"), numeric=True, seen=NOWHERE),
        attribute(PaymentBatch.uploaded_at, Phrase("Uploaded, UTC"), numeric=True, seen=NOWHERE),
        attribute(PaymentBatch.confirmed_at, Phrase("Confirmed, UTC"), numeric=True, seen=NOWHERE),
    ),
    items=listed_batches,
    key=PaymentBatch.number,
)


class PaidParts(NamedTuple):
    """The parts of a sum."""

    base: Decimal = Decimal(0)
    bonus: Decimal = Decimal(0)
    adjusted: Decimal = Decimal(0)


def parts(session: Session, people: Sequence[OwedPerson]) -> Mapping[int, PaidParts]:
    """The parts of what is owed to people, by enrolment."""
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
    """A manual payment, with its person's code, its batch, and whether it can be reversed."""

    payment: Payment
    code: str
    batch: PaymentBatch | None = None
    reversible: bool = False

    @property
    def number(self) -> int:
        """The number of the adjustment, which its reversal has as well."""
        return number_of(self.payment)


def adjustments(session: Session, wave_id: int) -> list[ListedAdjustment]:
    """The adjustments and reversals in a wave, the latest first."""
    rows = session.execute(
        select(Payment, Participant.code)
        .join(Enrolment, Enrolment.id == Payment.enrolment_id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .where(Enrolment.wave_id == wave_id, Payment.key.startswith(ADJUSTMENT) | Payment.key.startswith(REVERSAL))
        .order_by(Payment.id.desc())
    ).all()
    numbers = {payment.batch_id for payment, _ in rows if payment.batch_id is not None}
    batches = {each.id: each for each in session.scalars(select(PaymentBatch).where(PaymentBatch.id.in_(numbers)))}
    back = {(payment.enrolment_id, number_of(payment)) for payment, _ in rows if payment.key.startswith(REVERSAL)}
    return [
        ListedAdjustment(
            payment,
            code,
            batches.get(payment.batch_id or 0),
            payment.key.startswith(ADJUSTMENT) and (payment.enrolment_id, number_of(payment)) not in back,
        )
        for payment, code in rows
    ]


def unsettled(session: Session, wave_id: int) -> int:
    """The number of people in a wave who have ended and have no recorded payment."""
    written = select(Payment.id).where(Payment.enrolment_id == Enrolment.id).exists()
    wanted = select(func.count()).select_from(Enrolment)
    return session.scalar(wanted.where(Enrolment.wave_id == wave_id, Enrolment.ending.is_not(None), ~written)) or 0
