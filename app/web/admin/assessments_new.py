"""Starting assessments: the form, for a model or like an assessment that was, and the start."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flask import Request, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.assessments import learnt, lifecycle
from app.assessments.job import ASSESSMENT
from app.assessments.learnt import HeldOutQuestions
from app.assessments.lifecycle import AssessmentSpec
from app.core.errors import AppError
from app.core.extensions import db, reading
from app.core.validation import whole_number
from app.games.base import JSON
from app.jobs.kind import LARGEST
from app.models import Assessment, LanguageModel
from app.registry import CHAT_USE, SCRIPTED_CHATS, list_models
from app.society.lifecycle import QuestionList
from app.society.questions import parse_questions, read_questions
from app.web.admin import answer_sampling
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import requester
from app.web.admin.rounds_scores import in_worker_thread
from app.web.admin.uploaded_texts import AGAIN, SHIPPED, UPLOAD, read_uploads, uploaded_text
from app.web.form_writes import write_once
from app.web.forms import RefusedField, one_of
from app.web.seats import settings

_QUESTIONS = "questions"
_TEXTS = ("model", "base", _QUESTIONS, "questions_text", "questions_name", "like", "seed", *answer_sampling.FIELDS)


@blueprint.get("/assessments/new")
def new_assessment() -> str:
    """The form, for the models that the address names, or filled in like an assessment that was."""
    with reading() as session:
        models = _chat_models(session)
        if number := request.args.get("like", ""):
            row = ASSESSMENT.get(session, whole_number(number, "like", 1, LARGEST))
            return _form(session, _like(session, row))
        return _form(session, _defaults(models, request.args.get("model", ""), request.args.get("base", "")))


@blueprint.post("/assessments/new")
def start_assessment() -> ResponseReturnValue:
    """Write the assessment down, call a worker, and show it; or say why it cannot be."""
    form = _typed(request)
    by = requester()
    try:
        with reading() as session:
            spec = _read(session, form)
            lifecycle.check(session, spec)
        # Looking through all that the models were trained on may take seconds, during which others play.
        found = in_worker_thread(db.engine, _held_out, settings().home, (form["model"], form["base"]), spec.questions)
        number = write_once(lambda session: lifecycle.create(session, spec, found, queued=True, requester=by).id)
    except RefusedField as error:
        with reading() as session:
            return _form(session, form, error), error.error.status
    except AppError as error:
        with reading() as session:
            return _form(session, form, answer_sampling.refusal(error)), error.status
    ASSESSMENT.enqueue(settings().broker_url, number)
    return redirect(url_for("admin.assessment_page", assessment_id=number), 303)


def _held_out(session: Session, home: Path, models: tuple[str, str], asked: QuestionList) -> HeldOutQuestions:
    return learnt.held_out(session, home, models, asked.questions)


# ---- Filling in --------------------------------------------------------------------


def _chat_models(session: Session) -> list[LanguageModel]:
    return [row for row in list_models(session, archived=False) if CHAT_USE in row.uses]


def _defaults(models: list[LanguageModel], model: str, base: str) -> JSON:
    """The form as it is first shown: the scripted observer rates, which costs nothing, where it is registered."""
    names = [row.name for row in models]
    scripted = [name for name, who in SCRIPTED_CHATS.items() if who == "observer" and name in names]
    return {
        **dict.fromkeys(_TEXTS, ""),
        **answer_sampling.filled_in({}),
        "model": model,
        "base": base,
        _QUESTIONS: SHIPPED,
        "seed": "0",
        "raters": scripted,
    }


def _like(session: Session, row: Assessment) -> JSON:
    """The form filled in as it was for an assessment."""
    return {
        **dict.fromkeys(_TEXTS, ""),
        **answer_sampling.filled_in(row.sampling),
        "model": session.get_one(LanguageModel, row.model_id).name,
        "base": session.get_one(LanguageModel, row.base_id).name,
        _QUESTIONS: AGAIN,
        "like": str(row.id),
        "seed": str(row.seed),
        "raters": [each["model"] for each in row.raters],
    }


def _typed(sent: Request) -> JSON:
    """The form as it was sent."""
    found: JSON = {name: sent.form.get(name, "").strip() for name in _TEXTS}
    return {**found, "raters": sent.form.getlist("raters"), **read_uploads(sent, (_QUESTIONS,))}


# ---- Reading -----------------------------------------------------------------------


def _read(session: Session, form: Mapping[str, Any]) -> AssessmentSpec:
    """What the form asks for. Raises RefusedField, and AppError for a field of the same name."""
    asked = _questions(session, form)
    sampling = answer_sampling.read(form)
    return AssessmentSpec(form["model"], form["base"], form["raters"], asked, sampling, form["seed"] or 0)


def _questions(session: Session, form: Mapping[str, Any]) -> QuestionList:
    chosen = one_of(_QUESTIONS, form, (SHIPPED, UPLOAD, *((AGAIN,) if form["like"] else ())))
    if chosen == AGAIN:
        row = ASSESSMENT.get(session, whole_number(form["like"], "like", 1, LARGEST))
        return QuestionList(row.question_source, row.questions)
    if chosen == UPLOAD:
        raw, source = uploaded_text(_QUESTIONS, form)
        return QuestionList(source, parse_questions(raw, source))
    return QuestionList(SHIPPED, read_questions())


def _form(session: Session, form: Mapping[str, Any], refused: RefusedField | None = None) -> str:
    models = _chat_models(session)
    names = {row.name for row in models}
    return render_template(
        "admin/assessment-new.html",
        form=form,
        refused=refused,
        models=models,
        lost=[name for name in (form["model"], form["base"], *form["raters"]) if name and name not in names],
        shipped=len(read_questions()),
        sampling=answer_sampling.sampling_fields(),
        presets=answer_sampling.sampling_presets(),
    )
