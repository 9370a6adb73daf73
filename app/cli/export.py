"""`flask export`: all matches as CSV."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import click

from app.cli.base import Group, counted, ensure_database, print_json, progress
from app.cli.export_formats import inspect, lm_selfplay, spag
from app.cli.match_filter import filter_options, read_filter
from app.cli.output import STDOUT, check_target, json_with_out_option, out_option, write_out
from app.codebook import all_tables, codebook_rows, find_table
from app.core.csv_tables import CODEBOOK, CountedRows, to_csv
from app.core.errors import Invalid
from app.core.extensions import reading
from app.core.r_and_stata import PROGRAMS
from app.matches import export as service
from app.matches.export_codings import COLUMNS, coded_rows, finished_coding
from app.matches.filter import check_known

export = Group("export", help="Write what was played as CSV or for Inspect, or a round in a published format.")
export.add_command(lm_selfplay)
export.add_command(spag)
export.add_command(inspect)


def _csv_options(command: Any) -> Any:
    for option in (
        json_with_out_option,
        click.option("--bom", is_flag=True, help="Begin with a byte order mark, by which Excel knows UTF-8."),
        click.option("--guard", is_flag=True, help="Keep spreadsheets from running text and rounding seeds."),
        out_option,
    ):
        command = option(command)
    return command


@export.command()
@_csv_options
@filter_options()
def matches(**options: Any) -> None:
    """One row per match."""
    _write_table(service.MATCHES, **options)


@export.command()
@_csv_options
@filter_options()
def moves(**options: Any) -> None:
    """One row per accepted move."""
    _write_table(service.MOVES, **options)


@export.command()
@_csv_options
@filter_options()
def events(**options: Any) -> None:
    """One row per event of the log, refused moves included, with its JSON."""
    _write_table(service.EVENTS, **options)


@export.command()
@_csv_options
@filter_options()
def generations(**options: Any) -> None:
    """One row per call of a language model, with its exact prompt."""
    _write_table(service.GENERATIONS, **options)


@export.command()
@click.argument("coding", metavar="CODING")
@_csv_options
def codings(coding: str, out: str, guard: bool, bom: bool, as_json: bool) -> None:
    """One row per code that a coder gave, for the named coding, once all of its coders are done."""
    check_target(out, as_json, "the CSV itself goes")
    ensure_database()
    with reading() as session:
        rows = CountedRows(coded_rows(session, *finished_coding(session, coding)))
        write_out(to_csv(COLUMNS, rows, guard=guard, bom=bom), out)
    _report_rows("codings", rows.seen, out, as_json)


@export.command()
@click.option("--table", "names", multiple=True, metavar="NAME", help="Only this table; more than once for several.")
@click.option("--lines", type=click.Choice([*PROGRAMS]), help="Print the code by which this program reads the files.")
@_csv_options
def codebook(names: Sequence[str], lines: str | None, out: str, guard: bool, bom: bool, as_json: bool) -> None:
    """One row per column: what it means and which values it has."""
    check_target(out, as_json, "the CSV itself goes")
    tables = [find_table(name) for name in names] or [*all_tables().values()]
    if lines is None:
        rows = CountedRows(codebook_rows(tables))
        write_out(to_csv(CODEBOOK, rows, guard=guard, bom=bom), out)
        _report_rows("codebook", rows.seen, out, as_json)
        return
    if guard or bom or as_json:
        raise Invalid("--lines", expected="it without --guard, --bom and --json, which are of the CSV", got=lines)
    write_out(("\n".join(table.lines(lines) for table in tables).encode(),), out)


def _write_table(table: service.ExportTable, out: str, guard: bool, bom: bool, as_json: bool, **given: Any) -> None:
    check_target(out, as_json, "the CSV itself goes")
    choice = read_filter(given)
    ensure_database()
    with reading() as session:
        check_known(session, choice)
        counted = CountedRows(service.rows(session, table, choice))
        if out == STDOUT:
            bar: AbstractContextManager[Iterable[Any]] = nullcontext(counted)
        else:
            bar = progress(counted, lambda: service.count(session, table, choice))
        with bar as rows:
            write_out(to_csv(table.columns, rows, guard=guard, bom=bom), out)
    _report_rows(table.name, counted.seen, out, as_json)


def _report_rows(what: str, rows: int, out: str, as_json: bool) -> None:
    if as_json:
        print_json({"table": what, "rows": rows, "file": out})
    elif out != STDOUT:
        click.echo(f"Wrote {counted(rows, 'row')} of {what} to {out}.")
