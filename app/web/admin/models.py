"""The registry of language models: list, add, test, label, switch."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.errors import AppError, Conflict, Invalid, NotFound, Phrase
from app.extensions import reading
from app.games import GAMES
from app.matches.test_call import waits_for_test
from app.models import LanguageModel, SeatRow
from app.players.api.options import TOKEN_FIELDS
from app.players.description import partner_kind
from app.players.local import options as local_options
from app.players.prompts import default_prompt, styles
from app.queues import enqueue_test_call
from app.registry import (
    add_api_model,
    list_models,
    may_be_offered,
    needs_test,
    player_spec,
    read_options,
    set_label,
    set_offered_to_people,
    set_usable_in_rounds,
)
from app.web.admin.blueprint import blueprint
from app.web.admin.rounds_form import RefusedField
from app.web.form_writes import write
from app.web.seats import settings
from app.web.translations import game_titles

_GREATEST = 2**31 - 1  # number of a row that the database can look for
_SWITCHES: Mapping[str, Callable[[Session, str], None]] = {
    "rounds-on": partial(set_usable_in_rounds, on=True),
    "rounds-off": partial(set_usable_in_rounds, on=False),
    "people-on": partial(set_offered_to_people, on=True),
    "people-off": partial(set_offered_to_people, on=False),
}
_TEXTS = ("model", "base_url", "organisation", "key_env", "token_field")
_NUMBERS = (
    "temperature", "top_p", "seed", "max_tokens", "timeout", "retries", "in_flight", "tokens_per_minute", "price_in",
    "price_out",
)  # fmt: skip

blueprint.add_app_template_test(needs_test, "needs_test")


@blueprint.get("/models")
def models() -> str:
    """Every registered model."""
    with reading() as session:
        rows = list_models(session)
        return render_template(
            "admin/models.html",
            models=rows,
            played=_played(session),
            kinds={row.id: _told(row) for row in rows},
            titles=game_titles(),
            may_be_offered=may_be_offered,
        )


@blueprint.get("/models/new")
def new_model() -> str:
    """A form for a model behind an OpenAI-compatible server."""
    return _form({"key_env": "OPENAI_API_KEY"}, list(GAMES), None)


@blueprint.post("/models/new")
def add_model() -> ResponseReturnValue:
    """Register it, and have a worker make a test call."""
    form = request.form
    games = [game for game in GAMES if game in form.getlist("games")]
    try:
        if not games:
            raise Invalid("games", expected=Phrase("at least one that the model plays"), got=Phrase("none"))
        number = _add(form, games)
    except AppError as error:
        return _form(form, games, error), error.status
    enqueue_test_call(settings().broker_url, number)
    return redirect(url_for("admin.model", number=number), 303)


def _add(form: Mapping[str, str], games: list[str]) -> int:
    """Register the model that the form describes, and ask for a test call. Its number."""
    name, label = form.get("name", "").strip(), form.get("label", "").strip() or None
    style, options, chosen = form.get("prompt_style", "full"), _options(form), settings()

    def added(session: Session) -> int:
        row = add_api_model(
            session,
            name,
            label,
            games,
            options,
            prompt_style=style,
            hosts=chosen.api_hosts,
            key_variables=chosen.key_variables,
        )
        row.test_asked_at = datetime.now(UTC)
        session.flush()
        return row.id

    return write(added)


@blueprint.get("/models/<int:number>")
def model(number: int) -> str:
    """One model: its options, its latest test call, and what can be changed."""
    return _page(number)


@blueprint.post("/models/<int:number>")
def change_model(number: int) -> ResponseReturnValue:
    """Do what the pressed button says: make a test call, press a switch, change the label."""
    action, label = request.form.get("action", ""), request.form.get("label", "")
    try:
        write(lambda session: _change(session, _find(session, number), action, label))
    except (Invalid, Conflict) as error:
        typed = label if action == "label" else None
        return _page(number, error, typed), error.status
    if action == "test":
        enqueue_test_call(settings().broker_url, number)
    if request.form.get("from") == "list":
        return redirect(url_for("admin.models", _anchor=f"model-{number}"), 303)
    return redirect(url_for("admin.model", number=number), 303)


def _told(row: LanguageModel) -> str:
    """What people are told that a model is, one of `players.description.KINDS`."""
    return partner_kind(player_spec(row), settings().home)


def _change(session: Session, row: LanguageModel, action: str, label: str) -> None:
    if action == "test":
        if row.kind == "scripted":
            raise Conflict(
                "model", expected=Phrase("one that is called"), got=Phrase("a scripted one, which needs no test")
            )
        row.test_asked_at = datetime.now(UTC)
    elif action in _SWITCHES:
        _SWITCHES[action](session, row.name)
    elif action == "label":
        set_label(session, row.name, label.strip())
    else:
        raise Invalid("action", expected=Phrase("test, label, %(names)s", names=", ".join(_SWITCHES)), got=action)


def _find(session: Session, number: int) -> LanguageModel:
    row = session.get(LanguageModel, number) if number <= _GREATEST else None
    if row is None:
        raise NotFound("model", expected=Phrase("the number of one that is registered"), got=number)
    return row


def _page(number: int, refused: AppError | None = None, typed_label: str | None = None) -> str:
    with reading() as session:
        row = _find(session, number)
        return render_template(
            "admin/model.html",
            model=row,
            options=read_options(player_spec(row)),
            parameters=_parameters(row),
            waits=waits_for_test(row),
            prompts=_prompts(row),
            played=_played(session).get(row.id, 0),
            told=_told(row),
            may_be_offered=may_be_offered,
            titles=game_titles(),
            refused=refused,
            label=row.label if typed_label is None else typed_label,
            label_refused=typed_label is not None,
        )


def _parameters(row: LanguageModel) -> int | None:
    """The number of weights of a local model that is on this machine."""
    if row.kind != "local":
        return None
    return local_options.parameters(local_options.resolve(settings().home, row.options["path"]))


def _prompts(row: LanguageModel) -> dict[str, str]:
    """The template by which a new match puts each game into words for the model."""
    if row.prompt_style is None:
        return {}
    return {game: default_prompt(game, row.prompt_style)["template"] for game in row.games}


def _played(session: Session) -> dict[int | None, int]:
    """Matches by model."""
    counted = select(SeatRow.language_model_id, func.count(SeatRow.match_id.distinct())).group_by(
        SeatRow.language_model_id
    )
    return {row[0]: row[1] for row in session.execute(counted)}


def _form(values: Mapping[str, Any], games: list[str], error: AppError | None) -> str:
    refused = None if error is None else RefusedField(error.field or "", error)
    return render_template(
        "admin/model-new.html",
        values=values, chosen=games, refused=refused, titles=game_titles(), token_fields=TOKEN_FIELDS,
        hosts=settings().api_hosts, variables=settings().key_variables, styles=styles(GAMES),
    )  # fmt: skip


def _options(form: Mapping[str, str]) -> dict[str, Any]:
    """The options of the registry's row; what was left empty is not among them. Raises Invalid for bad JSON."""
    found: dict[str, Any] = {name: text for name in _TEXTS if (text := form.get(name, "").strip())}
    found["key_env"] = form.get("key_env", "").strip()  # empty means: a server without keys
    for name in _NUMBERS:
        if text := form.get(name, "").strip():
            found[name] = None if text == "none" else _number(text)
    if extra := form.get("extra", "").strip():
        try:
            found["extra"] = json.loads(extra)
        except (ValueError, RecursionError):
            raise Invalid(
                "extra", expected=Phrase('a JSON object such as {"top_k": 40}'), got=Phrase("something else")
            ) from None
    return found


def _number(text: str) -> Any:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text  # refused where the options are read, which says what was expected
