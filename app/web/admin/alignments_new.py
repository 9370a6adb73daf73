"""Starting alignments: the form, what the societies will take, and the start."""

from collections.abc import Mapping
from typing import Any

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext
from sqlalchemy.orm import Session

from app.alignments import lifecycle
from app.alignments.job import ALIGNMENT
from app.alignments.spec import ALIGN, HELD_OUT_SHARE, PUBLISHED, PUBLISHED_CODE, SFT, presets
from app.core.errors import AppError, Invalid, either
from app.core.extensions import reading
from app.core.validation import whole_number
from app.datasets import store
from app.finetuning.config import find_method
from app.jobs.kind import LARGEST
from app.society.config import PRESETS
from app.society.estimate import SocietyEstimate
from app.society.questions import read_questions
from app.web.admin import alignments_form, answer_sampling, societies_form
from app.web.admin.alignments_form import AlignmentForm
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import requester
from app.web.admin.rounds_new import form_action
from app.web.admin.societies_new import agreement, asks_again, setting_field
from app.web.admin.training_fields import training_fields
from app.web.form_writes import write_once
from app.web.forms import RefusedField
from app.web.seats import settings


@blueprint.get("/alignments/new")
def new_alignment() -> str:
    """The form for the base that the address names, with a preset of the societies, or like an alignment that was."""
    with reading() as session:
        models = societies_form.chat_models(session)
        if number := request.args.get("like", ""):
            row = ALIGNMENT.get(session, whole_number(number, "like", 1, LARGEST))
            return _form(session, alignments_form.like(models, row))
        world = request.args.get("world") or next(iter(PRESETS))
        if world not in PRESETS:
            raise Invalid("preset", expected=either(PRESETS), got=world)
        base, dataset = request.args.get("base", ""), request.args.get("dataset", "")
        return _form(session, alignments_form.defaults(models, world, base, dataset), world=world)


@blueprint.post("/alignments/new")
def start_alignment() -> ResponseReturnValue:
    """Say what its societies will take, or write the alignment down and call a worker, as the button says."""
    form = alignments_form.typed(request)
    try:
        with reading() as session:
            wanted, expected = _read(session, form)
            if form_action() == "estimate" or asks_again(form, expected):
                asks = asks_again(form, expected) and form_action() != "estimate"
                return _form(session, form, expected=expected, asks=asks)
        spec, name, questions, priors, held_out = wanted
        by = requester()
        number = write_once(
            lambda session: (
                lifecycle.create(session, spec, name or None, questions, priors, held_out, queued=True, requester=by).id
            )
        )
    except RefusedField as error:
        with reading() as session:
            return _form(session, form, refused=error), error.error.status
    except AppError as error:
        with reading() as session:
            return _form(session, form, refused=alignments_form.refusal(error)), error.status
    ALIGNMENT.enqueue(settings().broker_url, number)
    return redirect(url_for("admin.alignment_page", alignment_id=number), 303)


def _read(session: Session, form: Mapping[str, Any]) -> tuple[AlignmentForm, SocietyEstimate]:
    """What a form asks for, and what its societies will take. Raises RefusedField."""
    wanted = alignments_form.read(session, form)
    try:
        return wanted, lifecycle.estimated(session, wanted.spec, wanted.questions, wanted.priors)
    except AppError as error:
        raise alignments_form.refusal(error) from None


def _form(
    session: Session,
    form: Mapping[str, Any],
    *,
    world: str = "",
    refused: RefusedField | None = None,
    expected: SocietyEstimate | None = None,
    asks: bool = False,
) -> str:
    models = societies_form.chat_models(session)
    named = {row.name for row in models}
    return render_template(
        "admin/alignment-new.html",
        form={**form, "agreed": agreement(expected) if expected and asks else ""},
        models=models,
        bases=alignments_form.bases(models),
        lost=[name for name in (*form["shares"], *form["observers"], *form["raters"]) if name not in named],
        datasets=store.list_datasets(session),
        worlds=list(PRESETS),
        world=world,
        fields={name: setting_field(name) for name in alignments_form.WORLD},
        ticks=societies_form.TICKS,
        trainings={method: training_fields({method: find_method(method).job_fields}) for method in (ALIGN, SFT)},
        presets=[(name, _preset_words(name)) for name in presets()],
        shipped=len(read_questions()),
        held_out_share=HELD_OUT_SHARE,
        sampling=answer_sampling.sampling_fields(),
        sampling_presets=answer_sampling.sampling_presets(),
        refused=refused,
        expected=expected,
        asks=asks,
        dearest=settings().CONFIRM_COST,
    )


def _preset_words(name: str) -> str:
    known: dict[str, str] = {
        PUBLISHED: gettext("as published"),
        PUBLISHED_CODE: gettext("as the published code does where nothing is said"),
    }
    return known.get(name, name)
