"""The registry of language models: the list, and a page for each, to test, switch, edit, play and archive it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from flask import get_template_attribute, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext
from markupsafe import Markup
from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from app.benchmarks.listing import compare
from app.core.errors import AppError, Conflict, Invalid, Verbatim
from app.core.extensions import reading
from app.core.queues import enqueue_request, enqueue_turn
from app.games import GAMES
from app.inference.weights import parameters
from app.jobs.states import OPEN
from app.jobs.tags import MODEL
from app.lineage import models_of
from app.matches.lobby import person_in, start_match_against
from app.matches.model_list import LIST, ModelListItem, matches_of
from app.model_calls.test_call import check_costs, latest_check, request_check, request_test
from app.models import LanguageModel, ModelRequest
from app.players.api import finding_words
from app.players.api.end_dates import end_of
from app.players.api.options import ApiOptions
from app.players.api.server_findings import SamplingCheck, read_findings
from app.players.description import partner_kind
from app.players.local import options as local_options
from app.players.local.serving import NAMES, SERVER, WORKER, in_words
from app.players.prompts import default_prompt
from app.registry import (
    get_model_by_number,
    is_shipped,
    may_be_offered,
    needs_test,
    player_spec,
    read_options,
    set_offered_to_people,
    set_usable_in_rounds,
)
from app.registry.adapters import engine_of
from app.registry.changes import (
    EDITABLE,
    archive_model,
    edit_model,
    is_in_use,
    remove_model,
    restore_model,
)
from app.registry.price_table import PriceLine, find_prices, load_price_table
from app.registry.prices import own_prices
from app.registry.serving import may_play_with_server, set_play_with
from app.web.admin.blueprint import blueprint
from app.web.admin.lists import ListPage, add_address, register_list, show_list
from app.web.admin.models_form import read_numbers
from app.web.admin.tags import tag_filter
from app.web.form_writes import write, write_once
from app.web.seats import hold, settings
from app.web.translations import game_titles

_ACTIONS: Mapping[str, Callable[[Session, str], None]] = {
    "rounds-on": partial(set_usable_in_rounds, on=True),
    "rounds-off": partial(set_usable_in_rounds, on=False),
    "people-on": partial(set_offered_to_people, on=True),
    "people-off": partial(set_offered_to_people, on=False),
    "play-with-worker": partial(set_play_with, play_with=WORKER),
    "play-with-server": partial(set_play_with, play_with=SERVER),
    "archive": archive_model,
    "restore": restore_model,
    "remove": remove_model,
}
blueprint.add_app_template_test(needs_test, "needs_test")
blueprint.add_app_template_global(may_be_offered)
add_address("model", lambda number: url_for("admin.model", number=number))


def _switches(use: str) -> Callable[[Session, Sequence[ModelListItem]], list[Markup]]:
    """The switches of a use, a form each."""

    def drawn(_session: Session, items: Sequence[ModelListItem]) -> list[Markup]:
        write_switch = get_template_attribute("admin/model-parts.html", "uses_switch")
        return [write_switch(each.row, use, "list") for each in items]

    return drawn


def _model_labels(_session: Session, items: Sequence[ModelListItem]) -> list[Markup]:
    """The label of each model that people read before they play it."""
    write_label = get_template_attribute("admin/model-parts.html", "label_and_kind")
    return [write_label(each.row.label, _partner_kind(each.row)) for each in items]


def _test_calls(_session: Session, items: Sequence[ModelListItem]) -> list[Markup]:
    write_test = get_template_attribute("admin/parts.html", "tested")
    return [write_test(each.row) for each in items]


def _elsewhere(archived: bool) -> Callable[[Session, Mapping[str, str]], dict[str, Any]]:
    """The number of models in the archive, or outside it if the list shows the archive."""

    def counted(session: Session, _given: Mapping[str, str]) -> dict[str, Any]:
        others = select(func.count()).select_from(LanguageModel).where(_in_archive(not archived))
        return {"archived": archived, "elsewhere": session.scalar(others)}

    return counted


def _in_archive(archived: bool) -> ColumnElement[bool]:
    since = LanguageModel.archived_at
    return since.is_not(None) if archived else since.is_(None)


_IN_USE = ListPage(
    LIST,
    lazy_gettext("Models"),
    "models",
    new=[
        ("admin.new_model", lazy_gettext("Add an API model")),
        ("admin.new_model_pull", lazy_gettext("Pull a model")),
    ],
    template="admin/models.html",
    **tag_filter(MODEL, LanguageModel.id, where=lambda _session, _given: [_in_archive(False)]),
    fields=_elsewhere(False),
    values={
        "usable_in_rounds": _switches("rounds"),
        "offered_to_people": _switches("people"),
        "test_call": _test_calls,
        "label": _model_labels,
    },
)
_ARCHIVE = replace(
    _IN_USE,
    title=lazy_gettext("Archived models"),
    new=(),
    intro=lazy_gettext("Nothing new can use these. To take a model out of the archive, open its page."),
    about=lazy_gettext("The archive is empty."),
    **tag_filter(MODEL, LanguageModel.id, where=lambda _session, _given: [_in_archive(True)]),
    fields=_elsewhere(True),
    fixed={"archived": "1"},
)
register_list(_IN_USE)


@blueprint.get("/models")
def models() -> ResponseReturnValue:
    """The registered models, or the archived ones on request."""
    return show_list(_ARCHIVE if request.args.get("archived") == "1" else _IN_USE)


@blueprint.get("/models/<int:number>")
def model(number: int) -> str:
    """One model: its options, its latest test call, and what can be changed."""
    return _model_page(number)


@blueprint.post("/models/<int:number>")
def change_model(number: int) -> ResponseReturnValue:
    """Carry out the pressed button's action: make a test call, flip a switch, edit, archive, restore or remove."""
    form = request.form
    action = form.get("action", "")
    try:
        test = write_once(
            lambda session: _apply_model_action(session, get_model_by_number(session, number), action, form)
        )
    except (Invalid, Conflict) as error:
        return _model_page(number, error, form if action == "edit" else None), error.status
    if test is not None:
        enqueue_request(settings().broker_url, test)
    if action == "remove":
        return redirect(url_for("admin.models"), 303)
    if form.get("from") == "list":
        return redirect(url_for("admin.models", _anchor=f"line-{number}"), 303)
    return redirect(url_for("admin.model", number=number), 303)


@blueprint.post("/models/<int:number>/play")
def play_model(number: int) -> ResponseReturnValue:
    """Start a match of an experimenter against the model, regardless of its switches."""
    game, chosen = request.form.get("game", ""), settings()
    record = write(lambda session: start_match_against(session, chosen, game, get_model_by_number(session, number)))
    if record.model_to_move:
        enqueue_turn(chosen.broker_url, record.id)
    hold(record.id, person_in(record))
    return redirect(url_for("play.match", match_id=record.id), 303)


def _partner_kind(row: LanguageModel) -> str:
    """The kind of partner that people are told a model is, one of `players.description.KINDS`."""
    return partner_kind(player_spec(row), settings().home)


def _apply_model_action(session: Session, row: LanguageModel, action: str, form: Mapping[str, str]) -> int | None:
    """Make the change. Returns the number of the request to tell a worker about, if there is one."""
    if action == "test":
        return request_test(session, row).id
    if action == "check-sampling":
        return request_check(session, row).id
    if action in _ACTIONS:
        _ACTIONS[action](session, row.name)
    elif action == "edit":
        given = read_numbers(form, EDITABLE[row.kind])
        options = {name: given.get(name) for name in EDITABLE[row.kind]}
        label, notes = form.get("label", "").strip(), form.get("notes", "").replace("\r\n", "\n").strip()
        edit_model(session, row.name, label=label, notes=notes, options=options)
    else:
        known = ", ".join(("test", "check-sampling", "edit", *_ACTIONS))
        raise Invalid("action", expected=Verbatim(known), got=action)
    return None


def _model_page(number: int, refused: AppError | None = None, typed: Mapping[str, str] | None = None) -> str:
    with reading() as session:
        row = get_model_by_number(session, number)
        check = latest_check(session, row)
        return render_template(
            "admin/model.html",
            model=row,
            options=read_options(player_spec(row)),
            parameters=_local_parameter_count(row),
            price_line=_price_line(row),
            own_prices=own_prices(row),
            waits=any(each is not None and each.status in OPEN for each in (row.test_request, check)),
            **_api_model_findings(row, check),
            **_server(row),
            prompts=_prompts(row),
            played=session.scalar(select(matches_of(row.id))),
            description=_partner_kind(row),
            titles=game_titles(),
            refused=refused,
            editable=EDITABLE[row.kind],
            values=typed or {"label": row.label, "notes": row.notes, **row.options},
            field=None if typed is None or refused is None else refused.field,
            removable=not is_shipped(row) and not is_in_use(session, row),
            original=row.cloned_from_id and session.get(LanguageModel, row.cloned_from_id),
            benchmarks=compare(session, [row]),
            may_play=[game for game in row.games if game in GAMES],
            withdrawn=models_of(session).get(row.id, ()),
        )


def _api_model_findings(row: LanguageModel, check: ModelRequest | None) -> dict[str, Any]:
    """The findings of test calls and of the latest sampling check of an API model."""
    options = read_options(player_spec(row))
    if not isinstance(options, ApiOptions):
        return {}
    findings = read_findings(row.findings)
    done = None if check is None or check.result is None else check.result.get("check")
    return {
        "ends": end_of(options.model, options.base_url),
        "findings": findings,
        "finding_lines": [] if findings is None else list(finding_words.in_words(findings, options)),
        "check": check,
        "check_words": done and finding_words.check_in_words(SamplingCheck.model_validate(done)),
        "check_costs": check_costs(row),
    }


def _server(row: LanguageModel) -> dict[str, Any]:
    """The engine that serves a local model, its state, and whether the model may play."""
    served = engine_of(row)
    return {
        "served": served,
        "engine": served and NAMES[served.engine],
        "engine_does": served and in_words(served, datetime.now(UTC)),
        "may_play_with_server": may_play_with_server(row),
    }


def _price_line(row: LanguageModel) -> PriceLine | None:
    """The line of the price table for a model behind an API; nothing if the table cannot be read."""
    try:
        return find_prices(load_price_table(settings()), row.options) if row.kind == "api" else None
    except AppError:
        return None


def _local_parameter_count(row: LanguageModel) -> int | None:
    """The number of weights of a local model that is on this machine."""
    if row.kind != "local":
        return None
    return parameters(local_options.resolve(settings().home, row.options["path"]))


def _prompts(row: LanguageModel) -> dict[str, str]:
    """The template that puts each game into words for the model in a new match."""
    if row.prompt_style is None:
        return {}
    return {game: default_prompt(game, row.prompt_style)["template"] for game in row.games}
