"""Pulling models and datasets from a hub or a folder, as `flask model pull` and `flask dataset pull` do."""

import json
import pickle
import subprocess
import sys
from collections.abc import Sequence

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from gevent.lock import BoundedSemaphore

from app.core.config import ROOT
from app.core.errors import AppError, Conflict, Phrase, Unavailable
from app.core.extensions import db
from app.games import GAMES
from app.publication.bundle import DATASET, MODEL
from app.publication.places import read_place
from app.web.admin.blueprint import blueprint
from app.web.forms import RefusedField
from app.web.seats import settings
from app.web.translations import game_titles

_FIELDS = ("place", "revision", "name")
_one_at_a_time = BoundedSemaphore(1)  # a pull may take gigabytes


@blueprint.get("/models/pull")
def new_model_pull() -> str:
    """A form for a checkpoint that somebody has published."""
    return _pull_page(MODEL)


@blueprint.post("/models/pull")
def pull_model() -> ResponseReturnValue:
    """Fetch it, check it and register it."""
    return _act(MODEL)


@blueprint.get("/datasets/pull")
def new_dataset_pull() -> str:
    """A form for a dataset that was pushed from a Parlor."""
    return _pull_page(DATASET)


@blueprint.post("/datasets/pull")
def pull_dataset() -> ResponseReturnValue:
    """Fetch its rows, check them and register them."""
    return _act(DATASET)


def _pull_page(kind: str, error: AppError | None = None) -> str:
    refused = None
    if error is not None:
        # What is wrong with what is there is shown at the place that has it.
        refused = RefusedField(error.field if error.field in (*_FIELDS, "games") else "place", error)
    form = {name: request.form.get(name, "") for name in _FIELDS}
    return render_template(
        "admin/pull.html", kind=kind, form=form, refused=refused, chosen=_games(), titles=game_titles()
    )


def _games() -> list[str]:
    ticked = request.form.getlist("games")
    return [game for game in GAMES if game in ticked]


def _act(kind: str) -> ResponseReturnValue:
    place, revision, name = (request.form.get(field, "").strip() for field in _FIELDS)
    try:
        read_place(place, revision or None, "place")
        number = _pull_in_process(kind, place, revision, name, _games())
    except AppError as error:
        return _pull_page(kind, error), error.status
    if kind == MODEL:
        return redirect(url_for("admin.model", number=number), 303)
    return redirect(url_for("admin.dataset_page", dataset_id=number), 303)


def _pull_in_process(kind: str, place: str, revision: str, name: str, games: Sequence[str]) -> int:
    """The number of what was pulled, by a process that may load the library of the hub. Raises AppError."""
    said = {
        "settings": settings().model_dump(mode="json"),
        "database": db.engine.url.render_as_string(hide_password=False),
        "kind": kind,
        "place": place,
        "revision": revision or None,
        "name": name or None,
        "games": games,
    }
    if not _one_at_a_time.acquire(blocking=False):
        expected, remedy = Phrase("no other pull at the same time"), Phrase("try again when that one is over")
        raise Conflict("place", expected=expected, got=Phrase("one that goes on"), remedy=remedy)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "app.publication.pulling"],
            input=json.dumps(said).encode() + b"\n",
            capture_output=True,
            cwd=ROOT,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise Unavailable(Phrase("The pull broke off: %(why)s", why="".join(last))) from None
    finally:
        _one_at_a_time.release()
    answer: int | AppError = pickle.loads(done.stdout)  # noqa: S301 - our own process wrote it
    if isinstance(answer, AppError):
        raise answer
    return answer
