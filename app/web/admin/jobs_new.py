"""Starting trainings: what their form has beyond the spec."""

from flask import request
from flask_babel import lazy_gettext
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.extensions import db
from app.datasets import store
from app.finetuning.backends import backend_of, find_backend
from app.finetuning.config import LOCAL, preset_fields
from app.finetuning.estimate import ExpectedTraining, estimate_for
from app.finetuning.job import TRAINING
from app.finetuning.spec import TrainingSpec
from app.games.base import JSON
from app.models import LanguageModel, TrainingJob
from app.registry import list_models
from app.web.admin.job_form import Asked, FormWords, JobForm, register_form
from app.web.seats import settings
from app.web.threads import in_worker_thread
from training.methods import all_methods
from training.methods.base import CONVERSATIONS

_LIKELY = {"epochs": 3, "eval_share": 0.1}  # good values for a first try; everything else has good defaults


class _TrainingForm(JobForm[TrainingJob, TrainingSpec]):
    kind = TRAINING
    spec = TrainingSpec
    path = "jobs"
    words = FormWords(
        title=lazy_gettext("New training job"),
        intro=lazy_gettext(
            "A worker makes a model of a dataset; you can close this page. Rounds can use the model as soon as the job"
            " is done."
        ),
        start=lazy_gettext("Start the training"),
        back=lazy_gettext("Back to the jobs"),
        estimate=lazy_gettext("What it will take"),
        estimate_hint=lazy_gettext(
            "OpenAI and Together charge for every token of the rows in each epoch. How long a training takes is not"
            " known beforehand."
        ),
    )
    estimate_template = "admin/training-estimate.html"

    def suggested(self, session: Session, given: JSON) -> JSON:
        """Settings for a first try, or a method's published settings, for what the URL names.

        The dataset to learn from and the model to start from are never preselected: the newest of either changes over
        time, and nobody would notice that a training used the wrong one.
        """
        if preset := request.args.get("preset"):
            fields = {"config": {**preset_fields(given.get("method", ""), preset)}}
        else:
            fields = {"config": _LIKELY}
        dataset, base = given.get("dataset") or "", given.get("base") or ""
        kinds = {str(each.id): each.kind for each in store.list_datasets(session)}
        backends = {each.name: backend_of(each) for each in list_models(session, archived=False)}
        backend = backends.get(base) or LOCAL
        fitting = [each for each in all_methods().values() if each.rows.kind == kinds.get(dataset, CONVERSATIONS)]
        likely = [each for each in fitting if each.goes_on_from_base]
        known = (each for each in (*likely, *fitting) if find_backend(backend).fields(each.name))
        method = next(known, fitting[0]).name
        found = {"dataset": dataset, "base": base, "method": method, "backend": backend, **fields}
        return {**found, "name": _free_name(session, base or method), **given}

    def estimated(self, session: Session, asked: Asked[TrainingSpec]) -> ExpectedTraining:  # noqa: ARG002 - in a thread
        found: ExpectedTraining = in_worker_thread(db.engine, estimate_for, asked.spec, settings().home)
        return found

    def agreement(self, expected: ExpectedTraining) -> str:
        return "" if expected.charge is None else expected.charge.words

    def spec_of(self, session: Session, row: TrainingJob) -> JSON:
        """The spec of a job, with another name if the job is done, because its model has taken the name."""
        spec = super().spec_of(session, row)
        return spec if row.model_id is None else {**spec, "name": _free_name(session, row.name)}


register_form(_TrainingForm())


def _free_name(session: Session, stem: str) -> str:
    """A name derived from an older one that no model or job has."""
    taken = {*session.scalars(select(LanguageModel.name)), *session.scalars(select(TrainingJob.name))}
    head, mark, number = stem.rpartition("-")
    stem = head if mark and number.isdecimal() else stem
    return next(name for place in range(1, len(taken) + 2) if (name := f"{stem[:70]}-{place}") not in taken)
