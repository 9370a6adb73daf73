"""Training jobs: a dataset and a base become a language model. And what a job told while it ran."""

from typing import Any

from sqlalchemy import ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.extensions import Model
from app.models.job import JobMixin, LeaseMixin
from app.models.types import Json


class TrainingJob(JobMixin, LeaseMixin, Model):
    """A training that somebody asked for. Whoever runs it holds the lease; the figures are of its last event."""

    __tablename__ = "training_job"
    __table_args__ = (Index("ix_training_job_to_run", "status", "queued"),)

    name: Mapped[str] = mapped_column(String(80))  # of the model that it is to make
    method: Mapped[str] = mapped_column(String(20))
    backend: Mapped[str] = mapped_column(String(20))  # local
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.id"), index=True)
    base_id: Mapped[int | None] = mapped_column(ForeignKey("language_model.id"), index=True)  # none: from nothing
    config: Mapped[dict[str, Any]] = mapped_column(Json)  # the fields of `python -m training` that were given

    device: Mapped[str | None] = mapped_column(String(120))
    step: Mapped[int | None]
    steps: Mapped[int | None]  # of how many
    loss: Mapped[float | None]  # mean of a token, as it was told last
    log: Mapped[str] = mapped_column(Text, default="")  # the last lines that it printed
    model_id: Mapped[int | None] = mapped_column(ForeignKey("language_model.id"), unique=True)  # what came of it
    registered_step: Mapped[int | None]  # whose weights that model has: of the best evaluation, else the last


class TrainingEvent(Model):
    """A line of a job's progress stream, as docs/training.md describes it. `number` counts from 0."""

    __tablename__ = "training_event"

    job_id: Mapped[int] = mapped_column(ForeignKey("training_job.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[dict[str, Any]] = mapped_column(Json)
