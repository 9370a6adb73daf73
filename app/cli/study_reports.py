"""`flask study reports`: the reports of people, and how they are handled. `app/cli/study.py` adds it to its group."""

from collections.abc import Callable
from typing import Any

import click
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from app.cli.base import Command, ensure_database
from app.cli.lists import list_options, print_list
from app.core.extensions import db, reading, transact
from app.models import StudyEvent
from app.studies import reports as steps
from app.studies.monitor.inbox import REPORTS, InboxReport, conditions, find_report
from app.studies.waves import find_wave

_BY = "command line"


@click.command("reports", cls=Command)
@click.argument("reference", metavar="[STUDY:WAVE]", default="")
@click.option("--state", type=click.Choice([*steps.MARKS]), help="Only those in this state.")
@click.option("--assign", type=(int, str), metavar="REPORT NAME", help="Assign a report to an experimenter.")
@click.option(
    "--answer",
    type=(int, click.Choice(steps.WAYS), str),
    metavar="REPORT WAY TEXT",
    help=f"Mark a report as answered: how ({', '.join(steps.WAYS)}), and what was said.",
)
@click.option("--close", type=int, metavar="REPORT", help="Mark a report as closed.")
@click.option("--reopen", type=int, metavar="REPORT", help="Mark a report as new again.")
@click.option("--note", type=(int, str), metavar="REPORT TEXT", help="Keep a note on a report.")
@click.option("--undo", type=int, metavar="REPORT", help="Undo the last of these steps of a report, but for notes.")
@click.option("--history", type=int, metavar="REPORT", help="Show who did what about a report, and when.")
@list_options
def reports(
    reference: str,
    state: str | None,
    assign: tuple[int, str] | None,
    answer: tuple[int, str, str] | None,
    close: int | None,
    reopen: int | None,
    note: tuple[int, str] | None,
    undo: int | None,
    history: int | None,
    **given: Any,
) -> None:
    """List what people reported, in a wave or in all, new reports first; or assign, answer or close one.

    JSON is an object a line.

    \b
    flask study reports                            all of them
    flask study reports STUDY:WAVE --state new     new ones of a wave
    flask study reports --assign 17 ann            Ann takes care of report 17
    flask study reports --answer 17 recruiter "…"  answered through the recruiter
    flask study reports --history 17               who did what about it
    """
    ensure_database()
    asked: list[tuple[Any, Callable[..., None]]] = [
        (assign, _assign),
        (answer, steps.answer_report),
        (close, steps.close_report),
        (reopen, steps.reopen_report),
        (note, steps.note_on_report),
        (undo, steps.undo_step),
    ]
    for values, step in asked:
        if values is not None:
            _take_report_step(step, values if isinstance(values, tuple) else (values,))
    if history is not None:
        with reading() as session:
            found = find_report(session, history)
            click.echo(report_line(found))
            for each in steps.steps_of(session, found.event):
                click.echo(_step_line(each))
        return

    def where(session: Session) -> list[ColumnElement[bool]]:
        wave_id = find_wave(session, reference).id if reference else None
        return conditions(wave_id, state=state)

    print_list(
        REPORTS,
        " ".join(filter(None, ("flask study reports", reference, f"--state {state}" if state else ""))),
        f"No {state} reports." if state else "No reports.",
        described=lambda session, rows: [described(each) for each in REPORTS.items(session, rows)],
        where=where,
        in_lines=True,
        **given,
    )


def _assign(session: Session, report_id: int, to: str, by: str) -> None:
    """Assign a report, and print from whom it is taken."""
    before = steps.assigned_to(session, report_id)
    steps.assign_report(session, report_id, to, by)
    if before not in (None, to):
        click.echo(f"Report {report_id} was assigned to {before} before.", err=True)


def _take_report_step(step: Callable[..., None], values: tuple[Any, ...]) -> None:
    """Take a step with a report, in a transaction."""
    transact(db.engine)(lambda session: step(session, *values, _BY))


def described(report: InboxReport) -> dict[str, object]:
    """A report as JSON."""
    said = {} if report.mark is None else report.mark.body
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
        "assigned_to": report.assigned_to,
        "answered": {"way": said["way"], "text": said.get("text", "")} if said.get("way") else None,
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


def _step_line(step: StudyEvent) -> str:
    """One line about a step taken with a report."""
    body = step.body
    what = f"undone, so {step.kind} again" if "undoes" in body else step.kind
    to = f" to {body['to']}" if step.kind == steps.MARKS[steps.ASSIGNED] else ""
    way = f" by {body['way']}" if body.get("way") else ""
    words = f": {' '.join(body['text'].split())}" if body.get("text") else ""
    return f"{step.at:%Y-%m-%d %H:%M}  {body['by']}  {what}{to}{way}{words}"
