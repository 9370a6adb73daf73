"""Runs of recipes as a kind of jobs. Whoever stops or resumes one does so to the job of the step that it is at."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.assessments.job import ASSESSMENT
from app.benchmarks.job import BENCHMARK
from app.core.errors import Phrase
from app.core.queues import BATCH
from app.finetuning.job import TRAINING
from app.jobs import states
from app.jobs.chained import AwaitedJob, ChainedKind
from app.jobs.kind import JobKind, Progress
from app.models import RecipeRun, RecipeStep
from app.rounds.job import ROUND
from app.society.job import SOCIETY

JOBS_OF_STEPS: Mapping[str, JobKind[Any]] = {
    kind.name: kind for kind in (ROUND, TRAINING, BENCHMARK, SOCIETY, ASSESSMENT)
}


class RecipeKind(ChainedKind[RecipeRun]):
    """See the module."""

    def begun_jobs(self, session: Session, row: RecipeRun) -> Sequence[AwaitedJob]:
        """The jobs of all steps that it has begun."""
        return [job for step in steps_of(session, row.id) if (job := job_of(step)) is not None]

    def awaited_jobs(self, session: Session, numbers: Collection[int]) -> dict[int, AwaitedJob]:
        """The job of the step that each is at, unless it is done."""
        begun = select(RecipeStep).where(RecipeStep.run_id.in_(numbers), RecipeStep.ended_at.is_(None))
        found = {step.run_id: job for step in session.scalars(begun) if (job := job_of(step)) is not None}
        undone: set[AwaitedJob] = set()
        for kind in {job.kind for job in found.values()}:
            own = {job.number for job in found.values() if job.kind is kind}
            rows = select(kind.table.id).where(kind.table.id.in_(own), kind.table.status != states.DONE)
            undone |= {AwaitedJob(kind, number) for number in session.scalars(rows)}
        return {number: job for number, job in found.items() if job in undone}

    def progress_of(self, session: Session, rows: Sequence[RecipeRun]) -> dict[int, Progress]:
        """How many of its steps are over, by run."""
        over = (
            select(RecipeStep.run_id, func.count())
            .where(RecipeStep.run_id.in_([row.id for row in rows]), RecipeStep.ended_at.is_not(None))
            .group_by(RecipeStep.run_id)
        )
        done = dict(session.execute(over).all())
        return {row.id: (done.get(row.id, 0), row.steps) for row in rows}


def steps_of(session: Session, run_id: int) -> Sequence[RecipeStep]:
    """The steps of a run that were begun, in their order."""
    found = select(RecipeStep).where(RecipeStep.run_id == run_id)
    return session.scalars(found.order_by(RecipeStep.place)).all()


def job_of(step: RecipeStep) -> AwaitedJob | None:
    """The job of a step; None where it needs none."""
    if step.kind is None or step.number is None:
        return None
    return AwaitedJob(JOBS_OF_STEPS[step.kind], step.number)


RECIPE = RecipeKind(
    name="recipe",
    plural="recipes",
    place=9,
    table=RecipeRun,
    queue=BATCH,
    runner="app.recipes.steps:run",
    numbered=lambda number: Phrase("recipe run %(number)s", number=number),
    active=Phrase("one that is running"),
    facts=lambda row: {"name": row.name, "recipe": row.recipe},
    spends=True,
    creation="app.recipes.creation:CREATION",
    listing="app.recipes.listing:LIST",
    page="app.recipes.page:PAGE",
)
