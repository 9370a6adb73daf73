"""Making datasets: the form, filled in from a round's page, and the cutting."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy import Engine

from app.core.errors import AppError, Invalid, Phrase, check_name
from app.core.extensions import db, reading
from app.datasets import build, register, store
from app.datasets.build import DatasetBuild
from app.datasets.filters import BOTH, FILTERS, SPEAKERS
from app.datasets.spec import NO_REWARDS, REWARDS, DatasetSpec, read_spec
from app.games import GAMES
from app.games.rewards import DECAY
from app.matches.filter import CONSENTS, NAMES, SOURCES
from app.matches.overview import reasons
from app.players.prompts import styles
from app.registry import PERSON, list_models
from app.web.admin.blueprint import blueprint
from app.web.admin.rounds_scores import in_thread
from app.web.form_writes import result_before, write, write_once
from app.web.forms import RefusedField
from app.web.seats import settings
from app.web.translations import game_titles

MOST = 20_000  # matches of a dataset that is cut while somebody waits for the page
# The conditions on matches of the form: those of all filters, but for what is always so or has a field of its own.
_CHOICE = [name for name in NAMES if name not in ("round", "status")]
_FURTHER = ("source", "player", "role", "campaign", "study", "arm", "consent", "match")  # of these, what is folded in
_DEFAULTS = {
    "rounds": "", **dict.fromkeys(_CHOICE, ""), "filter": "", "speakers": BOTH, "model": "",
    "style": "", "wordings": "", "seed": "", "name": "",
    "rewards": NO_REWARDS, "decay": "", "role_weights": "yes", "positive_only": "no",
}  # fmt: skip
_FIELDS = {"round": "rounds"}  # where an error calls a field otherwise


@blueprint.get("/datasets/new")
def new_dataset() -> str:
    """The form, for the rounds and the other conditions on matches that the address names."""
    rounds = ", ".join(each for each in request.args.getlist("round") if each.isdecimal())
    given = {name: request.args[name] for name in _CHOICE if name in request.args}
    return _build_form({**_DEFAULTS, **given, "rounds": rounds})


@blueprint.post("/datasets/new")
def make_dataset() -> ResponseReturnValue:
    """Cut a dataset and show it, or say why it cannot be."""
    form = {name: request.form.get(name, "").strip() for name in _DEFAULTS}
    if (before := result_before()) is not None:
        return redirect(url_for("admin.dataset_page", dataset_id=before), 303)
    try:
        wanted = read_spec({**form, "rounds": form["rounds"].replace(",", " ").split()})
        name = form["name"] or store.default_name(wanted)
        check_name("name", name)
        home = settings().home
        draft = in_thread(db.engine, lambda own: _built(own, home, wanted, form["name"]))
        number = register.save(write, draft, name)
        write_once(lambda _session: number)
    except AppError as error:
        return _build_form(form, error), error.status
    return redirect(url_for("admin.dataset_page", dataset_id=number), 303)


def _built(engine: Engine, home: Path, wanted: DatasetSpec, name: str) -> store.UnregisteredDataset:
    with reading(engine) as session:
        found = build.prepare(session, wanted)
        check_size(found, _command(wanted, name))
        return store.write(home, found, build.training_rows(session, found))


def check_size(found: DatasetBuild, command: str = "flask dataset rebuild") -> None:
    """Raises Invalid, which names the command, where there is more to read than somebody at a page waits for."""
    if found.matches > MOST:
        raise Invalid(
            "matches",
            expected=Phrase("at most %(most)s to be read while a page waits", most=MOST),
            got=found.matches,
            remedy=Phrase("`%(command)s` has no such limit", command=command),
        )


def _command(wanted: DatasetSpec, name: str) -> str:
    """What builds the same dataset in a terminal; an empty name is to be made up."""
    rounds = "".join(f" --round {number}" for number in wanted.rounds)
    given = ((name, getattr(wanted.matches, name)) for name in NAMES)
    choice = "".join(f" --{name} {shlex.quote(str(value))}" for name, value in given if value is not None)
    speakers = f" --speakers {wanted.speakers}" if wanted.speakers != BOTH else ""
    model = f" --model {shlex.quote(wanted.model)}" if wanted.model else ""
    style = f" --style {shlex.quote(wanted.style)}" if wanted.style else ""
    rewards = f" --rewards {wanted.rewards}" if wanted.has_rewards else ""
    if wanted.has_rewards:
        rewards += f" --decay {wanted.decay}" if wanted.decay != DECAY else ""
        rewards += "" if wanted.role_weights else " --no-role-weights"
        rewards += " --positive-only" if wanted.positive_only else ""
    wordings = "" if wanted.wordings is None else f" --wordings {wanted.wordings} --seed {wanted.seed}"
    called = f" --name {shlex.quote(name)}" if name else ""
    told = f"{style}{rewards}{wordings}{called}"
    return f"flask dataset build{rounds}{choice} --filter {wanted.filter}{speakers}{model}{told}"


def _field_of(error: AppError) -> str:
    """The field of the form that an error is about; empty if it is about none."""
    name = error.field or ""
    return _FIELDS.get(name, name)


def _build_form(form: Mapping[str, Any], error: AppError | None = None) -> str:
    with reading() as session:
        models = [model.name for model in list_models(session)]
        return render_template(
            "admin/dataset-new.html",
            form=form,
            refused=None if error is None else RefusedField(_field_of(error), error),
            filters=FILTERS,
            further=_FURTHER,
            speakers=SPEAKERS,
            sources=SOURCES,
            consents=CONSENTS,
            roles=list(dict.fromkeys(role for game in GAMES.values() for role in game.roles)),
            rewards=REWARDS,
            rewarded={game.title: game.rewards.summary for game in GAMES.values() if game.rewards},
            decay=DECAY,
            models=models,
            players=[PERSON, *models],
            reasons=reasons(session),
            styles=styles(GAMES),
            titles=game_titles(),
        )
