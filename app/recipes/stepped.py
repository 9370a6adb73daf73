"""Job kinds that consist of a recipe's steps: recipe runs, campaigns and alignments."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from app.assessments.job import ASSESSMENT
from app.benchmarks.job import BENCHMARK
from app.finetuning.job import TRAINING
from app.jobs import states
from app.jobs.chained import AwaitedJob, ChainedKind
from app.jobs.kind import JobKind
from app.models import RecipeStep
from app.rounds.job import ROUND
from app.society.job import SOCIETY

JOBS_OF_STEPS: Mapping[str, JobKind[Any]] = {
    kind.name: kind for kind in (ROUND, TRAINING, BENCHMARK, SOCIETY, ASSESSMENT)
}
R = TypeVar("R", bound=Any)


class SteppedKind(ChainedKind[R], Generic[R]):
    """A kind whose jobs have steps. Stopping or resuming one does the same to the job of its current step.

    `owner` is the name of the step column that holds the number of the job to which the step belongs.
    """

    owner: ClassVar[str]

    @property
    def column(self) -> Any:
        """The owner column, for a WHERE."""
        return getattr(RecipeStep, self.owner)

    def begun_jobs(self, session: Session, row: R) -> Sequence[AwaitedJob]:
        """The jobs of all steps that have begun."""
        return [job for step in self.steps_of(session, row.id) if (job := job_of(step)) is not None]

    def awaited_jobs(self, session: Session, numbers: Collection[int]) -> dict[int, AwaitedJob]:
        """The job of each one's current step, unless it is done."""
        begun = select(self.column, RecipeStep).where(self.column.in_(numbers), RecipeStep.ended_at.is_(None))
        found = {number: job for number, step in session.execute(begun) if (job := job_of(step)) is not None}
        undone: set[AwaitedJob] = set()
        for kind in {job.kind for job in found.values()}:
            own = {job.number for job in found.values() if job.kind is kind}
            rows = select(kind.table.id).where(kind.table.id.in_(own), kind.table.status != states.DONE)
            undone |= {AwaitedJob(kind, number) for number in session.scalars(rows)}
        return {number: job for number, job in found.items() if job in undone}

    def steps_of(self, session: Session, number: int) -> Sequence[RecipeStep]:
        """The steps of a job that have begun, in order."""
        return self.steps_of_each(session, [number])[number]

    def steps_of_each(self, session: Session, numbers: Collection[int]) -> dict[int, list[RecipeStep]]:
        """The steps of each of these jobs that have begun, in order, read with one statement."""
        begun = select(self.column, RecipeStep).where(self.column.in_(numbers)).order_by(self.column, RecipeStep.place)
        found: dict[int, list[RecipeStep]] = {number: [] for number in numbers}
        for number, step in session.execute(begun):
            found[number].append(step)
        return found

    def count_steps(self, session: Session, rows: Sequence[R], *conditions: ColumnElement[bool]) -> dict[int, int]:
        """The number of begun steps that meet all conditions, by job number."""
        counted = select(self.column, func.count()).where(self.column.in_([row.id for row in rows]), *conditions)
        found: dict[int, int] = dict(session.execute(counted.group_by(self.column)).all())
        return {row.id: found.get(row.id, 0) for row in rows}


def job_of(step: RecipeStep) -> AwaitedJob | None:
    """The job of a step; None where it needs none."""
    if step.kind is None or step.number is None:
        return None
    return AwaitedJob(JOBS_OF_STEPS[step.kind], step.number)
