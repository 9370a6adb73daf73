"""Tables that a spreadsheet saved again are read, or refused with what was found in them."""

import csv
import random
from pathlib import Path

import pytest

from app.core.csv_reader import read_csv, refuse_rounded
from app.core.errors import Invalid
from app.games import find_game
from app.matches.material import pieces_of_file

COLUMNS = ("Submission id", "Status")
PLAIN = 'Submission id,Status,Note\na1,APPROVED,"one, two"\n'
SEMICOLONS = PLAIN.replace(",S", ";S").replace(",N", ";N").replace(",A", ";A").replace(',"', ';"')


def cells(content: bytes, **options: bool) -> list[dict[str, str]]:
    return [dict(row.cells) for row in read_csv(content, "t.csv", COLUMNS, **options).rows]


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.encode(),
        PLAIN.encode("utf-8-sig"),
        PLAIN.replace("\n", "\r\n").encode(),
        PLAIN.replace("\n", "\r").encode(),  # as an old Mac ends lines
        PLAIN.encode("utf-16"),
        PLAIN.encode("utf-16-le"),
        PLAIN.encode("utf-16-be"),
        SEMICOLONS.encode("utf-8-sig"),
        SEMICOLONS.replace(";", "\t").encode("utf-16"),
        ("sep=;\r\n" + SEMICOLONS).encode(),
        ('"sep=;"\n' + SEMICOLONS).encode("utf-8-sig"),
        ("\n,,,\n" + PLAIN + ",,\n,,,,,\n").encode(),
        PLAIN.replace("Note\n", "Note,,\n").replace('two"\n', 'two",,\n').encode(),
        PLAIN.replace("Submission id", ' "Submission id"'.strip()).encode(),
        PLAIN.replace("a1", " a1\u00a0").encode(),
        PLAIN.replace("a1", '="a1"').encode(),
        PLAIN.replace("a1", '"=""a1"""').encode(),  # as it is written to keep Excel from taking it for a number
    ],
)  # fmt: skip
def test_what_a_spreadsheet_saved_again_is_the_same_table(content: bytes) -> None:
    assert cells(content) == [{"Submission id": "a1", "Status": "APPROVED", "Note": "one, two"}]


def test_windows_letters_are_read_where_only_plain_columns_count() -> None:
    content = PLAIN.replace("one", "Côte").encode("cp1252")
    assert cells(content, western=True)[0]["Status"] == "APPROVED"
    with pytest.raises(Invalid, match="expected a CSV table in UTF-8 or UTF-16, got bytes that are not UTF-8 text"):
        cells(content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ((SEMICOLONS + "b;c;d;e\n").encode(), r"t.csv:3: expected at most 3 cells.* semicolons \(;\), in UTF-8"),
        (SEMICOLONS.replace('two"', "two").encode("utf-16"), "parted by semicolons.* in UTF-16"),
        (b"PK\x03\x04rest", "a workbook of a spreadsheet"),
        (b"\xd0\xcf\x11\xe0rest", "a workbook of a spreadsheet"),
        (b"a,a\n1,2\n", "expected each column once, got 'a'"),
        (b"Submission id\0Status\n", "bytes that are not .* text"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_read_is_refused_with_what_was_found(content: bytes, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        read_csv(content, "t.csv", COLUMNS)


def test_an_id_that_was_rounded_by_a_spreadsheet_is_named() -> None:
    for cell in ("6.6E+23", "6,6E+23", "6E+23"):
        with pytest.raises(Invalid, match="a spreadsheet took the id for a number"):
            refuse_rounded(cell, "t.csv:2")
    for cell in ("5e0000000000000000000012", "66f0c1e", "a1"):
        refuse_rounded(cell, "t.csv:2")


def test_any_bytes_are_a_table_or_refused_in_one_line() -> None:
    rng = random.Random(1)
    for _ in range(2000):
        content = bytes(rng.choice(b'ab,;\t"\r\n\0\xff\xfe|=sep ') for _ in range(rng.randrange(40)))
        assert "\n" not in told(content)


def told(content: bytes) -> str:
    try:
        read_csv(content, "t.csv", ("a", "b"), western=True)
    except Invalid as refused:
        return refused.message
    return ""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_lists_of_words_are_read_after_a_program_saved_them_again(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes("tree\r\nriver\r\n".encode(encoding))
    kind = find_game("taboo").material
    assert kind is not None
    assert pieces_of_file(kind, str(path)) == ["tree", "river"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b",".join(b"c%d" % number for number in range(600)) + b"\n" + b"1\n" * 600, "at most 500 columns, got 600"),
        (b"a" * 100_001 + b"\n1\n", r"list\.csv:1: expected cells of at most 100000 characters, got 100001"),
    ],
    ids=["columns", "a cell"],
)
def test_a_header_that_no_table_has_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        read_csv(content, "list.csv", ("order", "arm"))


def test_a_longer_cell_is_refused_whatever_limit_the_process_has_set_for_csv():
    limit = csv.field_size_limit()
    try:
        for allowed in (131_072, 2**31 - 1):
            csv.field_size_limit(allowed)
            with pytest.raises(Invalid, match=r"list\.csv:\d: expected "):
                read_csv(b"order\n" + b"a" * 200_000 + b"\n", "list.csv")
    finally:
        csv.field_size_limit(limit)


def test_rows_that_would_be_filled_up_to_many_columns_are_refused_by_their_number():
    content = ",".join(f"c{number}" for number in range(499)).encode() + b"\n" + b"1\n" * 20_000
    with pytest.raises(Invalid, match=r"arms\.csv: expected at most 1000000 cells, got 20001 rows of 499 cells"):
        read_csv(content, "arms.csv")
