"""The steps of a run. Each is small, is stored before the next, and may be done by another process.

The job of a step is created in one transaction with the step's row, whose key is the step's name with the values of
its loops; then it is waited for. What takes longer than a transaction may (cutting a dataset, a look through training
data) is done before that; if it is done twice, a dataset is left over that nothing refers to. So whatever is killed,
each step's job is there once, and the run goes on from its last step.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.core.errors import AppError, Verbatim
from app.core.extensions import reading, writing
from app.jobs import states
from app.jobs.chained import AwaitedJob
from app.jobs.context import JobContext
from app.jobs.kind import finish
from app.jobs.spending import BudgetReached
from app.models import RecipeRun, RecipeStep
from app.recipes.faults import RecipeFault
from app.recipes.job import RECIPE, job_of, steps_of
from app.recipes.lifecycle import plan_of
from app.recipes.outline import SEED
from app.recipes.plan import PlannedStep, RecipePlan, spec_of
from app.recipes.step_actions import ACTIONS, StepContext, results_of_step


class _Begin(NamedTuple):
    """A step that is to be begun."""

    step: PlannedStep


class _Measure(NamedTuple):
    """A step whose job is done, and whose figures are to be taken."""

    step: PlannedStep


def run(context: JobContext, number: int) -> None:
    """Take every step of a run that can be taken now. Upkeep calls a worker when the next may be due."""
    take_steps(context, number)


def take_steps(context: JobContext, number: int) -> AwaitedJob | None:
    """Take every step that can be taken at once. Returns what has to be over before the next one, if anything has."""
    return RECIPE.take_steps(context, number, _placed_steps)


def _placed_steps(context: JobContext, number: int) -> AwaitedJob | None:
    """As `_steps`; a fault of the recipe is an AppError that begins with its name."""
    try:
        return _steps(context, number)
    except RecipeFault as fault:
        with reading(context.database) as session:
            raise fault.placed(RECIPE.get(session, number).recipe) from None


def _steps(context: JobContext, number: int) -> AwaitedJob | None:
    with reading(context.database) as session:
        row = RECIPE.get(session, number)
        awaited = RECIPE.awaited_jobs(session, [number]).get(number)
        if awaited is not None and awaited.row(session).status in states.LIVE:
            return awaited  # without the plan, which takes up to a second: workers look every few seconds
        plan = plan_of(row)
        own = StepContext(context, dict(row.files), plan.inputs.get(SEED, 0))
    while True:
        with writing(context.database) as session:
            held = RECIPE.running(session, number, context.owner)
            due = None if held is None else _next(session, held, plan)
        if isinstance(due, _Begin):
            _begin(own, number, due.step)
        elif isinstance(due, _Measure):
            _measure(context, number, due.step)
        else:
            return due


def _next(session: Session, row: RecipeRun, plan: RecipePlan) -> AwaitedJob | _Begin | _Measure | None:
    """What has to be over, or to be done, before the run goes on; None when it is over or has failed."""
    begun = _begun(session, row.id)
    for planned in plan.steps:
        step = begun.get(planned.key)
        if step is None:
            return _Begin(planned)
        if step.ended_at is not None:
            continue
        if (job := job_of(step)) is not None and not RECIPE.is_done(session, row, job):
            return job if row.status == states.RUNNING else None
        if ACTIONS[planned.kind.name].measure is not None:
            return _Measure(planned)
        step.ended_at = datetime.now(UTC)
    finish(row)
    return None


def _begun(session: Session, number: int) -> dict[str, RecipeStep]:
    """The steps of a run that were begun, by their keys."""
    return {step.key: step for step in steps_of(session, number)}


# ---- What is done ----------------------------------------------------------------


def _begin(context: StepContext, number: int, planned: PlannedStep) -> None:
    """Create a step with its job, or what it makes. Raises AppError."""
    action = ACTIONS[planned.kind.name]
    try:
        with reading(context.job.database) as session:
            begun = _begun(session, number)
            taken = {key for made in planned.takes for key in made.keys}
            spec = spec_of(planned, {key: results_of_step(session, begun[key]) for key in taken})
            session.expunge_all()
        prepared = action.prepare(context, spec, begun)
        with writing(context.job.database) as session:
            row = RECIPE.running(session, number, context.job.owner)
            if row is None:
                return
            row.lease_count, now = 0, datetime.now(UTC)  # whoever died before did not do so in vain
            columns = action.begin(session, context, row, spec, prepared)
            session.add(
                RecipeStep(
                    run_id=number, key=planned.key, place=planned.place, name=planned.step.name,
                    values=dict(planned.values), spec=spec.to_json(), begun_at=now,
                    ended_at=None if "kind" in columns else now, **columns,
                )
            )  # fmt: skip
    except BudgetReached:
        raise
    except AppError as error:
        raise AppError(Verbatim(f"{planned.key}: {error.message}")) from None


def _measure(context: JobContext, number: int, planned: PlannedStep) -> None:
    """Take the figures of a step whose job is done."""
    measure = ACTIONS[planned.kind.name].measure
    with reading(context.database) as session:
        begun: Mapping[str, RecipeStep] = _begun(session, number)
        figures = None if measure is None else measure(session, begun[planned.key], begun)
    with writing(context.database) as session:
        if RECIPE.running(session, number, context.owner) is not None:
            step = session.get_one(RecipeStep, (number, planned.key))
            step.figures, step.ended_at = figures, datetime.now(UTC)
