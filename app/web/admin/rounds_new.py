"""Launching rounds: the form, what they will take, and the start."""

from collections.abc import Mapping, Sequence
from typing import Any

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.core.errors import AppError, Invalid, Phrase
from app.core.extensions import reading
from app.games import GAMES, find_game
from app.jobs.kind import Requester
from app.matches.material import server_file
from app.models import LanguageModel, RoundRow
from app.registry import round_models
from app.rounds import estimate, lifecycle, matrix
from app.rounds.job import ROUND
from app.web.admin import rounds_form
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import requester
from app.web.admin.rounds_form import RoundForm
from app.web.form_writes import write_once
from app.web.forms import RefusedField
from app.web.game_options import option_fields
from app.web.seats import settings
from app.web.translations import game_titles


@blueprint.get("/rounds/new")
def new_round() -> str:
    """The launch form of a game, or one that is filled in like a round that was."""
    with reading() as session:
        if number := request.args.get("like", ""):
            row = ROUND.get(session, int(number) if number.isdecimal() and len(number) < 10 else 0)
            models = round_models(session, row.game)
            return _form(session, models, rounds_form.like(session, row, models))
        game = find_game(request.args.get("game") or next(iter(GAMES))).name
        models = round_models(session, game)
        return _form(session, models, rounds_form.defaults(game, models))


@blueprint.post("/rounds/new")
def launch_round() -> ResponseReturnValue:
    """Say what the rounds will take, or store them all at once and call the workers, as the button says."""
    game = find_game(request.form.get("game", "")).name
    with reading() as session:
        models = round_models(session, game)
        form = rounds_form.typed(request, game, models)
        try:
            wanted = rounds_form.read(session, form, settings())
            action = form_action()
            if action == "change":
                return _form(session, models, form)
            expected = _estimated(models, wanted)
            if action == "estimate":
                return _form(session, models, form, expected=expected)
            if _is_much(expected) and form["agreed"] != _agreement(expected):
                return _confirmation(form, wanted, expected)
        except RefusedField as error:
            return _form(session, models, form, refused=error), 400
    try:
        by = requester()
        numbers, matrix_id = write_once(lambda session: _create(session, wanted, by))
    except AppError as error:
        refused = RefusedField(rounds_form.field_of(error, game), error)
        with reading() as session:
            return _form(session, round_models(session, game), form, refused=refused), error.status
    for number in numbers:
        ROUND.enqueue(settings().broker_url, number)
    if matrix_id is not None:
        return redirect(url_for("admin.round_matrix", round_id=matrix_id), 303)
    return redirect(url_for("admin.round_page", round_id=numbers[0]), 303)


def form_action() -> str:
    """Which button was pressed: estimate, change (the form, instead of starting), or start."""
    action = request.form.get("action")
    return action if action in ("estimate", "change") else "start"


def _is_much(expected: estimate.Estimate) -> bool:
    """Whether somebody has to say once more that this is meant."""
    most, dearest = settings().CONFIRM_MATCHES, settings().CONFIRM_COST
    return bool((most and expected.matches > most) or (dearest and (expected.cost or 0) > dearest))


def _agreement(expected: estimate.Estimate) -> str:
    """What a press of the confirmation's button agrees to; a form that was changed after it asks for something else."""
    return f"{expected.rounds} rounds, {expected.matches} matches"


def _confirmation(form: Mapping[str, Any], wanted: RoundForm, expected: estimate.Estimate) -> str:
    """The page that says what was asked for, and starts it or goes back to the form."""
    return render_template(
        "admin/round-confirm.html",
        form={**form, "agreed": _agreement(expected)},
        expected=expected,
        models=list(dict.fromkeys(wanted.spec.models)),
        title=game_titles()[form["game"]],
        most=settings().CONFIRM_MATCHES,
        dearest=settings().CONFIRM_COST,
    )


def _create(session: Session, wanted: RoundForm, by: Requester) -> tuple[list[int], int | None]:
    """The numbers of the new rounds, and that of the cross-play that they are."""
    if wanted.spec.cross_play:
        rows = matrix.create(session, wanted.spec, wanted.material, queued=True, requester=by)
        return [row.id for row in rows], rows[0].matrix_id
    return [lifecycle.create(session, wanted.spec, wanted.material, queued=True, requester=by).id], None


def _estimated(models: Sequence[LanguageModel], wanted: RoundForm) -> estimate.Estimate:
    """What the rounds will take. Raises RefusedField for a model that cannot play."""
    playing = {name for pair in wanted.pairs for name in pair}
    rows = {model.name: model for model in models if model.name in playing}
    if missing := sorted(playing - set(rows)):
        expected = Phrase("one that plays %(game)s and is usable in rounds", game=wanted.spec.game)
        error = Invalid("model", expected=expected, got=missing[0])
        raise RefusedField("models" if wanted.spec.cross_play else "model_0", error)
    with reading() as session:
        config = dict(wanted.spec.config)
        habits = {name: estimate.habit_of(session, row, wanted.spec.game, config) for name, row in rows.items()}
    channels = {name: estimate.channel_of(row) for name, row in rows.items()}
    return estimate.estimate(wanted.pairs, wanted.spec.matches or 0, habits, channels)


def _form(
    session: Session,
    models: Sequence[LanguageModel],
    form: Mapping[str, Any],
    *,
    refused: RefusedField | None = None,
    expected: estimate.Estimate | None = None,
) -> str:
    game = find_game(form["game"])
    return render_template(
        "admin/round-new.html",
        form=form,
        models=models,
        titles=game_titles(),
        title=game_titles()[form["game"]],
        roles=game.roles,
        options=option_fields(game),
        material=game.material,
        sampling=game.sampling,
        like=_source(session, form),
        server_file=server_file(game.material, settings()),
        refused=refused,
        expected=expected,
    )


def _source(session: Session, form: Mapping[str, Any]) -> RoundRow | None:
    """The round that the form is filled in like."""
    number = form["like"]
    return session.get(RoundRow, int(number)) if number.isdecimal() and len(number) < 10 else None
