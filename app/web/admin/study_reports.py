"""The inbox of people's reports, over all waves: who handles each, what was answered, and what is closed."""

from collections.abc import Callable, Mapping
from typing import Any

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import AppError, Conflict, Invalid, NotFound, either
from app.core.extensions import reading
from app.core.validation import whole_number
from app.models import User
from app.studies.export.logs import IDS_EXPORTED
from app.studies.monitor.inbox import WAY_WORDS, WaitingReports, contacts_of, find_report, waiting_reports
from app.studies.progress import log_wave_event
from app.studies.reports import (
    MARKS,
    NOTE,
    answer_report,
    assign_all,
    assign_report,
    check_seen,
    close_report,
    note_on_report,
    reopen_report,
    standing_steps,
    steps_of,
    undo_step,
)
from app.web.admin.blueprint import blueprint
from app.web.admin.lists import add_address, show_list
from app.web.admin.study_lists import REPORTS_PAGE
from app.web.form_writes import write, write_once
from app.web.forms import RefusedField

_LARGEST = 2**31 - 1
_WAITING = "parlor.waiting_reports"  # the key in a request's cache
_SHOW_ID = "show id"  # the value of a button
_FIELDS = ("way", "text", "note", "to")

add_address("report", lambda number: url_for("admin.study_report", report_id=number))


@blueprint.get("/studies/reports")
def study_reports() -> ResponseReturnValue:
    """All reports, or those of the wave, person, state and experimenter that the URL names."""
    return show_list(REPORTS_PAGE)


@blueprint.post("/studies/reports")
def act_on_listed_report() -> ResponseReturnValue:
    """Take a report, or all new ones of its person, close it, or undo that, depending on the pressed button in its
    line.
    """
    try:
        number = whole_number(request.form.get("report", ""), "report", 1, _LARGEST)
        _apply_report_action(number, request.form)
    except (Invalid, NotFound, Conflict) as error:
        return show_list(REPORTS_PAGE, error)
    return redirect(reports_address(), 303)


@blueprint.get("/studies/reports/<int:report_id>")
def study_report(report_id: int) -> str:
    """One report: what was said, what was done about it since, and what can be done."""
    return _report_page(report_id)


@blueprint.post("/studies/reports/<int:report_id>")
def act_on_report(report_id: int) -> ResponseReturnValue:
    """Assign, answer or close a report, save a note on it, undo its last step, or show how to reach its person."""
    if request.form.get("action") == _SHOW_ID:
        by = current_user.name
        with reading() as session:
            wave_id = find_report(session, report_id).wave.id
        write(lambda session: log_wave_event(session, wave_id, IDS_EXPORTED, {"by": by}))
        return _report_page(report_id, show_id=True)
    try:
        _apply_report_action(report_id, request.form)
    except (Invalid, Conflict) as error:
        return _report_page(report_id, error), error.status
    return redirect(url_for("admin.study_report", report_id=report_id), 303)


def _apply_report_action(number: int, form: Mapping[str, str]) -> None:
    """Apply the pressed button's action to a report. Raises Invalid, NotFound and Conflict."""
    by, action = current_user.name, form.get("action", "")
    given = {name: form.get(name, "") for name in _FIELDS}
    step, seen = (whole_number(form[name], name, 1, _LARGEST) if form.get(name) else None for name in ("step", "seen"))
    acts: Mapping[str, Callable[[Session], None]] = {
        "take": lambda session: assign_report(session, number, by, by),
        "take all": lambda session: assign_all(session, number, by, by),
        "assign": lambda session: assign_report(session, number, given["to"], by),
        "answer": lambda session: answer_report(session, number, given["way"], given["text"], by),
        "close": lambda session: close_report(session, number, by),
        "reopen": lambda session: reopen_report(session, number, by),
        "note": lambda session: note_on_report(session, number, given["note"], by),
        "undo": lambda session: undo_step(session, number, by, step),
    }
    if action not in acts:
        raise Invalid("action", expected=either(acts), got=action)

    def act(session: Session) -> None:
        if action != "note":
            check_seen(session, number, seen, by)
        acts[action](session)

    write_once(act)


def _report_page(report_id: int, refused: AppError | None = None, *, show_id: bool = False) -> str:
    with reading() as session:
        found = find_report(session, report_id)
        steps = steps_of(session, found.event)
        standing = standing_steps(steps)
        field = getattr(refused, "field", None) or ""
        if request.form.get("action") == "note" and field == "text":
            field = "note"
        return render_template(
            "admin/study-report.html",
            report=found,
            steps=steps,
            undo=standing[-1].id if standing else None,
            marks=MARKS,
            note_kind=NOTE,
            way_words=WAY_WORDS,
            contacts=contacts_of(session, found),
            show_id=show_id,
            experimenters=session.scalars(select(User.name).order_by(User.name)).all(),
            form={name: request.form.get(name, "") for name in _FIELDS} | {"way": request.form.get("way", "recruiter")},
            refused=None if refused is None else RefusedField(field, refused),
        )


@blueprint.app_template_global()
def reports_address() -> str:
    """The URL of the reports with the current filters."""
    given: dict[str, Any] = {name: request.args.get(name) for name in ("wave", "state", "to", "person")}
    return url_for("admin.study_reports", **given)


def reports_waiting() -> WaitingReports:
    """How many reports wait for the signed-in experimenter, asked once for a page."""
    if _WAITING not in request.environ:
        with reading() as session:
            request.environ[_WAITING] = waiting_reports(session, current_user.name)
    found: WaitingReports = request.environ[_WAITING]
    return found
