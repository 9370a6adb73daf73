"""Benchmarks as a kind of job: one worker scores one model."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.errors import Phrase
from app.core.queues import BATCH, TRAIN
from app.jobs.kind import JobKind, Progress
from app.models import BenchmarkJob, BenchmarkResult, LanguageModel


class BenchmarkKind(JobKind[BenchmarkJob]):
    """See the module. A checkpoint is computed where trainings run; a model behind an API is only called."""

    def queue_of(self, session: Session, number: int) -> str:
        """The queue for the job's kind of model."""
        model = session.get_one(LanguageModel, self.get(session, number).model_id)
        return BATCH if model.kind == "api" else TRAIN

    def progress_of(self, session: Session, rows: Sequence[BenchmarkJob]) -> Mapping[int, Progress]:
        """How many of all tasks are scored."""
        counted = (
            select(BenchmarkResult.job_id, func.count())
            .where(BenchmarkResult.job_id.in_([row.id for row in rows]))
            .group_by(BenchmarkResult.job_id)
        )
        done = dict(session.execute(counted).all())
        return {row.id: (done.get(row.id, 0), len(row.tasks)) for row in rows}


BENCHMARK = BenchmarkKind(
    name="benchmark",
    plural="benchmarks",
    numbered=lambda number: Phrase("benchmark %(number)s", number=number),
    place=4,
    table=BenchmarkJob,
    queue=TRAIN,
    runner="app.benchmarks.runner:run",
    spends=True,
    listing="app.benchmarks.listing:LIST",
    page="app.benchmarks.page:PAGE",
    curves="app.benchmarks.curves:curves",
    creation="app.benchmarks.creation:CREATION",
    lease_seconds=lambda settings: settings.TRAIN_LEASE,
    patience=timedelta(seconds=30),  # a job may wait long behind a training
)
