"""The page of a training: what it learns from, the model it has made, and its loss curve."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.core.errors import Phrase, Verbatim
from app.core.lists import COMMANDS, NOWHERE, Code, ListColumn, Reference
from app.finetuning.job import TRAINING
from app.finetuning.listing import TrainingListItem, dataset_cell, figures_of, starts_of
from app.finetuning.progress import TOO_LONG
from app.jobs.page import ASKED, JobPage, Section, fact, json_fact
from app.models import TrainingJob
from app.registry.listing import model_cell


def _option(name: str) -> Callable[[TrainingListItem], Code | None]:
    """A cell with this registry option of the trained model."""

    def cell(item: TrainingListItem) -> Code | None:
        found = None if item.model is None else item.model.options.get(name)
        return found and Code(found)

    return cell


def _training_lead(item: TrainingListItem) -> list[Phrase]:
    model = model_cell(item.model) or Verbatim(item.row.name)
    base, dataset = model_cell(item.base), dataset_cell(item.dataset)
    found = [
        Phrase("Trains %(model)s from scratch on %(dataset)s.", model=model, dataset=dataset)
        if base is None
        else Phrase("Trains %(model)s from %(base)s on %(dataset)s.", model=model, base=base, dataset=dataset)
    ]
    if item.sft_dataset is not None:
        mixed_in = dataset_cell(item.sft_dataset)
        found.append(Phrase("Rows of %(dataset)s are mixed in and learnt as they are.", dataset=mixed_in))
    if item.model is None:
        found.append(Phrase("You can play against it as soon as the job is done."))
    return found


def _links(item: TrainingListItem) -> list[Reference]:
    if item.model is None:
        return []
    return [
        Reference("lineage", item.model.id, Phrase("Lineage")),
        Reference("model", item.model.id, Phrase("To the model")),
    ]


def _started(name: str, key: str = "", seen: str = COMMANDS) -> ListColumn:
    """A column with a value that the training reported when it last started."""

    def cells(session: Session, items: Sequence[TrainingListItem]) -> list[Any]:
        found = starts_of(session, [each.row for each in items])
        return [found.get(each.row.id, {}).get(key or name) for each in items]

    return fact(name, name, values=cells, seen=seen)


_RECIPE = (
    fact("method", "Method"),
    fact("backend", "Where it is trained"),
    fact("device", "Device", none=Phrase("not yet")),
    fact("dataset", "Dataset", lambda each: dataset_cell(each.dataset)),
    fact("sft_data", "Supervised rows", lambda each: each.sft_dataset and dataset_cell(each.sft_dataset)),
    fact("base", "Base", lambda each: model_cell(each.base)),
    fact("model", "Model", lambda each: model_cell(each.model)),
    fact("remote_job", "Job there", lambda each: each.row.remote_job_id and Code(each.row.remote_job_id)),
    fact("remote_model", "Model there", lambda each: each.row.remote_model and Code(each.row.remote_model)),
    fact("checkpoint", "Checkpoint", _option("path")),
    fact("sha256", "SHA-256", _option("sha256")),
    *map(json_fact, ("dataset_id", "config", "registered_step", "step", "loss")),
    _started("recipe", "config", NOWHERE),
    *map(_started, TOO_LONG),
)
PAGE: JobPage[TrainingJob] = JobPage(
    kind=TRAINING,
    lead=_training_lead,
    links=_links,
    like=lambda _each: True,
    figures=figures_of,
    told=("steps", "eval_loss", "best_loss", "best_step", "remote_status", "trained_tokens", "cost"),
    sections=[
        Section(ASKED, "Settings used", _RECIPE),
        Section("recipe", "Settings", fragment="job-recipe.html", beside=True),
    ],
)
