"""Pulling models and datasets from a hub or a folder, as `flask model pull` and `flask dataset pull` do.

A pull may take gigabytes, so it runs in the background, one at a time; the page of its form shows its progress.
"""

from threading import Lock

from flask import current_app, redirect, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext, lazy_gettext
from flask_login import current_user

from app.core.errors import AppError, Conflict, Phrase
from app.core.extensions import db, reading
from app.games.base import JSON
from app.publication.bundle import DATASET, MODEL
from app.publication.running_pull import PullRequest, RunningPull
from app.publication.spec import DatasetPullSpec, ModelPullSpec
from app.web.admin.blueprint import blueprint
from app.web.admin.spec_form import Form, filled_in
from app.web.admin.spec_page import Asked, FormWords, Link, SpecPage
from app.web.forms import RefusedField
from app.web.seats import settings

_LATEST = "pull"  # in the app's extensions: this process's latest or running pull
_BEGINS = Lock()  # while a process starts, others are served, such as the second half of a double click


class _PullPage(SpecPage[DatasetPullSpec]):
    """The form for a pull, or the progress of the running one."""

    template = "admin/pull.html"
    field = "place"  # also of faults in the place's content
    kind: str
    path: str

    def listed(self) -> Link:
        return Link(gettext("Models") if self.kind == MODEL else gettext("Datasets"), url_for(f"admin.{self.path}"))

    def action(self) -> str:
        return url_for(f"admin.pull_{self.kind}")

    def begin(self) -> str:
        """The form, with the result of the latest pull; if that was refused, its values can be corrected."""
        pull = _latest_pull()
        if pull is None or pull.request.kind != self.kind or pull.error is None:
            return super().begin()
        form = {**filled_in(self.spec, pull.request.spec.to_json()), "like": ""}
        with reading() as session:
            return self.page(session, form, refused=self.refusal(pull.error, form))

    def refusal(self, error: AppError, form: Form) -> RefusedField:
        found = super().refusal(error, form)
        return found if found.field in self.spec.model_fields else RefusedField(self.field, error)

    def further(self) -> JSON:
        return {"kind": self.kind, "pull": _latest_pull()}

    def make(self, asked: Asked[DatasetPullSpec]) -> str:
        """Start fetching, checking and registering it."""
        _start_pull_process(PullRequest(self.kind, asked.spec, current_user.name))
        return _page_of(self.kind)


class _ModelPullPage(_PullPage):
    kind, path, spec = MODEL, "models", ModelPullSpec
    words = FormWords(
        title=lazy_gettext("Pull a model"),
        intro=lazy_gettext(
            "A checkpoint from a repository on the hub, or from a folder that a model was pushed to. Its weights are"
            " safetensors, and none of its code is run."
        ),
        start=lazy_gettext("Pull it"),
        back=lazy_gettext("Back to the models"),
    )


class _DatasetPullPage(_PullPage):
    kind, path, spec = DATASET, "datasets", DatasetPullSpec
    words = FormWords(
        title=lazy_gettext("Pull a dataset"),
        intro=lazy_gettext(
            "Rows that a Parlor has pushed to a repository on the hub or to a folder. Each row is checked."
        ),
        start=lazy_gettext("Pull it"),
        back=lazy_gettext("Back to the datasets"),
    )


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


def _page_of(kind: str) -> str:
    return url_for(f"admin.new_{kind}_pull")


def _start_pull_process(asked: PullRequest) -> None:
    """Start a pull, in a process that may load the hub's library. Raises Conflict while another one is running."""
    with _BEGINS:
        latest = _latest_pull()
        if latest is not None and latest.goes_on:
            expected, remedy = Phrase("no other pull at the same time"), Phrase("try again when that one is over")
            raise Conflict("place", expected=expected, got=Phrase("one that goes on"), remedy=remedy)
        current_app.extensions[_LATEST] = RunningPull(asked, settings(), db.engine)


def _register(page: _PullPage) -> None:
    blueprint.add_url_rule(f"/{page.path}/pull", f"new_{page.kind}_pull", page.begin, methods=["GET"])
    blueprint.add_url_rule(f"/{page.path}/pull", f"pull_{page.kind}", page.start, methods=["POST"])


_register(_ModelPullPage())
_register(_DatasetPullPage())
