"""Pulling models and datasets from a hub or a folder, as `flask model pull` and `flask dataset pull` do.

A pull may take gigabytes, so it runs in the background, one at a time; the page of its form shows its progress.
"""

from threading import Lock

from flask import current_app, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from app.core.errors import AppError, Conflict, Phrase
from app.core.extensions import db
from app.games import GAMES
from app.publication.bundle import DATASET, MODEL
from app.publication.places import read_place
from app.publication.running_pull import PullRequest, RunningPull
from app.web.admin.blueprint import blueprint
from app.web.forms import RefusedField
from app.web.seats import settings
from app.web.translations import game_titles

_FIELDS = ("place", "revision", "name")
_LATEST = "pull"  # in the app's extensions: this process's latest or running pull
_BEGINS = Lock()  # while a process starts, others are served, such as the second half of a double click


@blueprint.get("/models/pull")
def new_model_pull() -> str:
    """A form for a published checkpoint, or the progress of the running pull."""
    return _latest_page(MODEL)


@blueprint.post("/models/pull")
def pull_model() -> ResponseReturnValue:
    """Start fetching, checking and registering the model."""
    return _start_pull_from_form(MODEL)


@blueprint.get("/datasets/pull")
def new_dataset_pull() -> str:
    """A form for a dataset that was pushed from a Parlor, or the progress of the running pull."""
    return _latest_page(DATASET)


@blueprint.post("/datasets/pull")
def pull_dataset() -> ResponseReturnValue:
    """Start fetching, checking and registering the dataset's rows."""
    return _start_pull_from_form(DATASET)


@blueprint.post("/pulls/cancel")
def cancel_pull() -> ResponseReturnValue:
    """Cancel the running pull, if any."""
    pull = _latest_pull()
    if pull is not None:
        pull.cancel()
    return redirect(_page_of(MODEL if pull is None else pull.request.kind), 303)


def _latest_pull() -> RunningPull | None:
    found: RunningPull | None = current_app.extensions.get(_LATEST)
    return found


def _latest_page(kind: str) -> str:
    """The form, with the result of the latest pull; if that was refused, its values can be corrected."""
    pull = _latest_pull()
    if pull is None or pull.request.kind != kind or pull.error is None:
        return _pull_page(kind, PullRequest(kind, "", "", "", (), ""))
    return _pull_page(kind, pull.request, pull.error)


def _pull_page(kind: str, asked: PullRequest, error: AppError | None = None) -> str:
    refused = None
    if error is not None:
        # Faults in the place's content are shown at the field for the place.
        refused = RefusedField(error.field if error.field in (*_FIELDS, "games") else "place", error)
    return render_template(
        "admin/pull.html", kind=kind, form=asked._asdict(), refused=refused, chosen=asked.games, titles=game_titles(),
        pull=_latest_pull(),
    )  # fmt: skip


def _page_of(kind: str) -> str:
    return url_for("admin.new_model_pull" if kind == MODEL else "admin.new_dataset_pull")


def _start_pull_from_form(kind: str) -> ResponseReturnValue:
    place, revision, name = (request.form.get(field, "").strip() for field in _FIELDS)
    ticked = request.form.getlist("games")
    asked = PullRequest(kind, place, revision, name, [game for game in GAMES if game in ticked], current_user.name)
    try:
        read_place(place, revision or None, "place")
        _start_pull_process(asked)
    except AppError as error:
        return _pull_page(kind, asked, error), error.status
    return redirect(_page_of(kind), 303)


def _start_pull_process(asked: PullRequest) -> None:
    """Start a pull, in a process that may load the hub's library. Raises Conflict while another one is running."""
    with _BEGINS:
        latest = _latest_pull()
        if latest is not None and latest.goes_on:
            expected, remedy = Phrase("no other pull at the same time"), Phrase("try again when that one is over")
            raise Conflict("place", expected=expected, got=Phrase("one that goes on"), remedy=remedy)
        current_app.extensions[_LATEST] = RunningPull(asked, settings(), db.engine)
