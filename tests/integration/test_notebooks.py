"""The notebooks run anew on a whole Parlor: what a researcher would see is what is committed, but for its figures."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from scripts.notebooks import FOLDER, INSTALL, NAMES, executed, missing_packages, running_lab

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(bool(missing_packages()), reason=f"what runs notebooks is not installed: {INSTALL}"),
]
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]\d+)?")
Table = list[list[str]]


@pytest.fixture(scope="module")
def lab() -> Iterator[dict[str, str]]:
    with running_lab(with_study=True) as env:
        yield env


def outputs_of(notebook: Any) -> list[list[Any]]:
    """The outputs of each cell with code."""
    return [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]


def tables_of(notebook: Any) -> list[Table]:
    """The data frames that are shown, each as rows of texts."""
    pages = ["".join(each.get("data", {}).get("text/html", "")) for cell in outputs_of(notebook) for each in cell]
    rows = [re.findall(r"<tr.*?</tr>", page, re.DOTALL) for page in pages if page]
    return [[re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in table] for table in rows]


def without_numbers(table: Table) -> Table:
    """A table in which each number is the same one: NaN and inf are texts, and stay."""
    return [["0" if NUMBER.fullmatch(cell) else cell for cell in row] for row in table]


def shape_of(notebook: Any) -> list[list[tuple[str, tuple[str, ...]]]]:
    """Of each cell, of which kinds its outputs are."""
    return [
        [(each["output_type"], tuple(sorted(each.get("data", {})))) for each in cell] for cell in outputs_of(notebook)
    ]


def number_of(table: Table, row: str, column: str) -> float:
    """A figure of a table, by the labels of its row and its column, which is counted from the right."""
    place = table[0].index(column) - len(table[0])
    return float(next(each for each in table if row in each)[place])


def check_comparison(tables: list[Table]) -> None:
    low, high = (number_of(tables[-1], "score", column) for column in ("low", "high"))
    assert 0 < low < number_of(tables[-1], "score", "difference") < high  # a model and a weaker one
    assert number_of(tables[-1], "score", "pairs") == 60


def check_training(tables: list[Table]) -> None:
    heading, _, *lines = tables[-1]  # of which the second has the name of the index
    found = [dict(zip(heading, line, strict=True)) for line in lines]
    assert all(float(each["low"]) <= float(each["score"]) <= float(each["high"]) for each in found)
    learnt = [int(each["games learnt"]) for each in found]
    assert learnt[0] == 0 < learnt[1] < learnt[2]
    assert all(float(each["loss"]) > 0 for each in found[1:])


def check_study(tables: list[Table]) -> None:
    endings, _cells, effects, deviations = tables
    assert number_of(endings, "completed", "count") >= 15
    for row in effects[1:]:
        effect, low, high = map(float, row[-3:])
        assert low < effect < high
    assert all(float(cell) >= 0 for row in deviations[1:] for cell in row[1:])


CHECKS = dict(zip(NAMES, (check_comparison, check_training, check_study), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_run_anew_shows_what_is_committed(lab: dict[str, str], name: str) -> None:
    path = FOLDER / f"{name}.ipynb"
    committed = json.loads(path.read_text(encoding="utf-8"))
    made = executed(path, lab)
    assert [each for cell in outputs_of(made) for each in cell if each["output_type"] == "error"] == []
    assert [each for cell in outputs_of(made) for each in cell if each.get("name") == "stderr"] == []
    assert shape_of(made) == shape_of(committed)
    assert any("image/png" in kinds for cell in shape_of(made) for _, kinds in cell)
    tables = tables_of(made)
    assert [without_numbers(each) for each in tables] == [without_numbers(each) for each in tables_of(committed)]
    CHECKS[name](tables)
