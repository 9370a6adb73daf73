"""Cards of models and datasets, obstacles to publishing them, and pushes, which need a second confirmation."""

from pathlib import Path
from typing import Any

from flask import Response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext
from sqlalchemy.orm import Session

from app.core.errors import AppError, Invalid, NotFound, Phrase
from app.core.extensions import db
from app.datasets.store import get_dataset
from app.models import Publication
from app.publication.bundle import CARD, DATASET, MODEL
from app.publication.card import dataset_card, model_card
from app.publication.creation import check_repository
from app.publication.job import PUBLICATION
from app.publication.licences import LICENCES
from app.publication.lifecycle import PlannedPush, plan
from app.publication.permissions import declare
from app.publication.release import Release, release_of_dataset, release_of_model
from app.publication.spec import PublicationSpec
from app.registry import get_model_by_number
from app.web.admin.blueprint import blueprint
from app.web.admin.job_form import Asked, FormWords, JobForm, register_form
from app.web.admin.job_pages import JobPages, register_pages, requester
from app.web.downloads import download
from app.web.form_writes import write
from app.web.forms import RefusedField
from app.web.seats import settings
from app.web.threads import in_worker_thread

_LEAVES = "leaves"  # the reason for asking once more

register_pages(
    PUBLICATION,
    JobPages(lazy_gettext("Publications"), "publications", "publication_id", below="models"),
    intro=lazy_gettext(
        "Models and datasets that were pushed to a hub or a folder. To publish one, start from the page of its card."
    ),
)


class _PublicationForm(JobForm[Publication, PublicationSpec]):
    kind = PUBLICATION
    spec = PublicationSpec
    estimate_template = "admin/publication-estimate.html"
    words = FormWords(
        title=lazy_gettext("Push to a hub"),
        intro=lazy_gettext(
            "Sends a model or a dataset with its card to a repository. It is published only if everybody whose games"
            " are in it agreed to publication. Copies cannot be called back."
        ),
        start=lazy_gettext("Push"),
        back=lazy_gettext("Back to the publications"),
        estimate=lazy_gettext("What would be published"),
        estimate_hint=lazy_gettext("Nothing is sent before you have seen this and pressed once more."),
    )

    def estimated(self, session: Session, asked: Asked[PublicationSpec]) -> PlannedPush:  # noqa: ARG002 - in a thread
        check_repository(asked.spec)
        found: PlannedPush = in_worker_thread(db.engine, plan, settings().home, asked.spec)
        return found

    def agreement(self, expected: PlannedPush) -> str:
        """The hash of the exact files that the page has named."""
        return expected.bundle.manifest.sha256

    def excess(self, expected: PlannedPush) -> str:  # noqa: ARG002 - whatever is published is asked about
        return _LEAVES


register_form(_PublicationForm())


# ---- Cards ---------------------------------------------------------------------------


def _read_card_and_obstacles(
    session: Session, home: Path, kind: str, number: int
) -> tuple[str, str | None, Release, NotFound | None]:
    """The name, the card, and the obstacles to publishing; without weights here, an error in place of the card."""
    if kind == DATASET:
        dataset = get_dataset(session, number)
        return dataset.reference, dataset_card(session, dataset), release_of_dataset(session, dataset), None
    row = get_model_by_number(session, number)
    try:
        card = model_card(session, home, row)
    except NotFound as error:
        return row.name, None, release_of_model(session, row), error
    return row.name, card, release_of_model(session, row), None


def _page(kind: str, number: int, error: AppError | None = None) -> str:
    name, card, release, missing = in_worker_thread(db.engine, _read_card_and_obstacles, settings().home, kind, number)
    place: dict[str, Any] = {"number": number} if kind == MODEL else {"dataset_id": number}
    return render_template(
        "admin/card.html", name=name, card=card, release=release, missing=missing, kind=kind,
        thing=url_for("admin.model" if kind == MODEL else "admin.dataset_page", **place),
        file=url_for(f"admin.{kind}_card_file", **place),
        push=url_for("admin.new_publication", **{kind: name}),
        act=url_for(f"admin.permit_{kind}", **place), licences=[(each, each) for each in LICENCES],
        form={field: request.form.get(field, "") for field in ("licence", "reason")},
        refused=None if error is None else RefusedField(error.field or "licence", error),
    )  # fmt: skip


def _permit(kind: str, number: int) -> ResponseReturnValue:
    """Store the licence for redistribution, then show what still prevents publication."""
    by, form = requester().name, request.form

    def declared(session: Session) -> None:
        row = get_dataset(session, number) if kind == DATASET else get_model_by_number(session, number)
        declare(session, row, licence=form.get("licence", ""), reason=form.get("reason", ""), by=by)

    try:
        write(declared)
    except Invalid as error:
        return _page(kind, number, error), error.status
    place = {"number": number} if kind == MODEL else {"dataset_id": number}
    return redirect(url_for(f"admin.{kind}_card_page", **place), 303)  # type: ignore[arg-type]


def _download_card(kind: str, number: int) -> Response:
    _, card, _, missing = in_worker_thread(db.engine, _read_card_and_obstacles, settings().home, kind, number)
    if card is None:
        raise missing or NotFound("card", expected=Phrase("one"), got=number)
    return download([card.encode()], CARD, "text/markdown")


@blueprint.get("/models/<int:number>/card")
def model_card_page(number: int) -> str:
    """The card of a model, and the obstacles to publishing it."""
    return _page(MODEL, number)


@blueprint.post("/models/<int:number>/card")
def permit_model(number: int) -> ResponseReturnValue:
    """Declare the licence of a model that was added by hand."""
    return _permit(MODEL, number)


@blueprint.get("/models/<int:number>/README.md")
def model_card_file(number: int) -> Response:
    """The card of a model as a file."""
    return _download_card(MODEL, number)


@blueprint.get("/datasets/<int:dataset_id>/card")
def dataset_card_page(dataset_id: int) -> str:
    """The card of a dataset, and the obstacles to publishing it."""
    return _page(DATASET, dataset_id)


@blueprint.post("/datasets/<int:dataset_id>/card")
def permit_dataset(dataset_id: int) -> ResponseReturnValue:
    """Declare the licence of a dataset with rows from elsewhere."""
    return _permit(DATASET, dataset_id)


@blueprint.get("/datasets/<int:dataset_id>/README.md")
def dataset_card_file(dataset_id: int) -> Response:
    """The card of a dataset as a file."""
    return _download_card(DATASET, dataset_id)
