"""Names of columns that Stata, R and pandas take, and cells that come back as they were."""

import csv
import io
import random

import pytest

from app.csv_tables import LONGEST_NAME, Column, to_csv, with_short_names


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
