"""`flask study reports`: what people reported, and what of it is read. `app/cli/study.py` puts it into its group."""

from typing import Any

import click
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from app.cli.base import Command, ensure_database
from app.cli.lists import list_options, print_list
from app.core.extensions import db, transact
from app.studies.monitor.inbox import REPORTS, InboxReport, conditions
from app.studies.reports import HANDLED, NEW, READ, mark_report
from app.studies.waves import find_wave

_BY = "command line"


@click.command("reports", cls=Command)
@click.argument("reference", metavar="[STUDY:WAVE]", default="")
@click.option("--new", "only_new", is_flag=True, help="Only those that nobody has read.")
@click.option("--read", "read", type=int, metavar="REPORT", help="Mark a report as read.")
@click.option("--handled", "handled", type=int, metavar="REPORT", help="Mark a report as handled.")
@list_options
def reports(reference: str, only_new: bool, read: int | None, handled: int | None, **given: Any) -> None:
    """List what people reported, in a wave or in all, new reports first; or mark one. JSON is an object a line.

    \b
    flask study reports                   all of them
    flask study reports STUDY:WAVE --new  those of a wave that nobody has read
    flask study reports --handled 17      report 17 is handled
    """
    ensure_database()

    def mark(session: Session) -> None:
        for number, state in ((read, READ), (handled, HANDLED)):
            if number is not None:
                mark_report(session, number, state, _BY)

    if read is not None or handled is not None:
        transact(db.engine)(mark)

    def where(session: Session) -> list[ColumnElement[bool]]:
        wave_id = find_wave(session, reference).id if reference else None
        return conditions(wave_id, state=NEW if only_new else None)

    print_list(
        REPORTS,
        " ".join(filter(None, ("flask study reports", reference, "--new" if only_new else ""))),
        "No new reports." if only_new else "No reports.",
        described=lambda session, rows: [described(each) for each in REPORTS.items(session, rows)],
        where=where,
        in_lines=True,
        **given,
    )


def described(report: InboxReport) -> dict[str, object]:
    """A report as JSON has it."""
    return {
        "report": report.event.id,
        "wave": f"{report.study}:{report.wave.name}",
        "participant": report.code,
        "reason": report.reason,
        "text": report.text,
        "match": report.match,
        "at": report.event.at.isoformat(),
        "ending": report.ending,
        "state": report.state,
        "of_this_person": report.number,
        "in_other_waves": report.elsewhere,
    }


def report_line(report: InboxReport) -> str:
    """A report in one line."""
    again = f", report {report.number} of this person" if report.number > 1 or report.elsewhere else ""
    match = f", match {report.match}" if report.match else ""
    words = f": {' '.join(report.text.split())}" if report.text else ""
    where = f"{report.study}:{report.wave.name}"
    head = f"{report.event.id}  {report.state:<8} {report.event.at:%Y-%m-%d %H:%M}  {where} {report.code}"
    return f"{head}  {report.reason}{match}{again}{words}"
