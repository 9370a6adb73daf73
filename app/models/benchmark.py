"""Benchmarks: a model's scores on reasoning tasks, and the chats that were sent for them to a model behind an API."""

from typing import Any

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.job import JobMixin, LeaseMixin
from app.models.types import Json


class BenchmarkJob(JobMixin, LeaseMixin, Model):
    """A model that is to be scored on tasks, all of them under the same settings."""

    __tablename__ = "benchmark_job"
    __table_args__ = (Index("ix_benchmark_job_to_run", "status", "queued"),)

    spec: Mapped[dict[str, Any] | None] = mapped_column(Json)  # what was asked for, as the spec of its kind
    model_id: Mapped[int] = mapped_column(ForeignKey("language_model.id"), index=True)
    tasks: Mapped[list[str]] = mapped_column(Json)  # task names, in scoring order
    # Runs with different values of these cannot be compared. None: all items; as many examples as a task says.
    item_limit: Mapped[int | None]
    shots: Mapped[int | None]
    batch: Mapped[int]  # sequences computed together; it changes no score
    device: Mapped[str | None] = mapped_column(String(120))
    step: Mapped[str | None] = mapped_column(String(200))  # the task being scored, and its progress


class BenchmarkResult(Model):
    """The scores of a task. `value` and `stderr` are of its headline metric; `scores` has all of them."""

    __tablename__ = "benchmark_result"

    job_id: Mapped[int] = mapped_column(ForeignKey("benchmark_job.id", ondelete="CASCADE"), primary_key=True)
    task: Mapped[str] = mapped_column(String(120), primary_key=True)
    metric: Mapped[str] = mapped_column(String(80))
    value: Mapped[float]
    stderr: Mapped[float | None]
    n: Mapped[int]  # items
    seconds: Mapped[float]
    source: Mapped[str] = mapped_column(String(80))  # what scored it, with its version
    version: Mapped[str] = mapped_column(String(80))  # the task's version
    scores: Mapped[dict[str, Any]] = mapped_column(Json)  # {"value", "stderr"} by metric


class BenchmarkAnswer(Model):
    """A chat that a job sent to a model behind an API, looked up by the hash of what was asked."""

    __tablename__ = "benchmark_answer"

    job_id: Mapped[int] = mapped_column(ForeignKey("benchmark_job.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    request_id: Mapped[int] = mapped_column(ForeignKey("model_request.id"), index=True)
