"""The inbox of what people reported, over all waves: what is new, what was read, and what was handled."""

from typing import Any

from flask import redirect, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from app.core.errors import Invalid, NotFound
from app.core.extensions import reading
from app.core.validation import whole_number
from app.studies.monitor import inbox
from app.studies.reports import mark_all_read, mark_report
from app.web.admin.blueprint import blueprint
from app.web.admin.lists import show_list
from app.web.admin.study_lists import REPORTS_PAGE
from app.web.form_writes import write

_LARGEST = 2**31 - 1
_ALL_READ = "all read"  # what a button says
_UNREAD = "parlor.unread_reports"  # what a request keeps


@blueprint.get("/studies/reports")
def study_reports() -> ResponseReturnValue:
    """All reports, or those of a wave, of a person and in a state that the address names."""
    return show_list(REPORTS_PAGE)


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
        return show_list(REPORTS_PAGE, error)
    return redirect(reports_address(), 303)


@blueprint.app_template_global()
def reports_address() -> str:
    """The address of the reports as they are filtered."""
    given: dict[str, Any] = {name: request.args.get(name) for name in ("wave", "state", "person")}
    return url_for("admin.study_reports", **given)


def unread_reports() -> int:
    """How many reports nobody has read, asked once for a page."""
    if _UNREAD not in request.environ:
        with reading() as session:
            request.environ[_UNREAD] = inbox.unread(session)
    return int(request.environ[_UNREAD])
