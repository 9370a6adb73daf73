"""Alignments for experimenters: their specs, the state of each of their jobs, and the raters' figures."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import case, select
from sqlalchemy.orm import Session

from app.alignments.comparison import SocietyDifference, society_differences
from app.alignments.job import ALIGNMENT, PARTS, AlignmentPart, begun_jobs, parts_of
from app.assessments import listing as assessments
from app.assessments.figures import AssessmentFigures
from app.assessments.job import ASSESSMENT
from app.core.errors import Phrase
from app.core.lists import Listing, of_other
from app.finetuning.job import TRAINING
from app.games.base import JSON
from app.jobs import states
from app.jobs.chained import AwaitedJob
from app.jobs.listing import JobListItem, job_columns, job_figures, job_items
from app.models import Alignment, Dataset, LanguageModel, TrainingJob
from app.registry.listing import model_column
from app.society.store import agents_of, read_ratings


@dataclass(frozen=True)
class AlignmentListItem(JobListItem):
    """An alignment in a list: its base, the part that it is at or has stopped at, and the model that it made."""

    base: LanguageModel
    part: AlignmentPart | None  # None when it is done
    model: LanguageModel | None


class AlignmentStep(NamedTuple):
    """A part of an alignment: its job once it was begun, how far that is, and what was made by or for it."""

    part: AlignmentPart
    item: JobListItem | None
    model: LanguageModel | None  # that a training made
    datasets: Sequence[Dataset]  # demonstrations, or what was cut from the first society


class AlignmentJob(NamedTuple):
    """A part of an alignment: the kind, number and status of its job, as far as it was begun, and the model made."""

    part: str
    kind: str
    number: int | None
    status: str | None
    made: str | None


def list_items(session: Session, rows: Sequence[Alignment]) -> list[AlignmentListItem]:
    """Alignments as items of a list, with as many statements for one as for many."""
    jobs = _jobs_of(session, rows)
    aligned = {row.id: _row(jobs, row, part) for row in rows for part in PARTS if part.column == "job_id"}
    made = {number: job.model_id for number, job in aligned.items() if job is not None}
    wanted = {*(row.base_id for row in rows), *(number for number in made.values() if number is not None)}
    models = session.scalars(select(LanguageModel).where(LanguageModel.id.in_(wanted)))
    known = {each.id: each for each in models}
    return [
        AlignmentListItem(
            **vars(item),
            base=known[item.row.base_id],
            part=_part_of(item.row),
            model=known.get(made.get(item.row.id) or 0),
        )
        for item in job_items(session, ALIGNMENT, rows)
    ]


def steps_of(session: Session, row: Alignment) -> list[AlignmentStep]:
    """The parts of an alignment in their order, as far as they have come."""
    found = []
    for part in parts_of(row):
        number = getattr(row, part.column)
        job = None if number is None else part.kind.get(session, number)
        made = job.model_id if part.kind is TRAINING and job is not None else None
        found.append(
            AlignmentStep(
                part,
                None if job is None else job_items(session, part.kind, [job])[0],
                None if made is None else session.get_one(LanguageModel, made),
                [session.get_one(Dataset, each) for each in _datasets_of(row, part) if each is not None],
            )
        )
    return found


def progress_of(session: Session, rows: Sequence[Alignment]) -> dict[int, JSON]:
    """How far the jobs are that alignments wait for, as figures by name, by their numbers."""
    return {row.id: _progress_of(session, row) for row in rows}


def _progress_of(session: Session, row: Alignment) -> JSON:
    """How far the job is that an alignment waits for, as figures by name; `at` changes with each step."""
    [item] = job_items(session, ALIGNMENT, [row])
    now, begun = None, begun_jobs(row)
    if begun and row.status != states.DONE:
        [now] = job_items(session, begun[-1].kind, [begun[-1].row(session)])
    at = (
        item.state,
        len(begun),
        now and now.state,
        [each is not None for each in (row.demonstrations_id, row.dataset_id)],
    )
    found = job_figures(item)
    if row.status != states.DONE:
        done, of, percent = (0, None, 0) if now is None else (now.done, now.of, now.percent)
        found |= {"done": done, "of": of, "percent": percent}
    return {**found, "at": json.dumps(at)}


def society_figures(session: Session, row: Alignment) -> list[tuple[str, list[SocietyDifference]]]:
    """The first society beside the last: of the agents of the model that learns, and where there are others of all.

    Each with "learner" or "all". Nothing before both have an interaction in common.
    """
    if row.society_id is None or row.second_society_id is None:
        return []
    agents = agents_of(session, row.society_id)
    own = [each.agent for each in agents if each.model_id == _learner_id(session, row)]
    first, last = ([*read_ratings(session, number)] for number in (row.society_id, row.second_society_id))
    wanted = (
        [("learner", own)] if len(own) == len(agents) else [("learner", own), ("all", [each.agent for each in agents])]
    )
    found = [(who, society_differences(first, last, {*those})) for who, those in wanted]
    return [(who, differences) for who, differences in found if differences]


def _learner_id(session: Session, row: Alignment) -> int | None:
    """The number of the model that lives in the first society."""
    if row.sft_job_id is None:
        return row.base_id
    number: int | None = TRAINING.get(session, row.sft_job_id).model_id
    return number


def _part_of(row: Alignment) -> AlignmentPart | None:
    """The part that was begun last, or the first one; None when all of it is done."""
    if row.status == states.DONE:
        return None
    begun = [part for part in parts_of(row) if getattr(row, part.column) is not None]
    return begun[-1] if begun else parts_of(row)[0]


def _datasets_of(row: Alignment, part: AlignmentPart) -> Sequence[int | None]:
    if part.column == "sft_job_id":
        return (row.demonstrations_id,)
    return (row.dataset_id, row.realignment_id) if part.column == "society_id" else ()


def figures_of(session: Session, row: Alignment) -> list[AssessmentFigures]:
    """What raters say of its model beside the one before, as far as they have."""
    if row.assessment_id is None:
        return []
    return assessments.figures_of(session, ASSESSMENT.get(session, row.assessment_id))


def _jobs_of(session: Session, rows: Sequence[Alignment]) -> dict[AwaitedJob, tuple[Any, str]]:
    """The jobs that these alignments have begun, each with what its status is called."""
    begun = {job for row in rows for job in begun_jobs(row)}
    found: dict[AwaitedJob, tuple[Any, str]] = {}
    for kind in dict.fromkeys(part.kind for part in PARTS):
        numbers = {job.number for job in begun if job.kind is kind}
        those = session.scalars(select(kind.table).where(kind.table.id.in_(numbers))).all()
        called = kind.states_of(session, those)
        found |= {AwaitedJob(kind, row.id): (row, called[row.id]) for row in those}
    return found


def _row(jobs: Mapping[AwaitedJob, tuple[Any, str]], row: Alignment, part: AlignmentPart) -> Any:
    """The row of a part's job, or None."""
    return jobs.get(AwaitedJob(part.kind, getattr(row, part.column)), (None, None))[0]


def jobs_of(session: Session, rows: Sequence[Alignment]) -> list[list[AlignmentJob]]:
    """The parts of each alignment with their jobs, with as many statements for one as for many."""
    jobs = _jobs_of(session, rows)
    return [[_job(jobs, row, part) for part in parts_of(row)] for row in rows]


def _job(jobs: Mapping[AwaitedJob, tuple[Any, str]], row: Alignment, part: AlignmentPart) -> AlignmentJob:
    number = getattr(row, part.column)
    found, status = jobs.get(AwaitedJob(part.kind, number), (None, None))
    made = found.name if part.kind is TRAINING and found is not None and found.model_id is not None else None
    return AlignmentJob(part.title, part.kind.name, number, status, made)


_BEGUN = sum(case((getattr(Alignment, part.column).is_not(None), 1), else_=0) for part in PARTS)
LIST: Listing[Alignment] = Listing(
    name=ALIGNMENT.plural,
    table=Alignment,
    columns=job_columns(
        ALIGNMENT,
        model_column("base", Phrase("Base"), Alignment.base_id),
        model_column(
            "model",
            Phrase("Model"),
            of_other(TrainingJob.model_id, TrainingJob.id == Alignment.job_id),
            none=Phrase("not yet"),
        ),
        title=Phrase("Alignment"),
        done=Phrase("Steps done"),
        sort_done=_BEGUN,
        notes=lambda each: [Phrase(each.part.title.capitalize())] if each.part and not each.row.error else [],
    ),
    items=list_items,
)
