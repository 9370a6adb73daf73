"""The inbox of what people reported, over all waves: what is new, what was read, and what was handled."""

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from app.core.errors import AppError, Invalid, NotFound
from app.core.extensions import reading
from app.core.validation import whole_number
from app.studies.monitor import inbox
from app.studies.reports import HANDLED, NEW, READ, mark_all_read, mark_report
from app.web.admin.blueprint import blueprint
from app.web.form_writes import write

_LARGEST = 2**31 - 1
_STATES = (NEW, READ, HANDLED)
_ALL_READ = "all read"  # what a button says
_UNREAD = "parlor.unread_reports"  # what a request keeps


@blueprint.get("/studies/reports")
def study_reports() -> ResponseReturnValue:
    """All reports, or those of a wave and in a state that the address names."""
    return _reports_page()


@blueprint.post("/studies/reports")
def mark_study_report() -> ResponseReturnValue:
    """Mark a report as read, as handled or as new again, or all new ones of its person as read, as the pressed button
    says.
    """
    by = current_user.name
    try:
        number = whole_number(request.form.get("report", ""), "report", 1, _LARGEST)
        state = request.form.get("action", "")
        if state == _ALL_READ:
            write(lambda session: mark_all_read(session, number, by))
        else:
            write(lambda session: mark_report(session, number, state, by))
    except (Invalid, NotFound) as error:
        return _reports_page(error)
    given = _given()
    return redirect(url_for("admin.study_reports", wave=given.get("wave"), state=given.get("state")), 303)


def unread_reports() -> int:
    """How many reports nobody has read, asked once for a page."""
    if _UNREAD not in request.environ:
        with reading() as session:
            request.environ[_UNREAD] = inbox.unread(session)
    return int(request.environ[_UNREAD])


def _given() -> dict[str, str]:
    return {name: value for name, value in request.args.items() if name in ("wave", "state") and value}


def _reports_page(refused: AppError | None = None) -> ResponseReturnValue:
    given = _given()
    try:
        wave_id = whole_number(given["wave"], "wave", 1, _LARGEST) if "wave" in given else None
    except Invalid as error:
        wave_id, refused = None, refused or error
    with reading() as session:
        page = render_template(
            "admin/study-reports.html",
            reports=(reports := inbox.inbox(session, wave_id, state=given.get("state"), each=inbox.OF_EACH)),
            more=inbox.how_many(session, wave_id, state=given.get("state")) - len(reports),
            waves=inbox.waves_with_reports(session, wave_id),
            states=_STATES,
            given=given,
            refused=refused,
        )
    return page, refused.status if refused else 200
