"""What follows for training when a person withdraws what they wrote in matches. Nothing here commits."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.datasets.withdrawn import mark_unusable
from app.finetuning.job import TRAINING
from app.finetuning.listing import learns_from
from app.jobs.states import OPEN
from app.lineage import models_of
from app.models import Dataset, LanguageModel, TrainingJob


class WithdrawnData(NamedTuple):
    """The unusable datasets, the ids of the cancelled jobs on them, and the models made from them, which cannot
    forget.
    """

    datasets: Sequence[Dataset] = ()
    jobs: Sequence[int] = ()
    models: Sequence[LanguageModel] = ()


def withdraw_matches(session: Session, match_ids: Collection[str]) -> WithdrawnData:
    """Mark the datasets that hold rows of these matches as unusable, and cancel the unfinished jobs on them."""
    datasets = mark_unusable(session, match_ids)
    numbers = [row.id for row in datasets]
    open_jobs = select(TrainingJob.id).where(learns_from(numbers), TrainingJob.status.in_(OPEN))
    jobs = list(session.scalars(open_jobs.order_by(TrainingJob.id)))
    for number in jobs:
        TRAINING.cancel(session, number)
    heirs = select(LanguageModel).where(LanguageModel.id.in_(models_of(session, numbers)))
    return WithdrawnData(datasets, jobs, session.scalars(heirs.order_by(LanguageModel.id)).all())
