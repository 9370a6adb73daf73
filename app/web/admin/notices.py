"""The list of notices, a button that settles those that could not be sent, and the page that a job's notice links
to.
"""

from collections.abc import Mapping, Sequence

from flask import redirect, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext, lazy_gettext
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from app.core.errors import Invalid, NotFound, either
from app.job_kinds import JOB_KINDS
from app.models import Notice
from app.notices import outbox
from app.notices.listing import NOTICES, STATES
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import job_address
from app.web.admin.lists import ListFilter, ListPage, add_list
from app.web.form_writes import write


def _notice_conditions(_session: Session, given: Mapping[str, str]) -> Sequence[ColumnElement[bool]]:
    if "state" not in given:
        return []
    if given["state"] not in STATES:
        raise Invalid("state", expected=either(STATES), got=given["state"])
    return [Notice.status == given["state"]]


add_list(
    ListPage(
        NOTICES,
        lazy_gettext("Notices"),
        "notices",
        intro=lazy_gettext("Notices sent to experimenters by mail or webhook."),
        about=lazy_gettext(
            "No notices yet. Your account page says which ones you get; those of the installation are in the settings."
        ),
        command="flask notice test",
        filters=lambda _session: [ListFilter("state", gettext("State"), STATES)],
        where=_notice_conditions,
        counts=True,
    )
)


@blueprint.post("/notices")
def settle_notices() -> ResponseReturnValue:
    """Have the notices that could not be sent retried, or leave them."""
    action = request.form.get("action", "")
    write(lambda session: outbox.settle_failed(session, action))
    return redirect(url_for("admin.home"), 303)


@blueprint.get("/run/<name>/<int:number>")
def run(name: str, number: int) -> ResponseReturnValue:
    """Redirect to the page of a job; notices know it by its kind and number."""
    kind = next((kind for kind in JOB_KINDS if kind.name == name), None)
    if kind is None:
        raise NotFound("kind", expected=either(kind.name for kind in JOB_KINDS), got=name)
    return redirect(job_address(kind, number), 303)
