"""Forms of the registry: a new API model, and a clone of a model."""

import json
from collections.abc import Mapping
from typing import Any

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.core.errors import AppError, Invalid, NotFound, Phrase
from app.core.extensions import reading
from app.core.queues import enqueue_request
from app.games import GAMES
from app.model_calls.test_call import request_test
from app.models import LanguageModel
from app.players.api import structured
from app.players.api.reasoning import FORMS
from app.players.api.server_errors import TOKEN_FIELDS
from app.players.local.options import read_template_arguments
from app.players.prompts import styles
from app.players.stop_strings import read_stop
from app.registry import add_api_model, get_model_by_number
from app.registry.changes import clone_model
from app.registry.price_table import find_prices, load_price_table
from app.registry.prices import PRICES
from app.web.admin.blueprint import blueprint
from app.web.form_writes import write_once
from app.web.forms import RefusedField
from app.web.seats import settings
from app.web.translations import game_titles

_TEXTS = (
    "model",
    "base_url",
    "organisation",
    "token_field",
    "reasoning",
    "reasoning_form",
    "structured_output",
    "structured_form",
)
_OF_API = (
    "temperature", "top_p", "seed", "max_tokens", "timeout", "retries", "in_flight", "tokens_per_minute", *PRICES,
    "price_training", "reasoning_room",
)  # fmt: skip
_FILL = "fill-prices"  # the button that fills in prices from the table
_OF_LOCAL = ("temperature", "top_k", "top_p", "max_tokens", "in_flight", "reasoning", "reasoning_room")


@blueprint.get("/models/new")
def new_model() -> str:
    """A form for a model behind an OpenAI-compatible server."""
    return _model_form({"key_env": "OPENAI_API_KEY"}, list(GAMES), None)


@blueprint.post("/models/new")
def add_model() -> ResponseReturnValue:
    """Register the model and have a worker make a test call."""
    form = request.form
    games = [game for game in GAMES if game in form.getlist("games")]
    if form.get("action") == _FILL:
        return _with_prices(form, games)
    try:
        if not games:
            raise Invalid("games", expected=Phrase("at least one that the model plays"), got=Phrase("none"))
        return _added(form, games)
    except AppError as error:
        return _model_form(form, games, error), error.status


@blueprint.get("/models/<int:number>/clone")
def clone_form(number: int) -> str:
    """A form for a model that differs from this one only in address, checkpoint, sampling or prompt style."""
    with reading() as session:
        row = _cloneable(session, number)
        given = {"prompt_style": row.prompt_style, **row.options}
    values = {name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in given.items()}
    return _model_form(values, row.games, None, row)


@blueprint.post("/models/<int:number>/clone")
def clone(number: int) -> ResponseReturnValue:
    """Register the clone, and have a worker make a test call."""
    with reading() as session:
        row = _cloneable(session, number)
    if request.form.get("action") == _FILL and row.kind == "api":
        return _with_prices(request.form, row.games, row)
    try:
        return _added(request.form, row.games, row)
    except AppError as error:
        return _model_form(request.form, row.games, error, row), error.status


def _cloneable(session: Session, number: int) -> LanguageModel:
    """The model with that number. Raises NotFound, also for a scripted one, in which a clone could change nothing."""
    row = get_model_by_number(session, number)
    if row.kind == "scripted":
        raise NotFound("model", expected=Phrase("the number of one that is not scripted"), got=number)
    return row


def read_numbers(form: Mapping[str, str], names: tuple[str, ...]) -> dict[str, Any]:
    """The numbers of a form without the empty ones, None for "none"; text that is no number is kept, to be refused
    later.
    """
    given = {name: text for name in names if (text := form.get(name, "").strip())}
    return {name: None if text == "none" else _typed_number_or_text(text) for name, text in given.items()}


def _added(form: Mapping[str, str], games: list[str], original: LanguageModel | None = None) -> ResponseReturnValue:
    """Register the model that the form describes, request a test call, and redirect to its page."""
    name, label = form.get("name", "").strip(), form.get("label", "").strip() or None
    usual = original.prompt_style if original is not None else styles(games)[0]
    style, chosen = form.get("prompt_style") or str(usual), settings()
    limits: dict[str, Any] = {"hosts": chosen.api_hosts, "key_variables": chosen.key_variables}
    local = original is not None and original.kind == "local"
    names = (*_OF_LOCAL, "stop", "template_arguments") if local else (*_TEXTS, "key_env", *_OF_API, "stop", "extra")
    options = _typed_local_options(form) if local else _typed_options(form)
    left_out = [option for option in names if option not in options]

    def added(session: Session) -> tuple[int, int]:
        if original is None:
            row = add_api_model(session, name, label, games, options, prompt_style=style, **limits)
        else:
            row = clone_model(
                session, original.name, name, label, options=options, left_out=left_out, prompt_style=style, **limits
            )
        return row.id, request_test(session, row).id

    number, test = write_once(added)
    enqueue_request(settings().broker_url, test)
    return redirect(url_for("admin.model", number=number), 303)


def _with_prices(
    form: Mapping[str, str], games: list[str], original: LanguageModel | None = None
) -> ResponseReturnValue:
    """The form as it was sent, with the prices that the table has for its model."""
    values = dict(form)
    try:
        line = find_prices(load_price_table(settings()), _typed_options(form))
    except AppError as error:
        return _model_form(values, games, error, original), error.status
    if line is not None:
        values |= {name: f"{line.prices[name]:.10g}" if name in line.prices else "" for name in PRICES}
    nothing = Phrase("the table of prices has no line for this model at this address")
    return _model_form(values, games, None, original, nothing if line is None else line.said)


def _model_form(
    values: Mapping[str, Any],
    games: list[str],
    error: AppError | None,
    original: LanguageModel | None = None,
    prices_said: Phrase | None = None,
) -> str:
    refused = None if error is None else RefusedField(error.field or "", error)
    return render_template(
        "admin/model-new.html",
        values=values, chosen=games, refused=refused, original=original, titles=game_titles(),
        token_fields=TOKEN_FIELDS, reasoning_forms=FORMS, structured_forms=structured.FORMS, hosts=settings().api_hosts,
        variables=settings().key_variables, styles=styles(games or list(GAMES)),
        prices_said=prices_said, has_price_table=_has_price_table(),
    )  # fmt: skip


def _has_price_table() -> bool:
    """Whether the price table has any line; a bad table counts, so that the button says what is wrong."""
    try:
        return bool(load_price_table(settings()))
    except AppError:
        return True


def _typed_options(form: Mapping[str, str]) -> dict[str, Any]:
    """The options for the registry's row, without empty fields. Raises Invalid for bad JSON."""
    found: dict[str, Any] = {name: text for name in _TEXTS if (text := form.get(name, "").strip())}
    found["key_env"] = form.get("key_env", "").strip()  # empty: a server without keys
    found |= read_numbers(form, _OF_API) | _typed_stop(form)
    if extra := form.get("extra", "").strip():
        try:
            found["extra"] = json.loads(extra)
        except (ValueError, RecursionError):
            raise Invalid(
                "extra", expected=Phrase('a JSON object such as {"top_k": 40}'), got=Phrase("something else")
            ) from None
    return found


def _typed_local_options(form: Mapping[str, str]) -> dict[str, Any]:
    """The options for a local model's row, without empty fields. Raises Invalid for bad JSON."""
    arguments = read_template_arguments(form.get("template_arguments", "").strip())
    return {
        **read_numbers(form, _OF_LOCAL),
        **_typed_stop(form),
        **({"template_arguments": arguments} if arguments else {}),
    }


def _typed_stop(form: Mapping[str, str]) -> dict[str, Any]:
    stop = read_stop(form.get("stop", "").strip())
    return {"stop": list(stop)} if stop else {}


def _typed_number_or_text(text: str) -> Any:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text  # refused where the options are read, which names the expected value
