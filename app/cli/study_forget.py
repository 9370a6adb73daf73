"""`flask study forget`: delete a person's data."""

import click

from app.cli.base import Command, ensure_database, json_option, print_result, settings
from app.core.extensions import db, reading
from app.studies.forget import find_person, forget_person_for_good


@click.command(cls=Command)
@click.argument("person", metavar="PERSON")
@json_option
def forget(person: str, as_json: bool) -> None:
    """Delete what a person wrote and answered, and report what changed. Run again, it completes a broken deletion.

    PERSON is the code of a participant or a guest, or STUDY:CODE. Amounts, dates and what partners wrote stay.
    """
    ensure_database()
    with reading() as session:
        number = find_person(session, person).id
    report = forget_person_for_good(db.engine, settings().home, number)
    print_result(as_json, report.to_json(), "\n".join(report.lines()))
