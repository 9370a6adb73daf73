"""`flask dataset import`: rows that were made elsewhere become a dataset."""

from pathlib import Path
from typing import Any

import click

from app.cli.base import Command, ensure_database, print_json, settings
from app.core import write_priority
from app.core.errors import Invalid, Verbatim, check_name
from app.core.extensions import db, reading, transact
from app.datasets import register, row_import, store
from app.datasets.import_tally import ImportTally
from app.datasets.importers.training_rows import FORMATS
from app.datasets.records import unreadable
from app.datasets.row_import import ReadImport, RowImport
from app.models import Dataset

_SHOWN = 20  # rows that were left out


@click.command(cls=Command)
@click.argument("file")
@click.option("--format", "row_format", required=True, type=click.Choice(list(FORMATS)), help="What the rows are like.")
@click.option("--name", metavar="NAME", help="A name again is its next version. [default: the file's]")
@click.option("--skip-bad", is_flag=True, help="Leave bad rows out instead of refusing the file.")
@click.option("--json", "as_json", is_flag=True, help="Print {dataset_id, rows, refused} and more as JSON.")
def import_rows(file: str, row_format: str, name: str | None, skip_bad: bool, as_json: bool) -> None:
    """Make a dataset of a file of rows: JSON lines or a JSON array, also compressed by gzip.

    A file with a bad row is refused as a whole. One that was imported before gives the same dataset. docs/formats.md
    says what each format holds and what becomes of it.
    """
    called = row_import.default_name(file) if name is None else name
    check_name("--name", called)
    ensure_database()
    found, wanted = read_file(file, row_format, skip_bad)
    before = found.dataset_id is not None
    if found.tally is not None and found.draft is None and not before:
        if as_json:
            print_json({"dataset_id": None, "rows": 0, **_refused_rows_json(found.tally)})
        raise row_import.refusal(wanted, found.tally)
    number = found.dataset_id
    if number is None and found.draft is not None:
        write_priority.give_way()
        number = register.save(transact(db.engine), found.draft, called)
    with reading() as session:
        row = store.get_dataset(session, number or 0)
    if as_json:
        print_json(_import_json(row, found.tally, before))
        return
    click.echo(_import_line(row, file, before))
    for each in [] if found.tally is None else found.tally.refused[:_SHOWN]:
        click.echo(f"Left out row {each.number}: {each.error.message}")
    if found.tally is not None and found.tally.bad > _SHOWN:
        click.echo(f"Left out {found.tally.bad - _SHOWN} more; --json lists them.")


def read_file(file: str, row_format: str, skip_bad: bool) -> tuple[ReadImport, RowImport]:
    """What a file holds, and how it was read. Raises Invalid for one that cannot be read."""
    try:
        with Path(file).open("rb") as content, reading() as session:
            wanted = RowImport(content, file, row_format, skip_bad)
            return row_import.read_import(session, settings().home, wanted), wanted
    except OSError as error:
        raise Invalid(None, expected="a file of rows", got=Verbatim(unreadable(error)), subject=file) from None


def _refused_rows_json(tally: ImportTally | None) -> dict[str, Any]:
    """The bad rows as JSON: the first thousand, and how many there are."""
    bad = [] if tally is None else tally.refused
    return {
        "refused": [{"row": each.number, "error": each.error.message} for each in bad],
        "refused_rows": 0 if tally is None else tally.bad,
    }


def _import_json(row: Dataset, tally: ImportTally | None, before: bool) -> dict[str, Any]:
    return {
        "dataset_id": row.id,
        "rows": row.rows,
        **_refused_rows_json(tally),
        "name": row.name,
        "version": row.version,
        "kind": row.kind,
        "sha256": row.sha256,
        "imported_before": before,
    }


def _import_line(row: Dataset, file: str, before: bool) -> str:
    called = f"dataset {row.id} ({row.name}@{row.version})"
    rows = f"{row.rows} row{'' if row.rows == 1 else 's'} of {row.kind}"
    return f"{file} was imported before: {called}, {rows}." if before else f"D{called[1:]}: {rows} from {file}."
