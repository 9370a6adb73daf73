"""Recipe runs for experimenters: a page of them, and the steps of one with their jobs and results."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.errors import Phrase
from app.core.lists import ListColumn, Listing, Reference, of_other
from app.finetuning.job import TRAINING
from app.jobs import states
from app.jobs.chained import AwaitedJob
from app.jobs.kind import JobKind
from app.jobs.listing import JobListItem, job_columns, job_figures, job_items
from app.jobs.page import job_references
from app.models import Dataset, LanguageModel, RecipeRun, RecipeStep, TrainingJob
from app.recipes import lifecycle
from app.recipes.job import RECIPE
from app.recipes.plan import outline_of
from app.recipes.stepped import JOBS_OF_STEPS, job_of

_SHOWN_FIGURES = 3  # of a step, in its line
JSON = dict[str, Any]


class RecipeStepLine(NamedTuple):
    """A step of a run: what it does, its job with the progress once it has begun, and its results."""

    key: str
    do: str
    values: Mapping[str, Any]  # of its loops' variables, including those of a sweep
    step: RecipeStep | None  # None: not begun
    item: JobListItem | None  # its job
    job: Reference | None
    made: Sequence[Reference]  # a model, or datasets

    @property
    def status(self) -> str | None:
        """The label of its job's status; for a step without a job, whether it is done. None: not begun."""
        if self.item is not None:
            return self.item.state
        return None if self.step is None else states.DONE

    @property
    def result(self) -> JSON:
        """All of its figures by name, or its table."""
        return {} if self.step is None else self.step.figures or {}

    @property
    def figures(self) -> Sequence[str]:
        """The first of its figures in words; tables are shown separately."""
        found = {} if "rows" in self.result else self.result
        return [f"{name.replace('_', ' ')} {value_in_words(each)}" for name, each in [*found.items()][:_SHOWN_FIGURES]]


def value_in_words(found: Mapping[str, Any]) -> str:
    """A figure with its interval, if it has one."""
    if found.get("value") is None:
        return "none"
    low, high = found.get("low"), found.get("high")
    return f"{found['value']:.4g}" + ("" if low is None or high is None else f" ({low:.4g} to {high:.4g})")


def steps_of(row: RecipeRun) -> Sequence[tuple[str, str, Mapping[str, Any]]]:
    """The steps of a run in order: each with its key, what it does, and the values of its loop variables."""
    outline = outline_of(*lifecycle.written_of(row))
    return [(turn.key, outline.file.steps[turn.index].do, turn.values) for turn in outline.turns]


def lines_of(session: Session, row: RecipeRun) -> list[RecipeStepLine]:
    """All steps of a run in order, read with a constant number of statements."""
    begun = {step.key: step for step in RECIPE.steps_of(session, row.id)}
    jobs, made = _jobs(session, begun.values()), _models_and_datasets_made(session, begun.values())
    cells = cells_of_jobs(session, begun.values())
    return [
        RecipeStepLine(key, do, values, step, jobs.get(job), cells.get(job), made.get(key, ()))
        for key, do, values in steps_of(row)
        for step in [begun.get(key)]
        for job in [None if step is None else job_of(step)]
    ]


def tables_of(session: Session, row: RecipeRun) -> list[RecipeStep]:
    """The steps of a run that made tables."""
    return [step for step in RECIPE.steps_of(session, row.id) if step.figures is not None and "rows" in step.figures]


class ShownTable(NamedTuple):
    """A table of a run in words: its column headings and its lines."""

    name: str
    head: Sequence[str]
    lines: Sequence[Sequence[str]]


def shown_tables(session: Session, row: RecipeRun) -> list[ShownTable]:
    """The tables of a run that exist so far."""
    return [_shown_table(step.key, step.figures or {}) for step in tables_of(session, row)]


def _shown_table(name: str, table: Mapping[str, Any]) -> ShownTable:
    with_models = any(row["model"] for row in table["rows"])
    head = ["step", *table["variables"], *(["model"] if with_models else [])]
    head += [column.replace("_", " ") for column in table["columns"]]
    lines = [
        [
            row["step"],
            *(in_words(row["values"].get(variable, "")) for variable in table["variables"]),
            *([row["model"] or ""] if with_models else []),
            *(value_in_words(row["figures"].get(column, {})) for column in table["columns"]),
        ]
        for row in table["rows"]
    ]
    return ShownTable(name, head, lines)


def in_words(value: Any) -> str:
    """The value of an input or a variable as written in a file."""
    if isinstance(value, list):
        return ", ".join(map(in_words, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def cells_of_jobs(session: Session, steps: Iterable[RecipeStep]) -> dict[AwaitedJob | None, Reference]:
    """The jobs of steps, as cells that link to them."""
    numbers: dict[JobKind[Any], list[int]] = {}
    for kind, number in (job for step in steps if (job := job_of(step)) is not None):
        numbers.setdefault(kind, []).append(number)
    return {
        AwaitedJob(kind, number): cell
        for kind, those in numbers.items()
        for number, cell in job_references(session, kind, those).items()
    }


def _jobs(session: Session, steps: Iterable[RecipeStep]) -> dict[AwaitedJob | None, JobListItem]:
    """The jobs of steps, as list items."""
    begun = [job for step in steps if (job := job_of(step)) is not None]
    found: dict[AwaitedJob | None, JobListItem] = {}
    for kind in JOBS_OF_STEPS.values():
        numbers = {job.number for job in begun if job.kind is kind}
        rows = session.scalars(select(kind.table).where(kind.table.id.in_(numbers))).all() if numbers else []
        found |= {AwaitedJob(kind, item.row.id): item for item in job_items(session, kind, rows)}
    return found


def _models_and_datasets_made(session: Session, steps: Iterable[RecipeStep]) -> dict[str, list[Reference]]:
    """The model or the datasets that each step made, by its key."""
    known = [*steps]
    trainings = {step.number: step.key for step in known if step.kind == TRAINING.name}
    trained = (
        select(TrainingJob.id, LanguageModel)
        .join(LanguageModel, LanguageModel.id == TrainingJob.model_id)
        .where(TrainingJob.id.in_(trainings))
    )
    found: dict[str, list[Reference]] = {}
    for number, model in session.execute(trained):
        found[trainings[number]] = [Reference("model", model.id, model.name)]
    numbers = {number for step in known for number in (step.dataset_id, step.realignment_id) if number is not None}
    datasets = {row.id: row for row in session.scalars(select(Dataset).where(Dataset.id.in_(numbers)))}
    for step in known:
        for row in (datasets.get(number or 0) for number in (step.dataset_id, step.realignment_id)):
            if row is not None:
                found.setdefault(step.key, []).append(Reference("dataset", row.id, row.reference))
    return found


def progress_of(session: Session, rows: Sequence[RecipeRun]) -> dict[int, JSON]:
    """The progress of runs by number, as figures by name; `at` changes with each step and its job's status."""
    awaited = RECIPE.awaited_jobs(session, [row.id for row in rows])
    found = {}
    for item in job_items(session, RECIPE, rows):
        part = awaited.get(item.row.id)
        begun = session.scalar(select(func.count()).where(RecipeStep.run_id == item.row.id))
        at = item.state, item.done, begun, None if part is None else part.row(session).status
        found[item.row.id] = {**job_figures(item), "at": json.dumps(at)}
    return found


LIST: Listing[RecipeRun] = Listing(
    name=RECIPE.plural,
    table=RecipeRun,
    columns=job_columns(
        RECIPE,
        ListColumn("recipe", Phrase("Recipe"), lambda each: each.row.recipe, sort=RecipeRun.recipe),
        title=Phrase("Run"),
        done=Phrase("Steps done"),
        sort_done=of_other(func.count(), (RecipeStep.run_id == RecipeRun.id) & RecipeStep.ended_at.is_not(None)),
    ),
    items=lambda session, rows: job_items(session, RECIPE, rows),
)
