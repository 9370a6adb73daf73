"""The engine of steps. Each step is small, is stored before the next, and may be taken by a different process.

The job of a step is created in one transaction with the step's row, whose key is the step's name with the values of its
loops; then it is waited for. What takes longer than a transaction may (making a dataset, searching training data) is
done before that; if it is done twice, an unreferenced dataset is left over. So whatever is killed, each step's job
exists once, and the work resumes from its last step.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy.orm import Session

from app.core.errors import AppError, Verbatim
from app.core.extensions import reading, writing
from app.jobs import states
from app.jobs.chained import AwaitedJob
from app.jobs.context import JobContext
from app.jobs.kind import finish
from app.jobs.spending import BudgetReached
from app.models import RecipeStep
from app.recipes.faults import RecipeFault
from app.recipes.plan import PlannedStep, RecipePlan, spec_of
from app.recipes.step_actions import ACTIONS, StepContext, StepInputs, results_of_step
from app.recipes.stepped import SteppedKind, job_of

R = TypeVar("R", bound=Any)


class _Begin(NamedTuple):
    """A step that is to be begun."""

    step: PlannedStep


class _Measure(NamedTuple):
    """A step whose job is done and whose figures are to be computed."""

    step: PlannedStep


@dataclass(frozen=True)
class StepEngine(Generic[R]):
    """Takes the steps of a kind of job.

    plan_of: all steps of a job. inputs_of: what they are played on and asked. called: the name of a job's recipe in
    error messages.
    """

    kind: SteppedKind[R]
    plan_of: Callable[[Session, R], RecipePlan]
    inputs_of: Callable[[R], StepInputs]
    called: Callable[[R], str]

    def run(self, context: JobContext, number: int) -> None:
        """Take every step of a job that can be taken now. Upkeep calls a worker when the next may be due."""
        self.take_steps(context, number)

    def take_steps(self, context: JobContext, number: int) -> AwaitedJob | None:
        """Take every step that can be taken at once.

        Returns the job that has to be over before the next step, if any.
        """
        return self.kind.take_steps(context, number, self._placed_steps)

    def _placed_steps(self, context: JobContext, number: int) -> AwaitedJob | None:
        """Like `_take_due_steps`; an error in the recipe becomes an AppError that begins with its name."""
        try:
            return self._take_due_steps(context, number)
        except RecipeFault as fault:
            with reading(context.database) as session:
                raise fault.placed(self.called(self.kind.get(session, number))) from None

    def _take_due_steps(self, context: JobContext, number: int) -> AwaitedJob | None:
        with reading(context.database) as session:
            row = self.kind.get(session, number)
            awaited = self.kind.awaited_jobs(session, [number]).get(number)
            if awaited is not None and awaited.row(session).status in states.LIVE:
                return awaited  # without the plan, which takes up to a second: workers look every few seconds
            plan = self.plan_of(session, row)
            own = StepContext(context, self.kind, self.inputs_of(row))
        while True:
            with writing(context.database) as session:
                held = self.kind.running(session, number, context.owner)
                due = None if held is None else self._next(session, held, plan)
            if isinstance(due, _Begin):
                self._begin_step(own, number, due.step)
            elif isinstance(due, _Measure):
                self._measure(context, number, due.step)
            else:
                return due

    def _next(self, session: Session, row: R, plan: RecipePlan) -> AwaitedJob | _Begin | _Measure | None:
        """What has to be over, or to be done, before the job can continue; None if it is over or has failed."""
        begun = self._begun_steps(session, row.id)
        for planned in plan.steps:
            step = begun.get(planned.key)
            if step is None:
                return _Begin(planned)
            if step.ended_at is not None:
                continue
            if (job := job_of(step)) is not None and not self.kind.is_done(session, row, job):
                return job if row.status == states.RUNNING else None
            if ACTIONS[planned.kind.name].measure is not None:
                return _Measure(planned)
            step.ended_at = datetime.now(UTC)
        finish(row)
        return None

    def _begun_steps(self, session: Session, number: int) -> dict[str, RecipeStep]:
        """The steps of a job that were begun, by their keys."""
        return {step.key: step for step in self.kind.steps_of(session, number)}

    # ---- What is done --------------------------------------------------------------

    def _begin_step(self, context: StepContext, number: int, planned: PlannedStep) -> None:
        """Create a step with its job, or with its result. Raises AppError."""
        action = ACTIONS[planned.kind.name]
        try:
            with reading(context.job.database) as session:
                begun = self._begun_steps(session, number)
                taken = {key for made in planned.takes for key in made.keys}
                spec = spec_of(planned, {key: results_of_step(session, begun[key]) for key in taken})
                session.expunge_all()
            prepared = action.prepare(context, spec, begun)
            with writing(context.job.database) as session:
                row = self.kind.running(session, number, context.job.owner)
                if row is None:
                    return
                row.lease_count, now = 0, datetime.now(UTC)  # workers that died before did not do so in vain
                columns = action.begin(session, context, row, spec, prepared)
                session.add(
                    RecipeStep(
                        **{self.kind.owner: number}, key=planned.key, place=planned.place, name=planned.step.name,
                        values=dict(planned.values), spec=spec.to_json(), begun_at=now,
                        ended_at=None if "kind" in columns else now, **columns,
                    )
                )  # fmt: skip
        except BudgetReached:
            raise
        except AppError as error:
            raise AppError(Verbatim(f"{planned.key}: {error.message}")) from None

    def _measure(self, context: JobContext, number: int, planned: PlannedStep) -> None:
        """Compute the figures of a step whose job is done."""
        measure = ACTIONS[planned.kind.name].measure
        with reading(context.database) as session:
            begun: Mapping[str, RecipeStep] = self._begun_steps(session, number)
            figures = None if measure is None else measure(session, begun[planned.key], begun)
        with writing(context.database) as session:
            if self.kind.running(session, number, context.owner) is not None:
                step = self._begun_steps(session, number)[planned.key]
                step.figures, step.ended_at = figures, datetime.now(UTC)
