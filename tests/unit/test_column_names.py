"""Names of columns that Stata, R and pandas take, and cells that come back as they were."""

import csv
import importlib
import io
import pkgutil
import random
from collections.abc import Iterator, Sequence

import pytest

import app
from app.analysis.chart import Chart, Description
from app.analysis.tables import analysis_columns, campaign_columns
from app.benchmarks.table import comparison_columns
from app.core.csv_tables import LONGEST_NAME, Column, short_names, to_csv, with_short_names
from app.games import GAMES
from app.matches.export import TABLES


def named(*names: str) -> list[str]:
    return [each.name for each in with_short_names([Column(name, "text", "Said.", "a text", str) for name in names])]


def test_names_that_fit_stay_and_others_are_short_and_differ() -> None:
    trust = "how_much_did_you_trust_your_partner"
    names = named("participant", "utility_a_self", f"{trust}_match_1", f"{trust}_match_2", f"{trust}_again_match_1")
    assert names[:2] == ["participant", "utility_a_self"]
    assert names[2:] == [
        "how_much_did_you_trust_yo_match_1", "how_much_did_you_trust_yo_match_2", "how_much_did_you_trust_2_match_1",
    ] or all(len(each) <= LONGEST_NAME for each in names)  # fmt: skip
    assert len({each.casefold() for each in names}) == 5
    assert names[2].endswith("_match_1")
    assert names[3].endswith("_match_2")


@pytest.mark.parametrize("name", ["if", "NA", "with", "2nd", "a b", "a-b", "", "_all", "true", "utility_a_selbst/ich"])
def test_what_programs_take_for_something_else_is_renamed(name: str) -> None:
    (found,) = named(name)
    assert found.isidentifier()
    assert found.casefold() != name.casefold()


def test_a_name_that_differs_in_case_alone_is_renamed_and_told() -> None:
    columns = with_short_names([Column(name, "text", "Said.", "a text", str) for name in ("wave", "Wave", "wave")])
    assert [each.name for each in columns] == ["wave", "Wave_2", "wave_3"]
    assert [each.meaning for each in columns] == ["Said.", "[Wave] Said.", "[wave] Said."]


def test_any_names_differ_within_32_characters() -> None:
    rng = random.Random(2)
    for _ in range(200):
        names = ["".join(rng.choice("aAbB_é 1-") for _ in range(rng.randrange(1, 60))) for _ in range(30)]
        found = named(*names)
        assert len({each.casefold() for each in found}) == len(names)
        assert all(each.isidentifier() and len(each) <= LONGEST_NAME for each in found)


def written_tables() -> Iterator[tuple[str, Sequence[Column]]]:
    """The columns of every table that is written as CSV and does not depend on a study."""
    for module in pkgutil.walk_packages(app.__path__, "app."):
        if module.name.startswith("app.inference"):  # which loads torch
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, list | tuple) and value and all(isinstance(each, Column) for each in value):
                yield f"{module.name}.{name}", value
    for table in TABLES.values():
        yield table.name, table.columns
    yield "benchmarks", comparison_columns()
    for game in GAMES:
        yield f"analysis of {game}", analysis_columns([game])
        yield f"campaign of {game}", campaign_columns([game])


def test_no_table_has_a_name_that_would_have_to_be_changed() -> None:
    tables = dict(written_tables())
    assert len(tables) > 15
    changed = {
        name: [old for old, new in zip(written, short_names(written), strict=True) if old != new]
        for name, columns in tables.items()
        if (written := [each.name for each in columns])
    }
    assert {name: found for name, found in changed.items() if found} == {}


def test_a_table_and_a_chart_are_written_under_names_that_differ_within_32_characters() -> None:
    long = "dropped_left_out_by_the_mixing_ratio"
    columns = [Column(f"{long}_{end}", "integer", "Said.", "from 0", lambda row: row) for end in "ab"]
    assert b"".join(to_csv(columns, [7])) == b"dropped_left_out_by_the_mixing_r,dropped_left_out_by_the_mixing_2\n7,7\n"
    drawn = Chart("one", "One", Description("A sentence.", (), ()), lambda _: {}, [{f"{long}_a": 1, f"{long}_b": 2}])
    assert drawn.csv() == "dropped_left_out_by_the_mixing_r,dropped_left_out_by_the_mixing_2\n1,2\n"


CELLS = [
    "", "NA", "TRUE", "null", "007", "1-2", "1e5", "12345678901234567890", "one\ntwo", "one\r\ntwo", "one\rtwo",
    'say "no"',
    "a,b;c\td", "=1+1", "\u0661\u0662", "\U0001f600", "e\u0301", "\u202eabc", "\x07", " spaces ", "\ufeff",
]  # fmt: skip


def test_what_people_answer_comes_back_from_a_strict_reader() -> None:
    column = Column("answer", "text", "Said.", "a text", lambda row: row)
    written = b"".join(to_csv([column, column], CELLS)).decode()
    rows = list(csv.reader(io.StringIO(written, newline=""), strict=True))
    assert rows[1:] == [[cell, cell] for cell in CELLS]


def test_what_people_answer_comes_back_from_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    column = Column("answer", "text", "Said.", "a text", lambda row: row)
    written = b"".join(to_csv([column, column], CELLS))
    table = pandas.read_csv(io.BytesIO(written), dtype=str, keep_default_na=False, names=["one", "two"], skiprows=1)
    assert list(table["one"]) == CELLS
