"""`flask study reports`: what people reported, and what of it is read. `app/cli/study.py` puts it into its group."""

import click
from sqlalchemy.orm import Session

from app.cli.base import Command, ensure_database, print_json
from app.core.extensions import db, reading, transact
from app.studies.monitor.inbox import InboxReport, inbox
from app.studies.reports import HANDLED, NEW, READ, mark_report
from app.studies.waves import find_wave

_BY = "command line"


@click.command("reports", cls=Command)
@click.argument("reference", metavar="[STUDY:WAVE]", default="")
@click.option("--new", "only_new", is_flag=True, help="Only those that nobody has read.")
@click.option("--read", "read", type=int, metavar="REPORT", help="Mark a report as read.")
@click.option("--handled", "handled", type=int, metavar="REPORT", help="Mark a report as handled.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def reports(reference: str, only_new: bool, read: int | None, handled: int | None, as_json: bool) -> None:
    """List what people reported, in a wave or in all, new reports first; or mark one.

    \b
    flask study reports                          all of them
    flask study reports STUDY:WAVE --new         those of a wave that nobody has read
    flask study reports --handled 17             report 17 is handled
    """
    ensure_database()

    def mark(session: Session) -> None:
        for number, state in ((read, READ), (handled, HANDLED)):
            if number is not None:
                mark_report(session, number, state, _BY)

    if read is not None or handled is not None:
        transact(db.engine)(mark)
    with reading() as session:
        wave_id = find_wave(session, reference).id if reference else None
        found = inbox(session, wave_id, state=NEW if only_new else None, most=None)
    for each in found:
        if as_json:
            print_json(described(each))
        else:
            click.echo(report_line(each))
    if not found and not as_json:
        click.echo("No reports." if not only_new else "No new reports.")


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
