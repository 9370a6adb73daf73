"""A recipe run as files: the recipe with all that it names, its inputs, its steps' results, its tables.

Recipes that campaigns and alignments write are exported likewise.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from app.core.csv_tables import Column, to_csv
from app.core.errors import NotFound, either
from app.core.r_and_stata import line_files
from app.core.reading_process import read_in_process
from app.core.zip_files import zipped
from app.models import RecipeRun, RecipeStep
from app.recipes.listing import JSON, RecipeStepLine, in_words, lines_of, tables_of
from app.recipes.sweep_results import SweepResults, results_of, sweep_of
from app.recipes.tables import TableCell, cells_of

STEP_COLUMNS = (
    Column("step", "text", "The step, with the values of its loops.", "its key", lambda line: line.key),
    Column("do", "text", "The kind of step.", "a kind of steps", lambda line: line.do),
    Column("job", "text", "Its job.", "kind and number", lambda line: line.job and str(line.job)),
    Column("status", "text", "Its status.", "empty: not begun", lambda line: line.status),
    Column("made", "text", "A model, or datasets.", "names", lambda line: "; ".join(map(str, line.made))),
    Column("figures", "json", "Its figures or its table.", "JSON", lambda line: _figures_as_json(line)),
)


def archive_of(session: Session, row: RecipeRun) -> bytes:
    """A run as a zip archive; its recipe can be run again from the folder where it is unpacked."""
    lines = lines_of(session, row)
    texts = {f"{row.recipe}.yaml": row.text, **row.files}
    tables = {f"{_file_name(step.key)}.csv": _table_of_step(step) for step in tables_of(session, row)}
    results = {
        "inputs.json": json.dumps(row.spec["inputs"], indent=2, ensure_ascii=False).encode() + b"\n",
        "steps.csv": b"".join(to_csv(STEP_COLUMNS, lines)),
        **{name: b"".join(to_csv(*table)) for name, table in tables.items()},
        **line_files({"steps.csv": STEP_COLUMNS, **{name: columns for name, (columns, _) in tables.items()}}),
    }
    if sweep_of(row).variables:
        results["sweep.csv"] = b"".join(to_csv(*sweep_rows(results_of(row, lines))))
    files = {name: text.encode() for name, text in texts.items()}
    return zipped(row.name, files | {f"results/{name}": found for name, found in results.items()})


def written_recipe(folder: str, about: str, document: JSON, files: Mapping[str, str]) -> bytes:
    """A zip archive of a recipe that was not read from a file, with the files that it names.

    `about` is the recipe's description of itself. Raises Unavailable where the text could not be made.
    """
    recipe, version = document["recipe"], document["version"]
    whole = {"recipe": recipe, "version": version, "about": about, **document}
    text = read_in_process("app.recipes.yaml_command", given=whole)["text"]
    return zipped(folder, {name: found.encode() for name, found in {f"{recipe}.yaml": text, **files}.items()})


def table_rows(session: Session, row: RecipeRun, key: str) -> tuple[Sequence[Column], Sequence[TableCell]]:
    """The columns and rows of the table that a step made. Raises NotFound."""
    tables = {step.key: step for step in tables_of(session, row)}
    if key not in tables:
        expected = str(either(tables)) if tables else "one that is done and made a table"
        raise NotFound("step", expected=expected, got=key)
    return _table_of_step(tables[key])


def sweep_rows(results: SweepResults) -> tuple[Sequence[Column], Sequence[TableCell]]:
    """The columns and rows of a sweep's figures."""
    return _columns_and_cells(results.table)


def _table_of_step(step: RecipeStep) -> tuple[Sequence[Column], Sequence[TableCell]]:
    """A table that a step made."""
    return _columns_and_cells(step.figures or {})


def _columns_and_cells(table: Mapping[str, Any]) -> tuple[Sequence[Column], Sequence[TableCell]]:
    """A table with a row for each figure."""
    return [*_figure_table_columns(table["variables"])], cells_of(table)


def _figure_table_columns(variables: Sequence[str]) -> Iterator[Column]:
    yield Column("step", "text", "The step whose figure it is.", "its name")
    for name in variables:
        yield Column(name, "text", "A variable of its loops.", "a value", partial(_variable, name))
    yield Column("model", "text", "The model that it describes.", "a name; empty for a mean")
    yield Column("figure", "text", "The name of the figure.", "its name")
    yield Column("value", "number", "The figure.", "a number")
    yield Column("low", "number", "Lower end of its 95 % interval.", "empty where there is none")
    yield Column("high", "number", "Upper end of its 95 % interval.", "empty where there is none")
    yield Column("n", "number", "The size of the sample.", "matches, items, runs or seeds")


def _variable(name: str, cell: TableCell) -> str:
    return in_words(cell.values.get(name, ""))


def _figures_as_json(line: RecipeStepLine) -> str:
    return json.dumps(line.result, ensure_ascii=False) if line.result else ""


def _file_name(key: str) -> str:
    """A file name for a step's key."""
    return "table-" + re.sub(r"[^A-Za-z0-9._-]+", "-", key)
