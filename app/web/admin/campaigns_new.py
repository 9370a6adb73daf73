"""Starting campaigns: the form, filled in for a base, and the start."""

from collections.abc import Mapping
from typing import Any

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.campaigns import lifecycle
from app.campaigns.job import CAMPAIGN
from app.campaigns.material import parted
from app.campaigns.presets import PRESETS
from app.campaigns.spec import METHODS, mixes_supervised_rows, needs_rewards
from app.campaigns.start_data import read_start_data
from app.core.errors import AppError
from app.core.extensions import db, reading
from app.datasets import store
from app.datasets.filters import FILTERS
from app.finetuning.config import find_method
from app.games import GAMES, find_game
from app.matches.material import server_file
from app.registry import round_models
from app.web.admin import campaigns_form
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import requester
from app.web.admin.rounds_scores import in_thread, in_worker_thread
from app.web.admin.training_fields import training_fields
from app.web.form_writes import write_once
from app.web.forms import RefusedField
from app.web.game_options import option_fields
from app.web.seats import settings
from app.web.translations import game_titles
from training.methods.base import CONVERSATIONS


@blueprint.get("/campaigns/new")
def new_campaign() -> str:
    """The launch form of a game, for the base and with the published settings that the address names."""
    game = find_game(request.args.get("game") or next(iter(GAMES))).name
    base, preset = request.args.get("base", ""), request.args.get("preset", "")
    with reading() as session:
        models = round_models(session, game)
        return _form(session, campaigns_form.defaults(game, models, base, preset))


@blueprint.post("/campaigns/new")
def start_campaign() -> ResponseReturnValue:
    """Write the campaign down, call a worker, and show it; or say why it cannot be."""
    game = find_game(request.form.get("game", "")).name
    form = campaigns_form.typed(request, game)
    try:
        wanted = campaigns_form.read(form, settings())
        spec = wanted.spec
        # Material may be drawn for half a second, and matches read for as long, during which others play.
        material = in_thread(db.engine, lambda _own: parted(spec.game, wanted.material, spec.evaluation, spec.seed))
        start = in_worker_thread(db.engine, read_start_data, settings().home, spec)
        by = requester()
        number = write_once(
            lambda session: lifecycle.create(session, spec, wanted.name, material, start, queued=True, requester=by).id
        )
    except (RefusedField, AppError) as error:
        status = error.status if isinstance(error, AppError) else 400
        if isinstance(error, AppError):
            error = RefusedField(campaigns_form.field_of(error, game), error)
        with reading() as session:
            return _form(session, form, error), status
    CAMPAIGN.enqueue(settings().broker_url, number)
    return redirect(url_for("admin.campaign_page", campaign_id=number), 303)


def _form(session: Session, form: Mapping[str, Any], refused: RefusedField | None = None) -> str:
    game = find_game(form["game"])
    models = round_models(session, game.name)
    fields = training_fields(campaigns_form.method_fields())
    return render_template(
        "admin/campaign-new.html",
        form=form,
        refused=refused,
        bases=[model.name for model in campaigns_form.bases(models)],
        partners=campaigns_form.partners(models),
        datasets=[row for row in store.list_datasets(session) if row.kind == CONVERSATIONS],
        filters=FILTERS,
        methods=[find_method(name) for name in METHODS],
        rewarded=[name for name in METHODS if needs_rewards(name)],
        mixing=[name for name in METHODS if mixes_supervised_rows(name)],
        presets=PRESETS,
        training_fields=[fields[name] for name in campaigns_form.FIELDS],
        titles=game_titles(),
        options=option_fields(game),
        material=game.material,
        server_file=server_file(game.material, settings()),
    )
