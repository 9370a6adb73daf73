"""`flask study bots`: programs that take part in a copy of a study, to see it work before people come.

`app/cli/study.py` puts it into its group.
"""

import click
from flask.cli import with_appcontext

from app.cli.base import Command, WholeRange, ensure_database, print_json, settings
from app.extensions import db, writing
from app.studies.bots.copies import open_rehearsal
from app.studies.bots.job import MOST_BOTS
from app.studies.bots.sending import AT_ONCE, rehearse


@click.command("bots", cls=Command)
@click.argument("reference", metavar="STUDY[@VERSION]")
@click.option("--n", "count", type=WholeRange(1, MOST_BOTS), default=20, show_default=True, help="How many bots.")
@click.option("--seed", type=WholeRange(0), default=1, show_default=True, help="Of what they choose.")
@click.option("--at-once", type=WholeRange(1), default=AT_ONCE, show_default=True, help="How many are under way.")
@click.option("--live", is_flag=True, help="Against the models of the study, at its own pace.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_appcontext
def bots(reference: str, count: int, seed: int, at_once: int, live: bool, as_json: bool) -> None:
    """Send bots through a copy of a study on the Parlor that runs here, and report what they met.

    Some have bad habits: they fail the quiz, go silent, press twice, use two browsers, withdraw. The copy takes no
    place and no arm of the study. Exit code 1: something surprised.
    """
    ensure_database()
    with writing() as session:
        wave = open_rehearsal(session, reference, count, live=live).id
    found = rehearse(db.engine, settings().web_url, wave, count=count, seed=seed, at_once=at_once)
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
