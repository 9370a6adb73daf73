"""`flask study bots`: let programs take part in a copy of a study, to test it before people come.

`app/cli/study.py` adds it to its group.
"""

import asyncio
import uuid

import click

from app.cli.base import Command, Interrupted, WholeRange, ensure_database, json_option, print_json, settings
from app.cli.groups import UsageRefused
from app.cli.jobs import create, prepared, stop_on_signals
from app.cli.spec_options import spec_options
from app.core.extensions import db, reading, writing
from app.jobs import states
from app.jobs.context import JobContext
from app.studies.bots import job
from app.studies.bots.creation import CREATION
from app.studies.bots.runner import run
from app.studies.bots.sending import AT_ONCE
from app.studies.bots.server import check_server
from app.studies.bots.spec import RehearsalSpec


@click.command("bots", cls=Command)
@spec_options(RehearsalSpec)
@click.option(
    "--at-once", type=WholeRange(1), default=AT_ONCE, metavar="N", help=f"How many are under way. [default: {AT_ONCE}]"
)
@json_option
def bots(spec: RehearsalSpec, at_once: int, as_json: bool) -> None:
    """Send bots through a copy of a study on the Parlor that runs here, and report what they met.

    Some have bad habits: they fail the quiz, go silent, press twice, use two browsers, withdraw. The copy takes no
    place and no arm of the study, and is closed when the command ends.
    Exit code 1: something surprised.
    """
    ensure_database()
    asyncio.run(check_server(settings().web_url))
    with stop_on_signals() as stop:
        [number] = create(CREATION, prepared(CREATION, spec), queued=False)
        try:
            run(JobContext(db.engine, settings(), uuid.uuid4().hex, stop), number, at_once)
        finally:
            with writing() as session:
                job.stop_here(session, number)
    with reading() as session:
        row = job.REHEARSAL.get(session, number)
        found, status, error = job.report_of(session, row), row.status, row.error
    if stop.is_set() and status != states.DONE:
        finished = f"{found['bots']} of {spec.bots} bots have finished"
        raise Interrupted(f"Interrupted; {found['wave']} is closed, and {finished}.")
    if status != states.DONE:
        raise UsageRefused(f"{found['wave']} is closed: {error or status}")
    if as_json:
        print_json(found)
    else:
        for habit, endings in found["endings"].items():
            click.echo(f"{habit}: {', '.join(f'{ending} {number}' for ending, number in endings.items())}")
        click.echo(f"Completed by arm: {', '.join(f'{name} {n}' for name, n in found['completed_by_arm'].items())}")
        click.echo(f"Paid: {found['paid']} {found['currency']}")
        for surprise in found["surprises"]:
            click.echo(surprise)
        click.echo(f"{found['bots']} bots, {len(found['surprises'])} surprises, wave {found['wave']}")
    if found["surprises"]:
        raise SystemExit(1)
