"""Training jobs for experimenters: the list, related data of each, and its events."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.orm import Session, aliased

from app.core.errors import Phrase
from app.core.lists import NOWHERE, ListColumn, Listing, Reference, attribute, of_other
from app.finetuning.config import SFT_DATA
from app.finetuning.job import TRAINING
from app.finetuning.progress import LATELY, figures
from app.games.base import JSON
from app.jobs.listing import JobListItem, job_columns, job_items
from app.models import Dataset, LanguageModel, TrainingCharge, TrainingEvent, TrainingJob
from app.registry.listing import model_column
from app.registry.training_charges import spent_by_job
from training.methods import all_methods


@dataclass(frozen=True)
class TrainingListItem(JobListItem):
    """A job in a list, with its dataset, its base and its model.

    `sft_dataset` is the dataset whose rows are mixed in, if any.
    """

    dataset: Dataset
    base: LanguageModel | None
    model: LanguageModel | None
    sft_dataset: Dataset | None = None


def jobs_of_dataset(session: Session, dataset_id: int) -> Sequence[TrainingJob]:
    """The jobs that train on a dataset or mix in its rows, the latest first."""
    rows = select(TrainingJob).where(learns_from([dataset_id])).order_by(TrainingJob.id.desc())
    return session.scalars(rows).all()


def datasets_of(row: TrainingJob) -> list[int]:
    """The numbers of the datasets that a job trains on: its own, and the one whose rows it mixes in, if any."""
    return [row.dataset_id, *([row.config[SFT_DATA]] if SFT_DATA in row.config else [])]


def learns_from(dataset_ids: Collection[int]) -> ColumnElement[bool]:
    """Whether a job trains on one of these datasets or mixes in its rows."""
    mixed_in = TrainingJob.config[SFT_DATA].as_integer()
    return or_(TrainingJob.dataset_id.in_(dataset_ids), mixed_in.in_(dataset_ids))


def training_items(session: Session, rows: Sequence[TrainingJob]) -> list[TrainingListItem]:
    """Jobs with their related data."""
    numbers = {number for row in rows for number in (row.base_id, row.model_id)}
    models = {each.id: each for each in session.scalars(select(LanguageModel).where(LanguageModel.id.in_(numbers)))}
    learnt = select(Dataset).where(Dataset.id.in_([each for row in rows for each in datasets_of(row)]))
    datasets = {each.id: each for each in session.scalars(learnt)}
    return [
        TrainingListItem(
            **vars(item),
            dataset=datasets[item.row.dataset_id],
            base=models.get(item.row.base_id or 0),
            model=models.get(item.row.model_id or 0),
            sft_dataset=datasets.get(item.row.config.get(SFT_DATA, 0)),
        )
        for item in job_items(session, TRAINING, rows)
    ]


def is_by_token(row: TrainingJob) -> bool:
    """Whether the loss of a job is a mean over tokens, as it is for methods that need only conversations."""
    method = all_methods().get(row.method)
    return method is None or not method.needs


def events_of(session: Session, job_id: int) -> Sequence[JSON]:
    """All events of a job, in order."""
    bodies = select(TrainingEvent.body).where(TrainingEvent.job_id == job_id).order_by(TrainingEvent.number)
    return session.scalars(bodies).all()


def figures_of(session: Session, rows: Sequence[TrainingJob]) -> dict[int, JSON]:
    """The progress of each job, as figures by name, by the job's number."""
    numbers = [row.id for row in rows]
    evaluations = _firsts(session, numbers, "eval", TrainingEvent.number.desc())
    best = _firsts(session, numbers, "eval", TrainingEvent.body["loss"].as_float(), TrainingEvent.number)
    own = aliased(TrainingEvent)
    last = select(func.max(own.number)).where(own.job_id == TrainingJob.id).scalar_subquery()
    recent = (
        select(TrainingEvent.job_id, TrainingEvent.body)
        .join(TrainingJob, TrainingJob.id == TrainingEvent.job_id)
        .where(TrainingJob.id.in_(numbers), TrainingEvent.number > last - LATELY)
        .order_by(TrainingEvent.job_id, TrainingEvent.number)
    )
    lately: dict[int, list[JSON]] = {number: [] for number in numbers}
    for job_id, body in session.execute(recent):
        lately[job_id].append(body)
    found, costs = TRAINING.states_of(session, rows), _costs(session, rows)
    return {
        row.id: figures(
            row, found[row.id], lately[row.id], evaluations.get(row.id), best.get(row.id), costs.get(row.id)
        )
        for row in rows
    }


def _costs(session: Session, rows: Sequence[TrainingJob]) -> dict[int, float]:
    """The charges of vendors for each job in all its tries, in US dollars, by number, if the price is known."""
    stated = TrainingCharge.job_id.in_([row.id for row in rows]), TrainingCharge.is_estimate.is_(False)
    return {number: spent.usd for number, spent in spent_by_job(session, *stated).items() if spent.usd}


def starts_of(session: Session, rows: Sequence[TrainingJob]) -> dict[int, JSON]:
    """The latest event in which each job's training reported its start, by the job's number."""
    return _firsts(session, [row.id for row in rows], "started", TrainingEvent.number.desc())


def recipes_of(session: Session, rows: Sequence[TrainingJob]) -> dict[int, JSON]:
    """Every field of each job's training with its final value, by the job's number.

    A job that has not started yet, or was started by an old release, has none. The given fields are in `row.config`.
    """
    started = starts_of(session, rows)
    return {number: event["config"] for number, event in started.items() if event.get("config") is not None}


def _firsts(session: Session, numbers: Sequence[int], kind: str, *order: Any) -> dict[int, JSON]:
    """The first event of a kind in this order for each job, by the job's number."""
    place = func.row_number().over(partition_by=TrainingEvent.job_id, order_by=order).label("place")
    ranked = (
        select(TrainingEvent.job_id, TrainingEvent.number, place)
        .where(TrainingEvent.job_id.in_(numbers), TrainingEvent.body["event"].as_string() == kind)
        .subquery()
    )
    first = and_(TrainingEvent.job_id == ranked.c.job_id, TrainingEvent.number == ranked.c.number, ranked.c.place == 1)
    found = session.execute(select(TrainingEvent.job_id, TrainingEvent.body).join(ranked, first))
    return dict(found.all())


def dataset_cell(dataset: Dataset) -> Reference:
    """A dataset in a list."""
    return Reference("dataset", dataset.id, dataset.reference)


LIST: Listing[TrainingJob] = Listing(
    name=TRAINING.plural,
    table=TrainingJob,
    columns=job_columns(
        TRAINING,
        attribute(TrainingJob.method, Phrase("Method")),
        attribute(TrainingJob.loss, Phrase("Loss"), digits="0.000", numeric=True),
        model_column("base", Phrase("Base"), TrainingJob.base_id, none=Phrase("nothing")),
        ListColumn(
            "dataset",
            Phrase("Dataset"),
            lambda each: [dataset_cell(found) for found in (each.dataset, each.sft_dataset) if found is not None],
            sort=of_other(Dataset.name, Dataset.id == TrainingJob.dataset_id),
        ),
        model_column("model", Phrase("Model"), TrainingJob.model_id, none=Phrase("not yet")),
        attribute(TrainingJob.backend, Phrase("Where it is trained"), seen=NOWHERE),
        title=Phrase("Job"),
        done=Phrase("Steps"),
        id_name="job_id",
        sort_done=TrainingJob.step,
    ),
    items=training_items,
)
