"""Alignments for experimenters: the list, and the jobs of each with what they made and their results."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.alignments.comparison import SocietyDifference, society_differences
from app.alignments.job import ALIGNMENT, AlignmentPart, parts_of
from app.alignments.step_names import (
    ASSESSMENT,
    COMPARISONS,
    DEMONSTRATIONS,
    FIRST_SOCIETY,
    SECOND_SOCIETY,
    TRAINING,
)
from app.assessments import job as assessment_job
from app.assessments import listing as assessments
from app.assessments.figures import AssessmentFigures
from app.core.errors import Phrase
from app.core.lists import Listing, Reference, of_other
from app.finetuning import job as trainings
from app.games.base import JSON
from app.jobs import states
from app.jobs.chained import AwaitedJob
from app.jobs.listing import JobListItem, job_columns, job_figures, job_items
from app.models import Alignment, Dataset, LanguageModel, RecipeStep, TrainingJob
from app.recipes.listing import cells_of_jobs
from app.recipes.stepped import JOBS_OF_STEPS, job_of
from app.registry.listing import model_column
from app.society.store import agents_of, read_ratings


@dataclass(frozen=True)
class AlignmentListItem(JobListItem):
    """An alignment in a list: its base, the part that it is at or has stopped at, and the model that it made."""

    base: LanguageModel
    part: AlignmentPart | None  # None when it is done
    model: LanguageModel | None
    steps: Mapping[str, RecipeStep] = field(default_factory=dict)  # started steps, by name

    def number_of(self, step: str) -> int | None:
        """The number of a step's job; None before it has started."""
        return self.steps[step].number if step in self.steps else None

    @property
    def dataset_id(self) -> int | None:
        """The dataset of comparisons made from the first society."""
        return self.steps[COMPARISONS].dataset_id if COMPARISONS in self.steps else None

    @property
    def realignment_id(self) -> int | None:
        """The dataset of conversations mixed in; None if no revision was good enough."""
        return self.steps[COMPARISONS].realignment_id if COMPARISONS in self.steps else None

    @property
    def demonstrations_id(self) -> int | None:
        """The dataset of demonstrations; None without any, and before the training on them has started."""
        taught = self.steps.get(DEMONSTRATIONS)
        return None if taught is None else int(taught.spec["dataset"])


class AlignmentStep(NamedTuple):
    """A part of an alignment: its job once started, the job's progress, and what was made by or for it."""

    part: AlignmentPart
    item: JobListItem | None
    job: Reference | None
    model: LanguageModel | None  # made by a training
    datasets: Sequence[Dataset]  # demonstrations, or datasets cut from the first society


class AlignmentJob(NamedTuple):
    """A part of an alignment: its job, with its kind, number and status once started, and the model made."""

    part: str
    job: Reference | None
    kind: str
    number: int | None
    status: str | None
    made: str | None


def list_items(session: Session, rows: Sequence[Alignment]) -> list[AlignmentListItem]:
    """Alignments as items of a list, in a constant number of statements."""
    steps = _steps_by_name(session, rows)
    aligned = {row.id: step.number for row in rows if (step := steps[row.id].get(TRAINING)) is not None}
    jobs = select(TrainingJob.id, TrainingJob.model_id).where(TrainingJob.id.in_(aligned.values()))
    made = dict(session.execute(jobs).all())
    wanted = {*(row.base_id for row in rows), *(number for number in made.values() if number is not None)}
    models = session.scalars(select(LanguageModel).where(LanguageModel.id.in_(wanted)))
    known = {each.id: each for each in models}
    return [
        AlignmentListItem(
            **vars(item),
            base=known[item.row.base_id],
            part=_part_of(item.row, steps[item.row.id]),
            model=known.get(made.get(aligned.get(item.row.id) or 0) or 0),
            steps=steps[item.row.id],
        )
        for item in job_items(session, ALIGNMENT, rows)
    ]


def _steps_by_name(session: Session, rows: Sequence[Alignment]) -> dict[int, dict[str, RecipeStep]]:
    """The started steps of each alignment, by name."""
    begun = ALIGNMENT.steps_of_each(session, [row.id for row in rows])
    return {number: {step.name: step for step in steps} for number, steps in begun.items()}


def steps_of(session: Session, item: AlignmentListItem) -> list[AlignmentStep]:
    """The parts of an alignment, in order, with what exists of each so far."""
    found, cells = [], cells_of_jobs(session, item.steps.values())
    for part in parts_of(item.row):
        number = item.number_of(part.step)
        job = None if number is None else part.kind.get(session, number)
        made = job.model_id if part.kind is trainings.TRAINING and job is not None else None
        found.append(
            AlignmentStep(
                part,
                None if job is None else job_items(session, part.kind, [job])[0],
                None if number is None else cells[AwaitedJob(part.kind, number)],
                None if made is None else session.get_one(LanguageModel, made),
                [session.get_one(Dataset, each) for each in _datasets_of(item, part) if each is not None],
            )
        )
    return found


def progress_of(session: Session, rows: Sequence[Alignment]) -> dict[int, JSON]:
    """The progress of the jobs that alignments wait for, as figures by name, by alignment number."""
    return {row.id: _progress_of(session, row) for row in rows}


def _progress_of(session: Session, row: Alignment) -> JSON:
    """The progress of the job that an alignment waits for, as figures by name; `at` changes with each step."""
    [item] = job_items(session, ALIGNMENT, [row])
    steps = ALIGNMENT.steps_of(session, row.id)
    jobs, now = [job for step in steps if (job := job_of(step)) is not None], None
    if jobs and row.status != states.DONE:
        [now] = job_items(session, jobs[-1].kind, [jobs[-1].row(session)])
    found = job_figures(item)
    if row.status != states.DONE:
        done, of, percent = (0, None, 0) if now is None else (now.done, now.of, now.percent)
        found |= {"done": done, "of": of, "percent": percent}
    return {**found, "at": json.dumps((item.state, len(steps), now and now.state))}


def society_figures(session: Session, item: AlignmentListItem) -> list[tuple[str, list[SocietyDifference]]]:
    """The first society beside the last: for the agents of the model that learns and, if there are others, all.

    Each with "learner" or "all". Empty until both have an interaction in common.
    """
    begun, again = item.number_of(FIRST_SOCIETY), item.number_of(SECOND_SOCIETY)
    if begun is None or again is None:
        return []
    agents = agents_of(session, begun)
    own = [each.agent for each in agents if each.model_id == _learner_id(session, item)]
    first, last = ([*read_ratings(session, number)] for number in (begun, again))
    wanted = (
        [("learner", own)] if len(own) == len(agents) else [("learner", own), ("all", [each.agent for each in agents])]
    )
    found = [(who, society_differences(first, last, {*those})) for who, those in wanted]
    return [(who, differences) for who, differences in found if differences]


def _learner_id(session: Session, item: AlignmentListItem) -> int | None:
    """The number of the model that learns, as it enters the first society."""
    taught = item.number_of(DEMONSTRATIONS)
    number: int | None = item.base.id if taught is None else trainings.TRAINING.get(session, taught).model_id
    return number


def _part_of(row: Alignment, steps: Mapping[str, RecipeStep]) -> AlignmentPart | None:
    """The part that started last, or the first one; None when all are done."""
    if row.status == states.DONE:
        return None
    begun = [part for part in parts_of(row) if part.step in steps]
    return begun[-1] if begun else parts_of(row)[0]


def _datasets_of(item: AlignmentListItem, part: AlignmentPart) -> Sequence[int | None]:
    if part.step == DEMONSTRATIONS:
        return (item.demonstrations_id,)
    return (item.dataset_id, item.realignment_id) if part.step == FIRST_SOCIETY else ()


def figures_of(session: Session, item: AlignmentListItem) -> list[AssessmentFigures]:
    """The raters' results so far for its model against the one before."""
    number = item.number_of(ASSESSMENT)
    return [] if number is None else assessments.figures_of(session, assessment_job.ASSESSMENT.get(session, number))


def jobs_of(session: Session, items: Sequence[AlignmentListItem]) -> list[list[AlignmentJob]]:
    """The parts of each alignment with their jobs, in a constant number of statements."""
    begun = {job for item in items for step in item.steps.values() if (job := job_of(step)) is not None}
    jobs: dict[AwaitedJob, tuple[Any, str]] = {}
    for kind in JOBS_OF_STEPS.values():
        numbers = {job.number for job in begun if job.kind is kind}
        those = session.scalars(select(kind.table).where(kind.table.id.in_(numbers))).all()
        called = kind.states_of(session, those)
        jobs |= {AwaitedJob(kind, row.id): (row, called[row.id]) for row in those}
    cells = cells_of_jobs(session, (step for item in items for step in item.steps.values()))
    return [[_alignment_job(jobs, cells, item, part) for part in parts_of(item.row)] for item in items]


def _alignment_job(
    jobs: Mapping[AwaitedJob, tuple[Any, str]],
    cells: Mapping[AwaitedJob | None, Reference],
    item: AlignmentListItem,
    part: AlignmentPart,
) -> AlignmentJob:
    number = item.number_of(part.step)
    job = None if number is None else AwaitedJob(part.kind, number)
    found, status = (None, None) if job is None else jobs.get(job, (None, None))
    is_model = part.kind is trainings.TRAINING and found is not None and found.model_id is not None
    made = found.name if is_model and found else None
    return AlignmentJob(part.title, cells.get(job), part.kind.name, number, status, made)


_OWN = RecipeStep.alignment_id == Alignment.id
_TRAINED = (RecipeStep.name == TRAINING) & (RecipeStep.number == TrainingJob.id)
LIST: Listing[Alignment] = Listing(
    name=ALIGNMENT.plural,
    table=Alignment,
    columns=job_columns(
        ALIGNMENT,
        model_column("base", Phrase("Base"), Alignment.base_id),
        model_column(
            "model",
            Phrase("Model"),
            of_other(TrainingJob.model_id, _OWN & _TRAINED),
            none=Phrase("not yet"),
        ),
        title=Phrase("Alignment"),
        done=Phrase("Steps done"),
        sort_done=of_other(func.count(), _OWN & RecipeStep.kind.is_not(None)),
        notes=lambda each: [Phrase(each.part.title.capitalize())] if each.part and not each.row.error else [],
    ),
    items=list_items,
)
