"""Waves of studies: one recruitment for one version, what happened in it, the recruiter's records, and payments."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import ForeignKey, String, UniqueConstraint, false
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.types import Amount, Json, UtcDateTime


class Wave(Model):
    """One recruitment for one version of a study, at `/s/STUDY/WAVE`."""

    __tablename__ = "wave"
    __table_args__ = (UniqueConstraint("study_id", "name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = mapped_column(ForeignKey("study.id"))
    study_version_id: Mapped[int] = mapped_column(ForeignKey("study_version.id"), index=True)
    name: Mapped[str] = mapped_column(String(40))
    settings: Mapped[dict[str, Any]] = mapped_column(Json)  # from its file: recruiter, places, codes, the spend cap
    status: Mapped[str] = mapped_column(String(10))  # open | paused | closed
    rehearsal: Mapped[bool] = mapped_column(default=False, server_default=false())  # for bots, not for people
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    closed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    frozen_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # from then on it does not change; unblinded


class Submission(Model):
    """The recruiter's record of a person's visit. `external_id` is deleted with the recruiter's other ids."""

    __tablename__ = "submission"
    __table_args__ = (UniqueConstraint("wave_id", "external_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    wave_id: Mapped[int] = mapped_column(ForeignKey("wave.id"))
    enrolment_id: Mapped[int] = mapped_column(ForeignKey("enrolment.id"), index=True)
    recruiter: Mapped[str] = mapped_column(String(20))  # prolific | connect | link; mturk: before it closed
    external_id: Mapped[str | None] = mapped_column(String(200))
    status: Mapped[str] = mapped_column(String(12))  # as app/studies/submissions.py names them
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime)
    listed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # when a table from the recruiter last listed it
    handed_in: Mapped[str | None] = mapped_column(String(20))  # the code's ending, `no code` or `other code`
    other_person: Mapped[bool] = mapped_column(
        default=False, server_default=false()
    )  # the table says that it is another person's


class StudyEvent(Model):
    """A recorded event of a wave: an entry, an assignment, a step, a report, an ending."""

    __tablename__ = "study_event"

    id: Mapped[int] = mapped_column(primary_key=True)
    wave_id: Mapped[int] = mapped_column(ForeignKey("wave.id"), index=True)
    enrolment_id: Mapped[int | None] = mapped_column(ForeignKey("enrolment.id"), index=True)
    kind: Mapped[str] = mapped_column(String(30))
    body: Mapped[dict[str, Any]] = mapped_column(Json)
    at: Mapped[datetime] = mapped_column(UtcDateTime)


class PaymentBatch(Model):
    """Payments that are handed to a recruiter together: drafted, uploaded, confirmed."""

    __tablename__ = "payment_batch"
    __table_args__ = (UniqueConstraint("wave_id", "number"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    wave_id: Mapped[int] = mapped_column(ForeignKey("wave.id"))
    number: Mapped[int]  # from 1
    format: Mapped[str] = mapped_column(String(12))  # prolific | csv; mturk: before it closed
    status: Mapped[str] = mapped_column(String(10))  # drafted | uploaded | confirmed
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_by: Mapped[str | None] = mapped_column(String(80))
    uploaded_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    confirmed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Payment(Model):
    """An amount that is owed to a person, once. `key` is `base`, `bonus`, or `adjustment N`, which has a reason."""

    __tablename__ = "payment"
    __table_args__ = (UniqueConstraint("enrolment_id", "key"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    enrolment_id: Mapped[int] = mapped_column(ForeignKey("enrolment.id"))
    batch_id: Mapped[int | None] = mapped_column(ForeignKey("payment_batch.id"), index=True)
    key: Mapped[str] = mapped_column(String(20))
    amount: Mapped[Decimal] = mapped_column(Amount)
    currency: Mapped[str] = mapped_column(String(3))
    reason: Mapped[str | None] = mapped_column(String(200))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_by: Mapped[str | None] = mapped_column(String(80))
