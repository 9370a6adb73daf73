"""Training jobs, which turn a dataset and a base into a language model, and the events of a job."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.job import JobMixin, LeaseMixin
from app.models.types import Json, UtcDateTime


class TrainingJob(JobMixin, LeaseMixin, Model):
    """A requested training. The worker that runs it holds the lease; the figures are those of its last event."""

    __tablename__ = "training_job"
    __table_args__ = (Index("ix_training_job_to_run", "status", "queued"),)

    name: Mapped[str] = mapped_column(String(80))  # of the model to be made
    method: Mapped[str] = mapped_column(String(20))
    backend: Mapped[str] = mapped_column(String(20))  # local, or a vendor's: openai
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.id"), index=True)
    base_id: Mapped[int | None] = mapped_column(ForeignKey("language_model.id"), index=True)  # None: from scratch
    config: Mapped[dict[str, Any]] = mapped_column(Json)  # the fields of the training that were given
    spec: Mapped[dict[str, Any] | None] = mapped_column(Json)  # what was asked for: a TrainingSpec

    device: Mapped[str | None] = mapped_column(String(120))
    step: Mapped[int | None]
    steps: Mapped[int | None]  # the total number
    loss: Mapped[float | None]  # mean per token, at the last step
    log: Mapped[str] = mapped_column(Text, default="")  # the last lines of its output
    model_id: Mapped[int | None] = mapped_column(ForeignKey("language_model.id"), unique=True)  # the model that it made
    registered_step: Mapped[int | None]  # whose weights that model has: the best evaluation's, or else the last

    # For a training at a vendor. The token is stored before anything is sent there, and marks everything made with it.
    remote_token: Mapped[str | None] = mapped_column(String(40))
    remote_file_id: Mapped[str | None] = mapped_column(String(200))
    remote_job_id: Mapped[str | None] = mapped_column(String(200))
    remote_status: Mapped[str | None] = mapped_column(String(80))  # the vendor's latest status
    remote_model: Mapped[str | None] = mapped_column(String(200))  # the resulting model, by the vendor's name
    remote_failures: Mapped[int] = mapped_column(default=0, server_default="0")  # consecutive calls without an answer
    trained_tokens: Mapped[int | None] = mapped_column(BigInteger)  # charged for by the vendor
    poll_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # when to look at it next; None: at once


class TrainingCharge(Model):
    """What is charged for a training begun at a vendor: an estimate until the vendor reports it."""

    __tablename__ = "training_charge"

    token: Mapped[str] = mapped_column(String(40), primary_key=True)  # the job's `remote_token` at that time
    job_id: Mapped[int] = mapped_column(ForeignKey("training_job.id", ondelete="CASCADE"), index=True)
    at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)  # when it began, or when it ended
    tokens: Mapped[int] = mapped_column(BigInteger)  # trained tokens, of all epochs
    is_estimate: Mapped[bool]
    price: Mapped[float | None]  # USD per million of them when it began; None: unknown


class TrainingEvent(Model):
    """A line of a job's progress stream, as described in docs/training.md. `number` counts from 0."""

    __tablename__ = "training_event"

    job_id: Mapped[int] = mapped_column(ForeignKey("training_job.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[dict[str, Any]] = mapped_column(Json)
