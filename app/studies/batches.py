"""Batches of payments, each a file for the recruiter: drafted, uploaded, confirmed. Nothing here commits.

A payment is in at most one batch, and a batch never goes back: what was sent to a recruiter once is not sent again. An
unsent draft can be discarded, which frees its payments. People in doubt are in no draft, and a draft with somebody who
has come into doubt is neither written nor uploaded (`pay_doubts.py`).
"""

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import groupby
from typing import NamedTuple, cast

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.core.errors import Conflict, NotFound, Phrase, Verbatim
from app.models import Enrolment, Payment, PaymentBatch, Study, StudyEvent, Wave
from app.studies.amounts import APPROVING, NOTHING
from app.studies.due import OwedPerson, due, payment_rows
from app.studies.pay_doubts import PayDoubt, held_back, held_in
from app.studies.payable import checked_id, ids_of
from app.studies.payments import read_reason, recruiter_of, settle_all
from app.studies.progress import lock_wave, log_wave_event
from app.studies.reports import new_in
from app.studies.visits import last_table

DRAFTED, UPLOADED, CONFIRMED = "drafted", "uploaded", "confirmed"
_BEFORE: Mapping[str, str] = {UPLOADED: DRAFTED, CONFIRMED: UPLOADED}
PROLIFIC, PLAIN = "prolific", "csv"
_PEOPLE: Mapping[str, int] = {PROLIFIC: 200}  # accepted by a recruiter in one file
_EVENT = "payment batch"
_SET_ASIDE = "unread reports"
_NAMED = 5  # doubtful people named by a refusal
_PLAIN_HEADER = ("participant", "external_id", "amount", "currency")


class ListedBatch(NamedTuple):
    """A batch, with the number of people it pays and the total amount."""

    batch: PaymentBatch
    people: int
    amount: Decimal

    @property
    def row(self) -> PaymentBatch:
        """The row of the list."""
        return self.batch


class BatchFile(NamedTuple):
    """The file of a batch: the same bytes on every request."""

    name: str
    content: bytes


def draft(session: Session, wave: Wave, by: str | None = None, *, set_aside: str = "") -> list[PaymentBatch]:
    """Put all owed payments that are in no batch yet into new batches, as many as the recruiter's files need.

    People in doubt, and those whom the recruiter's file cannot pay, are left out; `held_back` lists them. `set_aside`:
    the reason for not waiting for new reports of the wave, which is logged. Raises Conflict if nobody is left, and if
    there are such reports but no reason.
    """
    settle_all(session, wave)  # locks enrolments, which everywhere comes before locking the wave
    lock_wave(session, wave.id)  # the second of two drafts finds nothing
    _set_aside(session, wave, set_aside.strip(), by)
    owed = due(session, wave)
    held = held_back(session, wave, owed)
    people = [each for each in owed if each.enrolment_id not in held]
    if not people and owed:
        raise Conflict(
            "wave", expected=Phrase("payments that are in no batch yet and in no doubt"),
            got=Phrase("doubt about %(people)s", people=_doubtful_people(held)),
            remedy=_remedy(session, wave),
        )  # fmt: skip
    if not people:
        raise Conflict(
            "wave", expected=Phrase("payments that are in no batch yet"), got=Phrase("none"),
            remedy=Phrase("people are paid once their visit has ended"),
        )  # fmt: skip
    file_format = PROLIFIC if recruiter_of(wave) == PROLIFIC else PLAIN
    most = _PEOPLE.get(file_format, len(people))
    return [
        _drafted(session, wave, file_format, people[first : first + most], by) for first in range(0, len(people), most)
    ]


def _set_aside(session: Session, wave: Wave, reason: str, by: str | None) -> None:
    """Log the reason for not waiting for new reports. Raises Conflict without a reason, and Invalid."""
    waiting = new_in(session, wave.id)
    if not waiting:
        return
    if not reason:
        raise Conflict(
            "reports", expected=Phrase("a wave without new reports"),
            got=Phrase("%(count)s new ones", count=len(waiting)),
            remedy=Phrase(
                "assign, answer or close them, as they may concern others too, or say why not to wait for them"
            ),
        )  # fmt: skip
    body = {"reports": list(waiting), "reason": read_reason("set_aside", reason), "by": by}
    log_wave_event(session, wave.id, _SET_ASIDE, body)
    session.flush()


def _remedy(session: Session, wave: Wave) -> Phrase:
    if recruiter_of(wave) in APPROVING and last_table(session, wave) is None:
        return Phrase("import the recruiter's table first, with flask study submissions")
    return Phrase("decide for each of them")


def _drafted(
    session: Session, wave: Wave, file_format: str, people: Sequence[OwedPerson], by: str | None
) -> PaymentBatch:
    batch = PaymentBatch(
        wave_id=wave.id,
        number=_next_number(session, wave.id),
        format=file_format,
        status=DRAFTED,
        created_at=datetime.now(UTC),
        created_by=by,
    )
    session.add(batch)
    session.flush()
    for payment in session.scalars(
        select(Payment).where(Payment.id.in_([number for person in people for number in person.payments]))
    ):
        payment.batch_id = batch.id
    session.flush()
    batch_file(session, batch)
    _note(session, batch, DRAFTED, by)
    return batch


def _next_number(session: Session, wave_id: int) -> int:
    """A number that no batch of the wave has or had, so that no file is mistaken for another."""
    drafted = session.scalars(
        select(StudyEvent.body).where(StudyEvent.wave_id == wave_id, StudyEvent.kind == _EVENT)
    ).all()
    return 1 + max((body["number"] for body in drafted), default=0)


def mark(session: Session, batch: PaymentBatch, status: str, by: str | None = None) -> None:
    """Mark a draft as uploaded, or an upload as confirmed by the recruiter. Raises Conflict for any other change."""
    batch = _locked_batch(session, batch)
    if batch.status == DRAFTED and status == UPLOADED:
        _check_doubts(session, batch)
    if status not in _BEFORE or batch.status != _BEFORE[status]:
        expected = Phrase("one that is %(status)s", status=Verbatim(_BEFORE.get(status, DRAFTED)))
        raise Conflict("batch", expected=expected, got=Phrase("one that is %(status)s", status=Verbatim(batch.status)))
    batch.status = status
    if status == UPLOADED:
        batch.uploaded_at = datetime.now(UTC)
    else:
        batch.confirmed_at = datetime.now(UTC)
    _note(session, batch, status, by)


def _check_doubts(session: Session, batch: PaymentBatch) -> None:
    """Raises Conflict if a draft has somebody in it who has since come into doubt."""
    found = held_in(session, batch)
    if found:
        raise Conflict(
            "batch", expected=Phrase("a draft with nobody in doubt"),
            got=Phrase("batch %(number)s with %(people)s", number=batch.number, people=_doubtful_people(found)),
            remedy=Phrase("take it back and draft again, or decide that they are paid all the same"),
        )  # fmt: skip


def _doubtful_people(held: Mapping[int, PayDoubt]) -> Verbatim:
    shown = [f"{each.code} ({each.kind})" for each in held.values()]
    more = f", and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    return Verbatim(", ".join(shown[:_NAMED]) + more)


def discard(session: Session, batch: PaymentBatch, by: str | None = None) -> None:
    """Discard a draft that was not uploaded. Raises Conflict."""
    batch = _locked_batch(session, batch)
    if batch.status != DRAFTED:
        raise Conflict(
            "batch", expected=Phrase("one that is %(status)s", status=Verbatim(DRAFTED)),
            got=Phrase("one that is %(status)s", status=Verbatim(batch.status)),
            remedy=Phrase("what a recruiter was sent stays as it is"),
        )  # fmt: skip
    session.execute(update(Payment).where(Payment.batch_id == batch.id).values(batch_id=None))
    _note(session, batch, "discarded", by)
    session.delete(batch)
    session.flush()


def find_batch(session: Session, wave: Wave, number: int) -> PaymentBatch:
    """A batch of a wave by its number. Raises NotFound."""
    found = session.scalar(select(PaymentBatch).where(PaymentBatch.wave_id == wave.id, PaymentBatch.number == number))
    if found is None:
        raise _no_batch(number)
    return found


def _locked_batch(session: Session, batch: PaymentBatch) -> PaymentBatch:
    """The current state of a batch, locked. Raises NotFound for one that was discarded in the meantime."""
    number = batch.number
    found = session.get(PaymentBatch, batch.id, with_for_update=True, populate_existing=True)
    if found is None:
        raise _no_batch(number)
    return found


def _no_batch(number: int) -> NotFound:
    return NotFound("batch", expected=Phrase("the number of one of this wave"), got=number)


def batches_of(session: Session, wave: Wave) -> list[ListedBatch]:
    """The batches of a wave by their numbers."""
    wanted = select(PaymentBatch).where(PaymentBatch.wave_id == wave.id).order_by(PaymentBatch.number)
    return listed_batches(session, session.scalars(wanted).all())


def listed_batches(session: Session, batches: Sequence[PaymentBatch]) -> list[ListedBatch]:
    """Batches with their numbers of people and amounts."""
    payments: dict[int, list[Payment]] = {batch.id: [] for batch in batches}
    for payment in session.scalars(select(Payment).where(Payment.batch_id.in_(payments))):
        payments[cast(int, payment.batch_id)].append(payment)
    return [
        ListedBatch(
            batch,
            len({payment.enrolment_id for payment in payments[batch.id]}),
            sum((payment.amount for payment in payments[batch.id]), NOTHING),
        )
        for batch in batches
    ]


def batch_file(session: Session, batch: PaymentBatch) -> BatchFile:
    """The file for the recruiter.

    Raises Conflict if ids no longer exist, and for a draft with somebody in it who has come into doubt.
    """
    if batch.status == DRAFTED:
        _check_doubts(session, batch)
    wave = session.get_one(Wave, batch.wave_id)
    study = session.get_one(Study, wave.study_id)
    name = f"{study.name}-{wave.name}-bonus-{batch.number}.{'txt' if batch.format == PROLIFIC else 'csv'}"
    recruiter = recruiter_of(wave)
    rows = session.execute(
        payment_rows(wave).where(Payment.batch_id == batch.id).order_by(Enrolment.id, Payment.id)
    ).all()
    ids = ids_of(session, {row.participant_id for row in rows}, recruiter)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if batch.format != PROLIFIC:
        writer.writerow(_PLAIN_HEADER)
    for _, group in groupby(rows, key=lambda row: row.enrolment_id):
        payments = list(group)
        first = payments[0]
        amount = sum((row.amount for row in payments), NOTHING)
        external_id = checked_id(ids.get(first.participant_id), first.code, recruiter)
        if batch.format == PROLIFIC:
            writer.writerow((external_id, amount))
        else:
            writer.writerow((first.code, external_id, amount, first.currency))
    return BatchFile(name, out.getvalue().encode())


def _note(session: Session, batch: PaymentBatch, status: str, by: str | None) -> None:
    log_wave_event(session, batch.wave_id, _EVENT, {"number": batch.number, "status": status, "by": by})
    session.flush()
