"""Batches of payments, each a file for the recruiter: drafted, uploaded, confirmed. Nothing here commits.

A payment is in one batch at most, and a batch never goes back: what a recruiter was sent once is not sent again. A
draft that was not sent can be discarded, and its payments are free again.

The full base is paid by the recruiter, who approves the submission. A base that approval cannot pay is paid as a
bonus: that of an ending which pays another amount than the full base, that of a submission that was returned, timed
out or rejected, and that of a wave without a recruiter.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import groupby
from typing import Any, NamedTuple, cast

from sqlalchemy import Select, select, update
from sqlalchemy.orm import Session

from app.csv_tables import looks_like_formula
from app.errors import Conflict, Invalid, NotFound, Phrase, Verbatim
from app.models import (
    Enrolment,
    Participant,
    Payment,
    PaymentBatch,
    RecruitmentIdentity,
    Study,
    StudyEvent,
    StudyVersion,
    Submission,
    Wave,
)
from app.studies.amounts import APPROVING, NOTHING, is_paid_by_approval
from app.studies.endings import EndingName
from app.studies.payments import BASE, recruiter_of, settle_all
from app.studies.progress import lock_wave
from app.studies.store import design_of
from app.studies.wave_file import PLAIN_ID

DRAFTED, UPLOADED, CONFIRMED = "drafted", "uploaded", "confirmed"
_BEFORE: Mapping[str, str] = {UPLOADED: DRAFTED, CONFIRMED: UPLOADED}
PROLIFIC, PLAIN = "prolific", "csv"
_PEOPLE: Mapping[str, int] = {PROLIFIC: 200}  # that a recruiter takes in one file
_EVENT = "payment batch"
_PLAIN_HEADER = ("participant", "external_id", "amount", "currency")


class OwedPerson(NamedTuple):
    """What a person is owed that a file pays and that is in no batch yet."""

    enrolment_id: int
    code: str  # of the participant
    ending: str
    amount: Decimal
    currency: str
    payments: tuple[int, ...]


class ListedBatch(NamedTuple):
    """A batch, how many people are paid in it, and how much in all."""

    batch: PaymentBatch
    people: int
    amount: Decimal


class BatchFile(NamedTuple):
    """The file of a batch: the same bytes whenever it is asked for."""

    name: str
    content: bytes


def due(session: Session, wave: Wave) -> list[OwedPerson]:
    """Whom the next batch pays, as they enrolled; who is owed nothing is left out.

    Of people who have ended; `settle_all` writes what they are owed.
    """
    return list(_due(session, wave))


def draft(session: Session, wave: Wave, by: str | None = None) -> list[PaymentBatch]:
    """Put all that is owed and in no batch yet into new batches, as many as the recruiter's files need.

    Raises Conflict if nobody is owed anything, or an id of the recruiter's that the file needs is not there.
    """
    settle_all(session, wave)  # locks enrolments, which comes before the wave everywhere
    lock_wave(session, wave.id)  # of two drafts the second finds nothing
    people = due(session, wave)
    if not people:
        raise Conflict(
            "wave", expected=Phrase("payments that are in no batch yet"), got=Phrase("none"),
            remedy=Phrase("people are paid when they have ended"),
        )  # fmt: skip
    file_format = PROLIFIC if recruiter_of(wave) == PROLIFIC else PLAIN
    most = _PEOPLE.get(file_format, len(people))
    return [
        _drafted(session, wave, file_format, people[first : first + most], by) for first in range(0, len(people), most)
    ]


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
    """A number that no batch of the wave has or had, so that a file is never taken for another."""
    drafted = session.scalars(
        select(StudyEvent.body).where(StudyEvent.wave_id == wave_id, StudyEvent.kind == _EVENT)
    ).all()
    return 1 + max((body["number"] for body in drafted), default=0)


def mark(session: Session, batch: PaymentBatch, status: str, by: str | None = None) -> None:
    """Say that a draft was uploaded, or that the recruiter confirmed an upload. Raises Conflict for any other way."""
    batch = _locked(session, batch)
    if status not in _BEFORE or batch.status != _BEFORE[status]:
        expected = Phrase("one that is %(status)s", status=Verbatim(_BEFORE.get(status, DRAFTED)))
        raise Conflict("batch", expected=expected, got=Phrase("one that is %(status)s", status=Verbatim(batch.status)))
    batch.status = status
    if status == UPLOADED:
        batch.uploaded_at = datetime.now(UTC)
    else:
        batch.confirmed_at = datetime.now(UTC)
    _note(session, batch, status, by)


def discard(session: Session, batch: PaymentBatch, by: str | None = None) -> None:
    """Take a draft back that was not uploaded. Raises Conflict."""
    batch = _locked(session, batch)
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


def _locked(session: Session, batch: PaymentBatch) -> PaymentBatch:
    """A batch as it is now. Raises NotFound for one that was discarded in the meantime."""
    number = batch.number
    found = session.get(PaymentBatch, batch.id, with_for_update=True, populate_existing=True)
    if found is None:
        raise _no_batch(number)
    return found


def _no_batch(number: int) -> NotFound:
    return NotFound("batch", expected=Phrase("the number of one of this wave"), got=number)


def batches_of(session: Session, wave: Wave) -> list[ListedBatch]:
    """The batches of a wave by their numbers."""
    batches = session.scalars(
        select(PaymentBatch).where(PaymentBatch.wave_id == wave.id).order_by(PaymentBatch.number)
    ).all()
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
    """The file that the recruiter takes. Raises Conflict for ids that are not there any more."""
    wave = session.get_one(Wave, batch.wave_id)
    study = session.get_one(Study, wave.study_id)
    name = f"{study.name}-{wave.name}-bonus-{batch.number}.{'txt' if batch.format == PROLIFIC else 'csv'}"
    recruiter = recruiter_of(wave)
    ids = _ids(session, batch, recruiter)
    rows = session.execute(_payments(wave).where(Payment.batch_id == batch.id).order_by(Enrolment.id, Payment.id)).all()
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if batch.format != PROLIFIC:
        writer.writerow(_PLAIN_HEADER)
    for _, group in groupby(rows, key=lambda row: row.enrolment_id):
        payments = list(group)
        first = payments[0]
        amount = sum((row.amount for row in payments), NOTHING)
        external_id = _checked_id(ids.get(first.participant_id), first.code, recruiter)
        if batch.format == PROLIFIC:
            writer.writerow((external_id, amount))
        else:
            writer.writerow((first.code, external_id, amount, first.currency))
    return BatchFile(name, out.getvalue().encode())


def _due(session: Session, wave: Wave) -> Iterator[OwedPerson]:
    recruiter = recruiter_of(wave)
    version = session.get_one(StudyVersion, wave.study_version_id)
    design = design_of(version)
    visits = session.execute(
        select(Submission.enrolment_id, Submission.status)
        .where(Submission.wave_id == wave.id)
        .order_by(Submission.created_at, Submission.id)
    )
    statuses = {visit.enrolment_id: visit.status for visit in visits}  # of several the last counts
    rows = session.execute(
        _payments(wave).where(Payment.batch_id.is_(None), Enrolment.ending.is_not(None))
        .order_by(Enrolment.id, Payment.id)
    )  # fmt: skip
    for enrolment_id, group in groupby(rows, key=lambda row: row.enrolment_id):
        payments = list(group)
        ending = cast(EndingName, payments[0].ending)
        by_approval = is_paid_by_approval(design, ending, recruiter, statuses.get(enrolment_id))
        own = [row for row in payments if row.amount and not (row.key == BASE and by_approval)]
        amount = sum((row.amount for row in own), NOTHING)
        if amount > 0:
            first = payments[0]
            yield OwedPerson(enrolment_id, first.code, ending, amount, first.currency, tuple(row.id for row in own))


def _payments(wave: Wave) -> Select[Any]:
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


def _ids(session: Session, batch: PaymentBatch, recruiter: str) -> Mapping[int, str]:
    """The recruiter's ids of the people in a batch by participant; of several that of the first visit."""
    people = (
        select(Enrolment.participant_id)
        .join(Payment, Payment.enrolment_id == Enrolment.id)
        .where(Payment.batch_id == batch.id)
    )
    found = session.execute(
        select(RecruitmentIdentity.participant_id, RecruitmentIdentity.external_id)
        .where(RecruitmentIdentity.participant_id.in_(people), RecruitmentIdentity.recruiter == recruiter)
        .order_by(RecruitmentIdentity.id.desc())
    )
    return {row.participant_id: row.external_id for row in found}


def _checked_id(found: str | None, code: str, recruiter: str) -> str:
    """An id that may stand in a file. Where no recruiter pays it may be missing or any text, as the file names the
    participant; one that a spreadsheet would take for a formula has an apostrophe before it.
    """
    if recruiter not in APPROVING:
        return f"'{found}" if looks_like_formula(found or "") else found or ""
    remedy = Phrase("`adjust` takes away what is owed to that person, who can be paid in another way")
    if found is None:
        expected = Phrase("the recruiter's id of %(code)s", code=Verbatim(code))
        raise Conflict("external_id", expected=expected, got=Phrase("none, as it was removed"), remedy=remedy)
    if PLAIN_ID.fullmatch(found) is None:
        expected = Phrase("letters, digits and - _ . @ : in the id of %(code)s", code=Verbatim(code))
        raise Invalid("external_id", expected=expected, got=found, remedy=remedy)
    return found


def _note(session: Session, batch: PaymentBatch, status: str, by: str | None) -> None:
    body = {"number": batch.number, "status": status, "by": by}
    session.add(StudyEvent(wave_id=batch.wave_id, enrolment_id=None, kind=_EVENT, body=body, at=datetime.now(UTC)))
    session.flush()
