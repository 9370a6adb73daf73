"""Making datasets: the form, filled in from a round's page, and the cutting."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy import Engine

from app.datasets import build, register, store
from app.datasets.filters import ABOVE_AVG, BOTH, FILTERS, SOURCES
from app.datasets.spec import NO_REWARDS, REWARDS, DatasetSpec, read_spec
from app.errors import AppError, Invalid, Phrase, check_name
from app.extensions import db, reading
from app.games import GAMES
from app.games.rewards import DECAY
from app.matches.overview import reasons
from app.players.prompts import styles
from app.registry import list_models
from app.web.admin.blueprint import blueprint
from app.web.admin.rounds_scores import in_thread
from app.web.form_writes import write
from app.web.forms import RefusedField
from app.web.seats import settings
from app.web.translations import game_titles

MOST = 20_000  # matches of a dataset that is cut while somebody waits for the page
_DEFAULTS = {
    "rounds": "", "game": "", "filter": ABOVE_AVG, "source": BOTH, "model": "", "reason": "", "since": "", "until": "",
    "style": "", "name": "", "rewards": NO_REWARDS, "decay": "", "role_weights": "yes", "positive_only": "no",
}  # fmt: skip
_FIELDS = {"round": "rounds"}  # where an error calls a field otherwise


@blueprint.get("/datasets/new")
def new_dataset() -> str:
    """The form, for the rounds that the address names."""
    rounds = ", ".join(each for each in request.args.getlist("round") if each.isdecimal())
    return _form({**_DEFAULTS, "rounds": rounds})


@blueprint.post("/datasets/new")
def make_dataset() -> ResponseReturnValue:
    """Cut a dataset and show it, or say why it cannot be."""
    form = {name: request.form.get(name, "").strip() for name in _DEFAULTS}
    try:
        wanted = read_spec({**form, "rounds": form["rounds"].replace(",", " ").split()})
        name = form["name"] or store.default_name(wanted)
        check_name("name", name)
        home = settings().home
        draft = in_thread(db.engine, lambda own: _cut(own, home, wanted))
        number = register.save(write, draft, name)
    except AppError as error:
        return _form(form, error), error.status
    return redirect(url_for("admin.dataset_page", dataset_id=number), 303)


def _cut(engine: Engine, home: Path, wanted: DatasetSpec) -> store.UnregisteredDataset:
    with reading(engine) as session:
        found = build.prepare(session, wanted)
        if found.matches > MOST:
            raise Invalid(
                "matches",
                expected=Phrase("at most %(most)s to be read while a page waits", most=MOST),
                got=found.matches,
                remedy=Phrase("`%(command)s` has no such limit", command=_command(wanted)),
            )
        return store.write(home, found, build.training_rows(session, found))


def _command(wanted: DatasetSpec) -> str:
    rounds = "".join(f" --round {number}" for number in wanted.rounds)
    game = f" --game {wanted.game}" if wanted.game else ""
    rewards = f" --rewards {wanted.rewards}" if wanted.has_rewards else ""
    return f"flask dataset build{rounds}{game} --filter {wanted.filter}{rewards}"


def _field_of(error: AppError) -> str:
    """The field of the form that an error is about; empty if it is about none."""
    name = error.field or ""
    return _FIELDS.get(name, name)


def _form(form: Mapping[str, Any], error: AppError | None = None) -> str:
    with reading() as session:
        return render_template(
            "admin/dataset-new.html",
            form=form,
            refused=None if error is None else RefusedField(_field_of(error), error),
            filters=FILTERS,
            sources=SOURCES,
            rewards=REWARDS,
            rewarded={game.title: game.rewards.summary for game in GAMES.values() if game.rewards},
            decay=DECAY,
            models=[model.name for model in list_models(session)],
            reasons=reasons(session),
            styles=styles(GAMES),
            titles=game_titles(),
        )
