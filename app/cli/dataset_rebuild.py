"""`flask dataset rebuild`: build a dataset again from the data that may be used for training now."""

import click

from app.cli.base import Command, ensure_database, json_option, print_json, settings
from app.core.extensions import db, reading, transact
from app.datasets import rebuild as rebuilding
from app.datasets import store


@click.command(cls=Command)
@click.argument("called", metavar="DATASET")
@json_option
def rebuild(called: str, as_json: bool) -> None:
    """Build a dataset again by its own spec, as its next version: without what people have withdrawn since."""
    ensure_database()
    with reading() as session:
        row = store.find_dataset(session, called)
        session.expunge(row)
    number = rebuilding.rebuild(transact(db.engine), db.engine, settings().home, row)
    with reading() as session:
        new = store.get_dataset(session, number)
        described = {"dataset_id": new.id, "name": new.name, "version": new.version, "rows": new.rows, "was": row.rows}
    if as_json:
        print_json(described)
    else:
        name = f"{described['name']}@{described['version']}"
        click.echo(f"Dataset {number} ({name}): {described['rows']} rows; {described['was']} before.")
