"""Rehearsals of studies: bots that go through a copy of a study, and what each of them saw."""

from typing import Any

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.job import JobMixin, LeaseMixin
from app.models.types import Json


class Rehearsal(JobMixin, LeaseMixin, Model):
    """A number of bots that go through a wave of a copy of a version."""

    __tablename__ = "rehearsal"
    __table_args__ = (Index("ix_rehearsal_to_run", "status", "queued"),)

    spec: Mapped[dict[str, Any] | None] = mapped_column(Json)  # what was asked for, as the spec of its kind
    study_version_id: Mapped[int] = mapped_column(ForeignKey("study_version.id"), index=True)  # the original's
    wave_id: Mapped[int] = mapped_column(ForeignKey("wave.id"), index=True)  # the copy's
    bots: Mapped[int]
    seed: Mapped[int]
    live: Mapped[bool]  # against the study's own models


class RehearsedBot(Model):
    """What a bot saw, once it has finished."""

    __tablename__ = "rehearsed_bot"

    rehearsal_id: Mapped[int] = mapped_column(ForeignKey("rehearsal.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)  # from 0
    notes: Mapped[dict[str, Any]] = mapped_column(Json)
