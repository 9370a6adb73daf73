"""Training jobs for experimenters: a page of them, what belongs to one, and what it has told."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.finetuning.job import TRAINING
from app.finetuning.progress import LATELY, figures
from app.games.base import JSON
from app.models import Dataset, LanguageModel, TrainingEvent, TrainingJob

PAGE = 25  # jobs on a page


class TrainingListItem(NamedTuple):
    """A job in a list, with what its status is called, what it learns from, begins with and has made."""

    row: TrainingJob
    state: str
    dataset: Dataset
    base: LanguageModel | None
    model: LanguageModel | None


def chosen_jobs(session: Session, before: int | None = None) -> tuple[list[TrainingListItem], int | None]:
    """A page of all jobs, the latest first, and the number behind which the next page begins, if any."""
    statement = select(TrainingJob).order_by(TrainingJob.id.desc()).limit(PAGE + 1)
    if before is not None:
        statement = statement.where(TrainingJob.id < before)
    rows = session.scalars(statement).all()
    return [list_item(session, row) for row in rows[:PAGE]], rows[PAGE - 1].id if len(rows) > PAGE else None


def all_jobs(session: Session) -> Sequence[TrainingJob]:
    """Every job, the latest first."""
    return session.scalars(select(TrainingJob).order_by(TrainingJob.id.desc())).all()


def jobs_of_dataset(session: Session, dataset_id: int) -> Sequence[TrainingJob]:
    """The jobs that learn from a dataset, the latest first."""
    rows = select(TrainingJob).where(TrainingJob.dataset_id == dataset_id).order_by(TrainingJob.id.desc())
    return session.scalars(rows).all()


def list_item(session: Session, row: TrainingJob) -> TrainingListItem:
    """A job with what belongs to it."""
    base, model = (
        None if number is None else session.get(LanguageModel, number) for number in (row.base_id, row.model_id)
    )
    return TrainingListItem(row, TRAINING.state_of(session, row), session.get_one(Dataset, row.dataset_id), base, model)


def events_of(session: Session, job_id: int) -> Sequence[JSON]:
    """All that a job has told, in order."""
    told = select(TrainingEvent.body).where(TrainingEvent.job_id == job_id).order_by(TrainingEvent.number)
    return session.scalars(told).all()


def figures_of(session: Session, row: TrainingJob) -> JSON:
    """How far a job is, as figures by name."""
    told = select(TrainingEvent.body).where(TrainingEvent.job_id == row.id).order_by(TrainingEvent.number.desc())
    evaluations = told.where(TrainingEvent.body["event"].as_string() == "eval")
    by_loss = evaluations.order_by(None).order_by(TrainingEvent.body["loss"].as_float(), TrainingEvent.number)
    held_out, best = (session.scalar(found.limit(1)) for found in (evaluations, by_loss))
    latest = session.scalars(told.limit(LATELY)).all()
    return figures(row, TRAINING.state_of(session, row), latest[::-1], held_out, best)


def recipe_of(session: Session, row: TrainingJob) -> JSON | None:
    """Every field of a job's training with the value that it came to; None before it was started, or by an old release.

    The fields that were given are in `row.config`.
    """
    begun = select(TrainingEvent.body).where(
        TrainingEvent.job_id == row.id, TrainingEvent.body["event"].as_string() == "started"
    )
    started = session.scalar(begun.order_by(TrainingEvent.number.desc()).limit(1))
    return None if started is None else started.get("config")
