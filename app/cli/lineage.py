"""`flask model lineage`: what a model was made from, back to models not trained here, and what was made from it."""

from collections.abc import Iterator, Sequence
from typing import Any

import click

from app.cli.base import Command, ensure_database, json_option, print_result
from app.core.extensions import reading
from app.lineage import SHIPPED, DatasetSource, Descendants, ModelOrigin, ancestors, descendants, models_of
from app.models import Dataset, TrainingJob
from app.registry import get_model


@click.command(cls=Command)
@click.argument("name")
@json_option
def lineage(name: str, as_json: bool) -> None:
    """Show what a model was made from, and what was made from it."""
    ensure_database()
    with reading() as session:
        number = get_model(session, name).id
        above, below = ancestors(session, number), descendants(session, number)
        withdrawn = models_of(session).get(number, ())
        described = {
            "model": name,
            "learned_withdrawn": [_dataset(row) for row in withdrawn],
            "ancestors": [_model_origin_json(each) for each in above],
            "descendants": _below(below),
        }
        lines = [_flag(row) for row in withdrawn]
        lines += [line for each in above for line in _lines_of(each)] + list(_lines_below(below))
    print_result(as_json, described, "\n".join(lines))


# ---- As JSON ---------------------------------------------------------------------


def _model_origin_json(each: ModelOrigin) -> dict[str, Any]:
    return {
        "model": each.model.name,
        "kind": each.model.kind,
        "origin": each.origin,
        "job": None if each.job is None else _training_job_json(each.job),
        "base": each.base and each.base.name,
        "dataset": each.dataset and _dataset(each.dataset),
        "sources": [_source_json(source) for source in each.sources],
        "sft_data": each.sft_dataset and _dataset(each.sft_dataset),
        "sft_sources": [_source_json(source) for source in each.sft_sources],
        "campaigns": [place._asdict() for place in each.places],
    }


def _dataset(row: Dataset) -> dict[str, Any]:
    return {
        "dataset_id": row.id,
        "name": row.name,
        "version": row.version,
        "rows": row.rows,
        "imported": row.spec.get("imported"),
        "society": row.spec.get("society"),
        "unusable_since": row.unusable_at and row.unusable_at.isoformat(),
    }


def _source_json(each: DatasetSource) -> dict[str, Any]:
    return {
        "round_id": each.round and each.round.id,
        "models": [model.name for model in each.models],
        "people": each.people,
        "rows": each.rows,
    }


def _training_job_json(row: TrainingJob) -> dict[str, Any]:
    where = {"registered_step": row.registered_step, "steps": row.steps}
    return {"job_id": row.id, "name": row.name, "method": row.method, "status": row.status, **where}


def _below(found: Descendants) -> dict[str, Any]:
    return {
        "datasets": [
            {"dataset_id": each.id, "name": each.name, "version": each.version, "rows": each.rows}
            for each in found.datasets
        ],
        "jobs": [_training_job_json(each) for each in found.jobs],
        "models": [{"model": model.name, "steps": steps} for model, steps in found.models],
    }


# ---- In words --------------------------------------------------------------------


def _flag(row: Dataset) -> str:
    return (
        f"It learned from dataset {row.id} ({row.name}, version {row.version}), of which a person has taken something"
        " back, and cannot forget it."
    )


def _lines_of(each: ModelOrigin) -> Iterator[str]:
    """The lines of a model, with its origins below it."""
    if each.job is None or each.dataset is None:
        where = "came with Parlor" if each.origin == SHIPPED else "added by hand"
        yield f"{each.model.name}: {each.model.kind}, {where}"
        return
    step = each.job.registered_step
    where = "" if step is None else f", step {step} of {each.job.steps}"
    yield f"{each.model.name}: made by job {each.job.id} ({each.job.method}{where})"
    yield f"  from the weights of {each.base.name}" if each.base else "  from scratch"
    yield from _lines_of_dataset("on", each.dataset, each.sources)
    if each.sft_dataset is not None:
        yield from _lines_of_dataset("beside supervised", each.sft_dataset, each.sft_sources)
    for place in each.places:
        yield f"  iteration {place.iteration} of campaign {place.campaign_id} ({place.name})"


def _lines_of_dataset(how: str, row: Dataset, sources: Sequence[DatasetSource]) -> Iterator[str]:
    """The lines of a dataset, with its sources; `how` is how the model used its rows."""
    yield f"  {how} {row.rows} rows of dataset {row.id} ({row.name}, version {row.version})"
    if row.unusable_at is not None:
        yield f"    unusable since {row.unusable_at:%Y-%m-%d}: it held what a person has withdrawn"
    if (file := row.spec.get("imported")) is not None:
        yield f"    imported from {file['file']} (format {file['format']}, sha256 {file['sha256']})"
    if (society := row.spec.get("society")) is not None:
        yield f"    cut from society {society['society_id']} ({society['name']})"
    for source in sources:
        where = f"round {source.round.id} ({source.round.name})" if source.round else "matches outside rounds"
        names = [model.name for model in source.models] + ["people"] * source.people
        yield f"    {source.rows} of {where}, played by {' and '.join(names) or 'imported players'}"


def _lines_below(found: Descendants) -> Iterator[str]:
    kinds = [
        ("datasets", [f"{each.id} ({each.name}, version {each.version})" for each in found.datasets]),
        ("jobs", [f"{each.id} ({each.name}, {each.status})" for each in found.jobs]),
        ("models", [f"{model.name} ({steps} training{'s'[: steps > 1]} on)" for model, steps in found.models]),
    ]
    yield ""
    if not any(each for _, each in kinds):
        yield "Nothing has been made from it yet."
    for kind, each in kinds:
        if each:
            yield f"Made from it, {kind}: {', '.join(each)}"
