"""`flask study assignments`: a ready-made list of arms. `app/cli/study.py` puts it into its group."""

from pathlib import Path

import click

from app.cli.base import Command, ensure_database, print_json, settings
from app.errors import Invalid, Verbatim
from app.extensions import writing
from app.studies import waves
from app.studies.assignment_list import import_list
from app.studies.entry import person_hash


@click.command("assignments", cls=Command)
@click.argument("reference", metavar="STUDY:WAVE")
@click.argument("path", metavar="FILE", type=Path)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def assignments(reference: str, path: Path, as_json: bool) -> None:
    """Have the arms of a wave follow a list, before anybody has one, in place of random blocks.

    FILE is a CSV table with a line for each place: order,arm, in which people get them as they come; or
    participant,arm, by the recruiter's ids, which lets nobody else in. `flask study replay` checks what came of it.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        expected = "a CSV table that can be read"
        raise Invalid("file", expected=expected, got=Verbatim(f"{path} ({error.strerror})")) from None
    ensure_database()
    secret = settings().secret_key
    with writing() as session:
        wave = waves.find_wave(session, reference)
        recruiter = waves.settings_of(wave).provider.name
        found = import_list(session, wave, content, path.name, lambda each: person_hash(secret, recruiter, each))
    if as_json:
        print_json({"wave": reference, "lines": len(found.arms), "by": "participant" if found.people else "order"})
    else:
        whom = "by participant" if found.people else "in the order in which people come"
        click.echo(f"{reference} follows a list of {len(found.arms)} lines, {whom}.")
