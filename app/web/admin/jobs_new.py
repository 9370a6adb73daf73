"""Starting training jobs: the form, filled in from a dataset's page or like a job that was, and the start."""

from collections.abc import Mapping
from typing import Any

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.datasets import store
from app.errors import AppError, Invalid, Phrase
from app.extensions import reading
from app.finetuning import lifecycle as life
from app.finetuning.config import COMMON, LOCAL, METHODS, OF_TINY, SFT, TINY
from app.finetuning.job import TRAINING
from app.models import LanguageModel, TrainingJob
from app.registry import list_models
from app.web.admin.blueprint import blueprint
from app.web.admin.rounds_form import RefusedField
from app.web.form_writes import write
from app.web.seats import settings

_OWN = ("epochs", "learning_rate", "batch", "seed", "eval_share")  # fields with a box of their own
_FIELDS = ("dataset", "method", "base", "name", *_OWN, "further")
_LIKELY = {"epochs": "3", "eval_share": "0.1"}  # what a first try is well off with; all else has good defaults


@blueprint.get("/jobs/new")
def new_job() -> str:
    """The form, for the dataset or like the job that the address names."""
    with reading() as session:
        number = request.args.get("like", "")
        if number.isdecimal() and len(number) < 10:
            return _form(session, _like(session, TRAINING.get(session, int(number))))
        return _form(session, _defaults(session, request.args.get("dataset", ""), request.args.get("base", "")))


@blueprint.post("/jobs/new")
def start_job() -> ResponseReturnValue:
    """Write the job down, call a worker, and show it; or say why it cannot be."""
    form = {name: request.form.get(name, "").strip() for name in _FIELDS}
    try:
        wish = life.TrainingSpec(
            method=form["method"],
            dataset=form["dataset"],
            name=form["name"],
            base=form["base"] if form["method"] != TINY else None,
            config={**{name: form[name] for name in _OWN if form[name]}, **_further(form["further"])},
        )
        home = settings().home
        number = write(lambda session: life.create(session, wish, queued=True, home=home).id)
    except AppError as error:
        with reading() as session:
            return _form(session, form, error), error.status
    TRAINING.enqueue(settings().broker_url, number)
    return redirect(url_for("admin.job_page", job_id=number), 303)


def _further(text: str) -> dict[str, str]:
    """The fields that were typed in lines of their own. Raises Invalid."""
    found: dict[str, str] = {}
    for line in filter(None, (each.strip() for each in text.splitlines())):
        name, mark, value = (each.strip() for each in line.partition("="))
        if not mark or name in _OWN or name in found:
            raise Invalid("further", expected=Phrase("a line such as width = 64, once for each field"), got=line)
        found[name] = value
    return found


def _defaults(session: Session, dataset: str, base: str) -> dict[str, str]:
    """The form for a first try: on the latest dataset and model, if none was named."""
    datasets, bases = store.list_datasets(session), _bases(session)
    base = base or (bases[-1].name if bases else "")
    method = SFT if base else TINY
    return {
        **dict.fromkeys(_FIELDS, ""),
        **_LIKELY,
        "dataset": dataset or (str(datasets[0].id) if datasets else ""),
        "method": method,
        "base": base,
        "name": _free_name(session, base or TINY),
    }


def _like(session: Session, row: TrainingJob) -> dict[str, str]:
    """The form as it was for a job."""
    base = None if row.base_id is None else session.get_one(LanguageModel, row.base_id)
    own = {name: str(row.config[name]) for name in _OWN if name in row.config}
    return {
        **dict.fromkeys(_FIELDS, ""),
        **own,
        "dataset": str(row.dataset_id),
        "method": row.method,
        "base": "" if base is None else base.name,
        "name": _free_name(session, row.name) if row.model_id is not None else row.name,
        "further": "\n".join(f"{name} = {value}" for name, value in sorted(row.config.items()) if name not in _OWN),
    }


def _free_name(session: Session, stem: str) -> str:
    """A name after an older one, which neither a model nor a job has."""
    taken = {*session.scalars(select(LanguageModel.name)), *session.scalars(select(TrainingJob.name))}
    head, mark, number = stem.rpartition("-")
    stem = head if mark and number.isdecimal() else stem
    return next(name for place in range(1, len(taken) + 2) if (name := f"{stem[:70]}-{place}") not in taken)


def _field_of(error: AppError) -> str:
    """The field of the form that an error is about."""
    if error.field == "model":
        return "base"
    return error.field if error.field in _FIELDS else "further"


def _bases(session: Session) -> list[LanguageModel]:
    return [model for model in list_models(session) if model.kind == LOCAL]


def _form(session: Session, form: Mapping[str, Any], error: AppError | None = None) -> str:
    return render_template(
        "admin/job-new.html",
        form=form,
        refused=None if error is None else RefusedField(_field_of(error), error),
        datasets=store.list_datasets(session),
        bases=_bases(session),
        methods=METHODS,
        common=[name for name in COMMON if name not in _OWN],
        of_tiny=list(OF_TINY),
    )
