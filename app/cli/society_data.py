"""`flask society data|figures|export|import`: the data of societies, and import of those run elsewhere."""

from collections.abc import Sequence
from pathlib import Path

import click

from app.analysis.bootstrap import Figure
from app.analysis.wording import interval, number
from app.cli.base import (
    WHOLE,
    Command,
    check_one_format,
    counted,
    ensure_database,
    json_option,
    print_csv,
    print_json,
    print_result,
    settings,
)
from app.cli.tables import aligned
from app.core.csv_tables import Column
from app.core.errors import check_name
from app.core.extensions import db, reading, transact, writing
from app.games.metrics import POINTS
from app.matches.lobby import read_seed
from app.society import dataset as service
from app.society import folders, store
from app.society.comparisons import MIXING, RELEASED
from app.society.job import SOCIETY
from app.society.statistics import (
    AFTER,
    ASPECTS,
    BEFORE,
    DATA_COLUMNS,
    ITERATION_COLUMNS,
    IterationFigures,
    iteration_figures,
)

_number = click.argument("number", type=WHOLE, metavar="SOCIETY")
_HEADS = [f"{aspect}, {when}" for aspect in ASPECTS for when in ("drafts", "revisions")]


@click.command(cls=Command)
@_number
@click.option("--name", metavar="NAME", help="A name again is its next version. [default: the society's]")
@click.option(
    "--mixing",
    type=click.Choice(list(MIXING)),
    default=RELEASED,
    show_default=True,
    help="Rows of imitation, self-criticism and realignment: released 5:1:1, code 1:0.1:0.1.",
)
@click.option("--seed", default="0", show_default=True, metavar="S", help="Which rows the mixing ratio leaves out.")
@json_option
def data(number: int, name: str | None, mixing: str, seed: str, as_json: bool) -> None:
    """Make datasets to train on: rated answers and criticism, and better answers for supervised training."""
    if name is not None:
        check_name("--name", name)
    drawn_by = read_seed(seed, "--seed")
    ensure_database()
    with reading() as session:
        called = name or service.default_name(SOCIETY.get(session, number))
        found = service.build(session, settings().home, number, mixing, drawn_by)
    comparisons, realignment = service.register_both(transact(db.engine), found, called)
    if as_json:
        rows = {"rows": found.comparisons.rows, "realignment_rows": found.realignment and found.realignment.rows}
        table = [{column.name: column.read(each) for column in DATA_COLUMNS} for each in found.figures]
        print_json({"dataset_id": comparisons, "realignment_id": realignment, "name": called, **rows, "data": table})
        return
    click.echo(f"Dataset {comparisons} ({called}): {counted(found.comparisons.rows, 'row')} of comparisons.")
    mixed_in = ""
    if found.realignment is not None:
        named = service.realignment_name(called)
        click.echo(f"Dataset {realignment} ({named}): {counted(found.realignment.rows, 'row')} of conversations.")
        mixed_in = f" --sft-data {realignment}"
    click.echo()
    _print_table(DATA_COLUMNS, found.figures)
    click.echo(
        f"\nTrain on it: flask training run stable-alignment --dataset {comparisons}{mixed_in} --base MODEL --name NAME"
    )


@click.command(cls=Command)
@_number
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@json_option
def figures(number: int, as_csv: bool, as_json: bool) -> None:
    """Show mean ratings before and after revising, with 95 % intervals, by iteration and of all."""
    check_one_format(as_json, as_csv)
    ensure_database()
    with reading() as session:
        SOCIETY.get(session, number)
        found = iteration_figures(store.read_interactions(session, number))
    if as_csv:
        print_csv(ITERATION_COLUMNS, found)
    elif as_json:
        print_json([{column.name: column.read(each) for column in ITERATION_COLUMNS} for each in found])
    else:
        click.echo("\n".join(aligned([("iteration", "interactions", *_HEADS), *map(_in_words, found)])))


@click.command(cls=Command)
@_number
@click.option("--out", required=True, type=Path, metavar="FOLDER", help="A folder that is not there yet.")
@json_option
def export(number: int, out: Path, as_json: bool) -> None:
    """Write a society's memories, log and rated responses, in the form of the published programs."""
    ensure_database()
    with reading() as session:
        interactions = folders.write_folder(session, number, out)
    print_result(
        as_json,
        {"society_id": number, "interactions": interactions, "out": str(out)},
        f"Society {number}: {interactions} interactions in {out}.",
    )


@click.command("import", cls=Command)
@click.argument("folder", type=Path)
@click.option(
    "--model", default="imported", show_default=True, metavar="NAME", help="Of agents and observers, if unnamed."
)
@click.option(
    "--name", default="", metavar="NAME", help="What lists call the society. [default: its own or the folder's]"
)
@json_option
def import_folder(folder: Path, model: str, name: str, as_json: bool) -> None:
    """Import a society that was run elsewhere: a folder with external_memory, as `export` or the programs write it."""
    check_name("--model", model)
    if name:
        check_name("--name", name)
    ensure_database()
    with writing() as session:
        row = folders.read_folder(session, folder, model, name)
        described = {"society_id": row.id, "name": row.name, "interactions": row.interactions}
    print_result(
        as_json,
        described,
        f"Society {described['society_id']} ({described['name']}): {described['interactions']} interactions"
        f" from {folder}.",
    )


COMMANDS = (data, figures, export, import_folder)


def _print_table(columns: Sequence[Column], rows: Sequence[object]) -> None:
    """Print a table on stdout, without columns that are all empty or 0."""
    cells = [[_cell_text(column.read(row)) for column in columns] for row in rows]
    told = [at for at in range(len(columns)) if any(line[at] not in ("", "0") for line in cells)]
    heads = [columns[at].name.replace("_", " ") for at in told]
    click.echo("\n".join(aligned([heads, *([line[at] for at in told] for line in cells)])))


def _cell_text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _in_words(row: IterationFigures) -> Sequence[str]:
    """The figures of an iteration, with their intervals in brackets."""
    found = [_figure_words(getattr(getattr(row, aspect), when)) for aspect in ASPECTS for when in (BEFORE, AFTER)]
    return ["all" if row.iteration is None else str(row.iteration + 1), str(row.interactions), *found]


def _figure_words(figure: Figure) -> str:
    ends = interval(figure, POINTS)
    return number(figure.value, POINTS) + (f" ({ends})" if ends else "")
