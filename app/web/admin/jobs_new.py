"""Starting training jobs: the form, filled in from a dataset's page or like a job that was, and the start."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import AppError, Invalid
from app.core.extensions import reading
from app.datasets import store
from app.finetuning import lifecycle as life
from app.finetuning.backends import Backend, all_backends, find_backend
from app.finetuning.config import JOB_DEFAULTS, LOCAL, REFERENCE, SFT_DATA, Fields, find_method, preset_fields
from app.finetuning.job import TRAINING
from app.models import LanguageModel, TrainingJob
from app.registry import list_models
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import requester
from app.web.admin.training_fields import TrainingField, read_lines, training_fields
from app.web.form_writes import write_once
from app.web.forms import RefusedField
from app.web.seats import settings
from training.methods import all_methods
from training.methods.base import CONVERSATIONS, Method, Need, with_new_names

_OF_JOB = ("dataset", "sft_data", "method", "backend", "base", "reference", "name")
_LIKELY = {"epochs": "3", "eval_share": "0.1"}  # what a first try is well off with; all else has good defaults


@blueprint.get("/jobs/new")
def new_job() -> str:
    """The form, for the dataset or like the job that the address names, or with a preset of a method."""
    with reading() as session:
        number = request.args.get("like", "")
        if number.isdecimal() and len(number) < 10:
            return _form(session, _like(session, TRAINING.get(session, int(number))))
        form = _defaults(session, request.args.get("dataset", ""), request.args.get("base", ""))
        preset = request.args.get("preset", "")
        return _form(session, _with_preset(form, request.args.get("method", ""), preset) if preset else form)


@blueprint.post("/jobs/new")
def start_job() -> ResponseReturnValue:
    """Write the job down, call a worker, and show it; or say why it cannot be."""
    form = {name: request.form.get(name, "").strip() for name in _names()}
    form["backend"] = form["backend"] or LOCAL
    try:
        backend = find_backend(form["backend"])
        spec = life.TrainingSpec(
            method=form["method"],
            dataset=form["dataset"],
            name=form["name"],
            base=form["base"] if find_method(form["method"]).goes_on_from_base else None,
            backend=form["backend"],
            reference=form["reference"] or None if _compares(find_method(form["method"])) else None,
            sft_data=form["sft_data"] or None if find_method(form["method"]).mixes_supervised_rows else None,
            config=_config(form),
        )
        home = settings().home
        by = requester()
        number = write_once(lambda session: life.create(session, spec, queued=True, home=home, requester=by).id)
    except AppError as error:
        with reading() as session:
            return _form(session, form, error), error.status
    TRAINING.enqueue(settings().broker_url, number, queue=backend.queue)
    return redirect(url_for("admin.job_page", job_id=number), 303)


def _compares(method: Method) -> bool:
    """Whether a method compares the model with a reference model."""
    return Need.REFERENCE_MODEL in method.needs


def _fields(backend: str) -> Mapping[str, Fields]:
    """The fields of jobs of a backend, by method."""
    return {method: find_backend(backend).fields(method) for method in all_methods()}


def _first(backend: str) -> list[str]:
    """The fields of trainings at a backend that have a box of their own, in their order."""
    schemas = {name: schema for fields in _fields(backend).values() for name, schema in fields.items()}
    return sorted((name for name in schemas if "rank" in schemas[name]), key=lambda name: schemas[name]["rank"])


def _box(backend: str, field: str) -> str:
    """What the form calls the box of a field: backends may have fields of the same name with another meaning."""
    return field if backend == LOCAL else f"{backend}-{field}"


def _boxes(backend: str) -> dict[str, str]:
    """The boxes of a backend's fields, by field."""
    return {field: _box(backend, field) for field in _first(backend)}


def _names() -> list[str]:
    """The fields of the form."""
    return [*_OF_JOB, *(box for backend in all_backends() for box in _boxes(backend).values()), "further"]


def _config(form: Mapping[str, str]) -> dict[str, str]:
    """The fields of the training that were typed, of the backend that was chosen. Raises Invalid."""
    boxes = _boxes(form["backend"])
    further = read_lines(form["further"], "further", _first(LOCAL)) if form["backend"] == LOCAL else {}
    return {**{field: form[box] for field, box in boxes.items() if form[box]}, **further}


def _defaults(session: Session, dataset: str, base: str) -> dict[str, str]:
    """The form for a first try: on the latest conversations and model, if none was named."""
    datasets, bases = store.list_datasets(session), _bases(session)
    usual = [str(each.id) for each in datasets if each.kind == CONVERSATIONS]
    dataset = dataset or next(iter(usual), "")
    kind = next((each.kind for each in datasets if str(each.id) == dataset), CONVERSATIONS)
    local = [model.name for model in bases if model.kind == LOCAL]
    base = base or (local[-1] if local else "")
    backend = next((model.backend for model in bases if model.name == base), LOCAL)
    fitting = [each for each in all_methods().values() if each.rows.kind == kind]
    method = next((each.name for each in fitting if each.goes_on_from_base == bool(base)), fitting[0].name)
    return {
        **dict.fromkeys(_names(), ""),
        **_LIKELY,
        "dataset": dataset,
        "method": method,
        "backend": backend,
        "base": base,
        "name": _free_name(session, base or method),
    }


def _with_preset(form: Mapping[str, str], method: str, preset: str) -> dict[str, str]:
    """The form with a method's preset for all fields of the training. Raises Invalid where there is none."""
    return {**form, "method": method, **_typed(preset_fields(method, preset), _boxes(LOCAL))}


def _typed(config: Mapping[str, Any], boxes: Mapping[str, str]) -> dict[str, str]:
    """Fields of a training as the form has them: in their boxes, and all others on lines of their own."""
    return {
        **{box: str(config.get(name, "")) for name, box in boxes.items()},
        "further": "\n".join(f"{name} = {value}" for name, value in sorted(config.items()) if name not in boxes),
    }


def _like(session: Session, row: TrainingJob) -> dict[str, str]:
    """The form as it was for a job."""
    base = None if row.base_id is None else session.get_one(LanguageModel, row.base_id)
    config, boxes = with_new_names(row.config), _boxes(row.backend)
    reference, sft_data = config.pop(REFERENCE, ""), config.pop(SFT_DATA, "")
    return {
        **dict.fromkeys(_names(), ""),
        **_typed(config, boxes),
        "dataset": str(row.dataset_id),
        "sft_data": str(sft_data),
        "method": row.method,
        "backend": row.backend,
        "base": "" if base is None else base.name,
        "reference": reference,
        "name": _free_name(session, row.name) if row.model_id is not None else row.name,
    }


def _free_name(session: Session, stem: str) -> str:
    """A name after an older one, which neither a model nor a job has."""
    taken = {*session.scalars(select(LanguageModel.name)), *session.scalars(select(TrainingJob.name))}
    head, mark, number = stem.rpartition("-")
    stem = head if mark and number.isdecimal() else stem
    return next(name for place in range(1, len(taken) + 2) if (name := f"{stem[:70]}-{place}") not in taken)


def _field_of(error: AppError, backend: str) -> str:
    """The field of the form that an error is about."""
    if error.field == "model":
        return "base"
    names = _boxes(backend) if backend in all_backends() else {}
    name = names.get(str(error.field), error.field)
    return name if name in _names() else "further"


class _Base(NamedTuple):
    """A model that can be trained, and where."""

    name: str
    kind: str
    backend: str


def _bases(session: Session) -> list[_Base]:
    """The models that can be trained, each with the first backend that takes it."""
    found = []
    for model in list_models(session, archived=False):
        backend = next((name for name, each in all_backends().items() if _takes(each, model)), None)
        if backend is not None:
            found.append(_Base(model.name, model.kind, backend))
    return found


def _takes(backend: Backend, model: LanguageModel) -> bool:
    try:
        backend.check_base(model)
    except Invalid:
        return False
    return True


class _BackendFields(NamedTuple):
    """The fields of a backend on the form: those with a box of their own, each with its name, and the others."""

    boxes: Sequence[tuple[str, TrainingField]]
    others: Sequence[TrainingField]


def _backend_fields(backend: str) -> _BackendFields:
    fields = training_fields(_fields(backend), JOB_DEFAULTS if backend == LOCAL else None)
    boxes = _boxes(backend)
    own = [(box, fields[name]) for name, box in boxes.items()]
    return _BackendFields(own, [field for name, field in fields.items() if name not in boxes])


def _form(session: Session, form: Mapping[str, Any], error: AppError | None = None) -> str:
    return render_template(
        "admin/job-new.html",
        form=form,
        refused=None if error is None else RefusedField(_field_of(error, form["backend"]), error),
        datasets=store.list_datasets(session),
        bases=_bases(session),
        methods=all_methods().values(),
        mixing=[method.name for method in all_methods().values() if method.mixes_supervised_rows],
        comparing=[method.name for method in all_methods().values() if _compares(method)],
        backends=all_backends(),
        fields={name: _backend_fields(name) for name in all_backends()},
    )
