"""`flask KIND list`: a list of app/core/lists.py as a table, CSV or JSON, with the order and columns asked for."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import click
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from app.cli.base import WHOLE, check_one_format, ensure_database, print_csv, print_json
from app.cli.tables import aligned
from app.core.errors import Invalid, Verbatim
from app.core.extensions import reading
from app.core.lists import COMMANDS, DESCENDING, Listing, csv_columns, printed

F = TypeVar("F", bound=Callable[..., Any])
PAGE = 50  # lines of a table
_LARGEST = 2**31 - 1
Described = Callable[[Session, Sequence[Any]], Sequence[Any]]


def list_options(command: F) -> F:
    """Add the options of a list to a command."""
    for option in reversed((
        click.option("--sort", default="", metavar="COLUMN", help=f"By which column; {DESCENDING}COLUMN: downwards."),
        click.option("--columns", default="", metavar="A,B", help="Which columns; a wrong name lists them all."),
        click.option("--limit", type=WHOLE, metavar="N", help=f"How many. [default: {PAGE}; all with --json or --csv]"),
        click.option("--offset", type=WHOLE, default=0, metavar="N", help="How many to leave out first."),
        click.option("--csv", "as_csv", is_flag=True, help="Print CSV."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON: all that is known, or with --columns these."),
    )):  # fmt: skip
        command = option(command)
    return command


def print_list(
    listing: Listing[Any],
    command: str,
    none_yet: str,
    *,
    sort: str,
    columns: str,
    limit: int | None,
    offset: int,
    as_csv: bool,
    as_json: bool,
    described: Described | None = None,
    where: Callable[[Session], Sequence[ColumnElement[bool]]] = lambda _session: (),
    whole: Listing[Any] | None = None,
    in_lines: bool = False,
) -> None:
    """Print a list as the options ask. Raises Invalid for a column that it does not have.

    command: the command that shows further lines. none_yet: the text for an empty list. described: the full JSON of
    rows; `whole` is the list for it, if it is another one. in_lines: whether JSON is one object per line.
    """
    check_one_format(as_json, as_csv)
    _check_number_of_lines("--limit", limit, 1)
    _check_number_of_lines("--offset", offset, 0)
    names = [name for name in columns.replace(",", " ").split() if name]
    chosen = [listing.column(name, "--columns") for name in names] or listing.usual(COMMANDS)
    order = listing.order(sort, "--sort")
    ensure_database()
    most = limit if as_csv or as_json else limit or PAGE
    with reading() as session:
        if as_json and described is not None and not names:
            found = (whole or listing).read(session, order, most, where=where(session), offset=offset)
            _print_objects(described(session, found.rows), in_lines)
            return
        rows, further = listing.read(session, order, most, where=where(session), offset=offset)
        items = listing.items(session, rows)
        if as_csv:
            every = chosen if names else listing.columns
            print_csv(csv_columns(every), listing.values(session, every, items))
            return
        if as_json:
            lines = listing.values(session, chosen, items)
            _print_objects([{name: _json_value(value) for name, value in line.items()} for line in lines], in_lines)
            return
        cells = [column.cells(session, items) for column in chosen]
        if not names:
            shown = [at for at, column in enumerate(chosen) if not column.if_any or any(cells[at])]
            chosen, cells = [chosen[at] for at in shown], [cells[at] for at in shown]
    if not items:
        click.echo(none_yet if not offset else "There are no further ones.")
        return
    table = [[column.name.upper() for column in chosen], *([*map(printed, line)] for line in zip(*cells, strict=True))]
    click.echo("\n".join(aligned(table, {place for place, column in enumerate(chosen) if column.numeric})))
    if further:
        click.echo(f"There are further ones: `{command} --offset {offset + len(items)}` shows them.", err=True)


def _print_objects(objects: Sequence[Any], in_lines: bool) -> None:
    """Print them as one array, or as one object per line."""
    for each in objects if in_lines else [objects]:
        print_json(each)


def _json_value(value: Any) -> Any:
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else value


def _check_number_of_lines(option: str, value: int | None, least: int) -> None:
    """Raises Invalid for a number of lines below `least` or above the largest allowed."""
    if value is not None and not least <= value <= _LARGEST:
        raise Invalid(option, expected=f"a whole number from {least} to {_LARGEST}", got=Verbatim(value))
