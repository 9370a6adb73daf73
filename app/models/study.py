"""Studies: what people are asked to do, who takes part, what they agreed to, and how a recruiter names them."""

from datetime import date, datetime
from typing import Any

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.types import Json, UtcDateTime


class Study(Model):
    """A human experiment. What it asks people to do is in its versions."""

    __tablename__ = "study"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(80), unique=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class StudyVersion(Model):
    """A version of a study's file, which never changes once people have enrolled."""

    __tablename__ = "study_version"
    __table_args__ = (UniqueConstraint("study_id", "number"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = mapped_column(ForeignKey("study.id", ondelete="CASCADE"))
    number: Mapped[int]  # from 1
    design: Mapped[dict[str, Any]] = mapped_column(Json)  # the file as JSON text, its texts, material and pinned models
    sha256: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class Arm(Model):
    """A sequence of conditions that a participant goes through."""

    __tablename__ = "arm"
    __table_args__ = (UniqueConstraint("study_version_id", "name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    study_version_id: Mapped[int] = mapped_column(ForeignKey("study_version.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(80))
    conditions: Mapped[list[dict[str, Any]]] = mapped_column(Json)


class Participant(Model):
    """A person, by an id that means nothing outside of the study; a person without a study is a guest."""

    __tablename__ = "participant"
    __table_args__ = (UniqueConstraint("study_id", "code"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int | None] = mapped_column(ForeignKey("study.id", ondelete="CASCADE"))
    code: Mapped[str] = mapped_column(String(40))  # shown in pages and exports
    # A keyed hash of the recruiter's id, which links a person's studies and outlives the id.
    person_hash: Mapped[str | None] = mapped_column(String(64), index=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    erased_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # when the person's data were deleted


class Enrolment(Model):
    """A participant in a version of a study, with their progress step by step."""

    __tablename__ = "enrolment"
    __table_args__ = (UniqueConstraint("wave_id", "participant_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    participant_id: Mapped[int] = mapped_column(ForeignKey("participant.id", ondelete="CASCADE"), index=True)
    study_version_id: Mapped[int] = mapped_column(ForeignKey("study_version.id"), index=True)
    wave_id: Mapped[int | None] = mapped_column(ForeignKey("wave.id"))  # None: a preview, which belongs to none
    token: Mapped[str | None] = mapped_column(String(43), unique=True)  # of the person's private link
    device: Mapped[str | None] = mapped_column(String(10))  # desktop | tablet | phone
    stratum: Mapped[str | None] = mapped_column(String(40))
    arm_id: Mapped[int | None] = mapped_column(ForeignKey("arm.id"), index=True)  # from the first match on
    assigned_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    holds_place: Mapped[bool] = mapped_column(default=True)  # from the consent until an ending frees it
    agreed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # None: has arrived, but not taken part
    plan: Mapped[dict[str, Any] | None] = mapped_column(Json)  # what was drawn: orders, material, sides, who starts
    step: Mapped[int] = mapped_column(default=0)  # the position of `stage` among the steps
    stage: Mapped[str] = mapped_column(String(20))  # the kind of page that the person is on
    ending: Mapped[str | None] = mapped_column(String(20))  # completed, declined, withdrawn …; None: under way
    answers: Mapped[dict[str, Any]] = mapped_column(Json)  # to quizzes and surveys
    enrolled_at: Mapped[datetime] = mapped_column(UtcDateTime)
    seen_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # the last sign of life
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Consent(Model):
    """An answer to a question for consent, and whether it was withdrawn."""

    __tablename__ = "consent"

    id: Mapped[int] = mapped_column(primary_key=True)
    participant_id: Mapped[int] = mapped_column(ForeignKey("participant.id", ondelete="CASCADE"), index=True)
    kind: Mapped[str] = mapped_column(String(20))  # participation | training | publication
    text_version: Mapped[str] = mapped_column(String(64))  # the hash of the text that was read
    given: Mapped[bool]
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    withdrawn_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class RecruitmentIdentity(Model):
    """A recruiter's id of a participant, kept separate from everything else so that it can be removed on its own."""

    __tablename__ = "recruitment_identity"
    __table_args__ = (UniqueConstraint("recruiter", "external_id", "participant_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    participant_id: Mapped[int] = mapped_column(ForeignKey("participant.id", ondelete="CASCADE"), index=True)
    recruiter: Mapped[str] = mapped_column(String(20))  # prolific | connect | link; mturk: before it closed
    external_id: Mapped[str] = mapped_column(String(200))
    remove_on: Mapped[date | None]  # the day on which the row is deleted
