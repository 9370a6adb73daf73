"""Alignments: a model learns demonstrations, lives in a society, learns from its data, and lives in a society again."""

from typing import Any

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.job import JobMixin, LeaseMixin
from app.models.types import Json


class Alignment(JobMixin, LeaseMixin, Model):
    """A requested chain of jobs; its steps are in `app/models/recipe.py`.

    The worker that takes its next step holds the lease while that step lasts.
    """

    __tablename__ = "alignment"
    __table_args__ = (Index("ix_alignment_to_run", "status", "queued"),)

    name: Mapped[str] = mapped_column(String(80))  # its models are called NAME-sft and NAME-aligned
    base_id: Mapped[int] = mapped_column(ForeignKey("language_model.id"), index=True)
    spec: Mapped[dict[str, Any]] = mapped_column(Json)  # what was asked for, fully resolved
    # "questions" and "priors" of the societies, and "held_out" questions: thousands, so they are read only where
    # needed.
    material: Mapped[dict[str, Any]] = mapped_column(Json, deferred=True)
