"""`flask study assignments`: import a ready-made list of arms. `app/cli/study.py` adds it to its group."""

from pathlib import Path

import click

from app.cli.base import Command, ensure_database, json_option, print_result, settings
from app.core.errors import Invalid, Verbatim
from app.core.extensions import reading, writing
from app.studies import waves
from app.studies.assignment_list import import_list, read_list, terms_of
from app.studies.enrolment import person_hash


@click.command("assignments", cls=Command)
@click.argument("reference", metavar="STUDY:WAVE")
@click.argument("path", metavar="FILE", type=Path)
@json_option
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
    with reading() as session:
        terms = terms_of(session, waves.find_wave(session, reference))
    read = read_list(content, path.name, terms, lambda each: person_hash(secret, terms.recruiter, each))
    with writing() as session:
        import_list(session, waves.find_wave(session, reference), read)
    found = read.kept
    whom = "by participant" if found.people else "in the order in which people come"
    print_result(
        as_json,
        {"wave": reference, "lines": len(found.arms), "by": "participant" if found.people else "order"},
        f"{reference} follows a list of {len(found.arms)} lines, {whom}.",
    )
