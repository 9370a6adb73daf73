"""`flask dataset import`: make a dataset from rows created elsewhere."""

from pathlib import Path
from typing import Any

import click

from app.cli.base import Command, counted, ensure_database, print_json, settings
from app.cli.spec_options import spec_options
from app.core import write_priority
from app.core.errors import Invalid, Verbatim
from app.core.extensions import db, reading, transact
from app.core.files import file_problem
from app.datasets import row_import, store
from app.datasets.import_tally import ImportTally
from app.datasets.importers.spec import DatasetImportSpec
from app.datasets.row_import import ReadImport, RowImport
from app.models import Dataset

_SHOWN = 20  # rows that were left out


@click.command(cls=Command)
@spec_options(DatasetImportSpec)
@click.option("--json", "as_json", is_flag=True, help="Print {dataset_id, rows, refused} and more as JSON.")
def import_rows(spec: DatasetImportSpec, as_json: bool) -> None:
    """Make a dataset of a file of rows: JSON lines or a JSON array, also compressed by gzip.

    A file with a bad row is refused as a whole. One that was imported before gives the same dataset. docs/formats.md
    says what each format holds and what becomes of it.
    """
    ensure_database()
    found, wanted = read_file(spec)
    tally, before = found.tally, found.dataset_id is not None
    if found.draft is None and not before and as_json:
        print_json({"dataset_id": None, "rows": 0, **_refused_rows_json(tally)})
    write_priority.give_way()
    number = row_import.register_read(transact(db.engine), wanted, found)
    with reading() as session:
        row = store.get_dataset(session, number)
    if as_json:
        described = {name: getattr(row, name) for name in ("rows", "name", "version", "kind", "sha256")}
        print_json({"dataset_id": row.id, **described, **_refused_rows_json(tally), "imported_before": before})
        return
    click.echo(_import_line(row, spec.file, before))
    for each in tally.refused[:_SHOWN]:
        click.echo(f"Left out row {each.number}: {each.error.message}")
    if tally.bad > _SHOWN:
        click.echo(f"Left out {tally.bad - _SHOWN} more; --json lists them.")


def read_file(spec: DatasetImportSpec) -> tuple[ReadImport, RowImport]:
    """The content of a file, and how it was read. Raises Invalid if it cannot be read."""
    try:
        with Path(spec.file).open("rb") as content, reading() as session:
            wanted = RowImport(content, spec)
            return row_import.read_import(session, settings().home, wanted), wanted
    except OSError as error:
        raise Invalid(None, expected="a file of rows", got=Verbatim(file_problem(error)), subject=spec.file) from None


def _refused_rows_json(tally: ImportTally) -> dict[str, Any]:
    """The bad rows as JSON: the first thousand, and how many there are."""
    bad = [{"row": each.number, "error": each.error.message} for each in tally.refused]
    return {"refused": bad, "refused_rows": tally.bad}


def _import_line(row: Dataset, file: str, before: bool) -> str:
    called = f"dataset {row.id} ({row.reference})"
    rows = f"{counted(row.rows, 'row')} of {row.kind}"
    return f"{file} was imported before: {called}, {rows}." if before else f"D{called[1:]}: {rows} from {file}."
