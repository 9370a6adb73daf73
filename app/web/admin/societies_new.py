"""Starting societies: the form, what one will take, and the start."""

from collections.abc import Mapping
from typing import Any

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext
from sqlalchemy.orm import Session

from app.core.errors import AppError, Invalid, either
from app.core.extensions import reading
from app.core.validation import whole_number
from app.jobs.kind import LARGEST
from app.society import lifecycle
from app.society.config import PRESETS
from app.society.estimate import SocietyEstimate
from app.society.job import SOCIETY
from app.society.lifecycle import SocietySpec
from app.society.questions import read_questions
from app.web.admin import societies_form
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import requester
from app.web.admin.rounds_new import form_action
from app.web.admin.societies_words import setting_words
from app.web.form_writes import write_once
from app.web.forms import RefusedField
from app.web.game_options import OptionField, option_field
from app.web.seats import settings


@blueprint.get("/societies/new")
def new_society() -> str:
    """The form with the settings of the preset that the address names, or filled in like a society that was."""
    with reading() as session:
        models = societies_form.chat_models(session)
        if number := request.args.get("like", ""):
            row = SOCIETY.get(session, whole_number(number, "like", 1, LARGEST))
            return _form(session, societies_form.like(models, row))
        preset = request.args.get("preset") or next(iter(PRESETS))
        if preset not in PRESETS:
            raise Invalid("preset", expected=either(PRESETS), got=preset)
        return _form(session, societies_form.defaults(models, preset), preset=preset)


@blueprint.post("/societies/new")
def start_society() -> ResponseReturnValue:
    """Say what the society will take, or write it down and call a worker, as the button says."""
    form = societies_form.typed(request)
    try:
        with reading() as session:
            spec, expected = _read(session, form)
        if form_action() == "estimate" or asks_again(form, expected):
            with reading() as session:
                asks = asks_again(form, expected) and form_action() != "estimate"
                return _form(session, form, expected=expected, asks=asks)
        by = requester()
        number = write_once(lambda session: lifecycle.create(session, spec, queued=True, requester=by).id)
    except RefusedField as error:
        with reading() as session:
            return _form(session, form, refused=error), error.error.status
    except AppError as error:
        with reading() as session:
            return _form(session, form, refused=societies_form.refusal(error)), error.status
    SOCIETY.enqueue(settings().broker_url, number)
    return redirect(url_for("admin.society_page", society_id=number), 303)


def _read(session: Session, form: Mapping[str, Any]) -> tuple[SocietySpec, SocietyEstimate]:
    """What a form asks for, and what that will take. Raises RefusedField."""
    spec = societies_form.read(session, form)
    try:
        return spec, lifecycle.estimated(session, spec)
    except AppError as error:
        raise societies_form.refusal(error) from None


def asks_again(form: Mapping[str, Any], expected: SocietyEstimate) -> bool:
    """Whether somebody has to say once more that this is meant; a form that was changed since asks again."""
    dearest = settings().CONFIRM_COST
    return bool(dearest and (expected.cost or 0) > dearest and form["agreed"] != agreement(expected))


def agreement(expected: SocietyEstimate) -> str:
    """What a second press of the button agrees to."""
    return f"{expected.calls} calls"


def _form(
    session: Session,
    form: Mapping[str, Any],
    *,
    preset: str = "",
    refused: RefusedField | None = None,
    expected: SocietyEstimate | None = None,
    asks: bool = False,
) -> str:
    models = societies_form.chat_models(session)
    named = {row.name for row in models}
    return render_template(
        "admin/society-new.html",
        form={**form, "agreed": agreement(expected) if expected and asks else ""},
        models=models,
        lost=[name for name in (*form["shares"], *form["observers"]) if name not in named],
        presets=list(PRESETS),
        preset=preset,
        fields={name: setting_field(name) for name in societies_form.SCHEMAS},
        ticks=societies_form.TICKS,
        shipped=len(read_questions()),
        refused=refused,
        expected=expected,
        asks=asks,
        dearest=settings().CONFIRM_COST,
    )


def setting_field(name: str) -> OptionField:
    """A setting as a field of the form; one that may be empty says what holds then."""
    schema = societies_form.SCHEMAS[name]
    found = option_field(name, schema) if name not in societies_form.TICKS else _tick(name, schema)
    if unset := schema.get("unset"):
        found = found._replace(help=f"{found.help} {gettext('Empty: %(value)s.', value=gettext(unset))}")
    if name == "seed":
        found = found._replace(help=f"{found.help} {gettext('Empty: drawn.')}")
    return found._replace(choices=[(word, setting_words(word)) for word, _ in found.choices])


def _tick(name: str, schema: Mapping[str, Any]) -> OptionField:
    title, hint = schema["title"], schema["description"]  # a call with a text in it would be taken for that text
    return OptionField(name, gettext(title), gettext(hint), "", ())
