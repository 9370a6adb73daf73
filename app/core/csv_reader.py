"""Reads CSV tables from people's programs, including those saved again by a spreadsheet. Pure.

It accepts UTF-8 with or without a byte order mark, UTF-16, and the Windows character set of Western Europe; cells
separated by commas, semicolons, tabs or bars, also as `="…"`; line endings of any system; `sep=;` as a first line; and
empty rows and columns.
"""

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from app.core.errors import Invalid, Phrase, Verbatim

_MARKS = (",", ";", "\t", "|")
_MARK_NAMES: Mapping[str, str] = {",": "commas", ";": "semicolons (;)", "\t": "tabs", "|": "bars (|)"}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_WESTERN = "cp1252"
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # .xlsx and .ods, .xls
_ROUNDED = re.compile(r"-?[0-9]+(?:[.,][0-9]+)?E\+?[0-9]+", re.IGNORECASE)
_KEPT_AS_TEXT = re.compile(r'="[^"]*"')
_MOST_COLUMNS = 500
_MOST_CELLS = 1_000_000  # of all rows, each as long as the header
_LONGEST_CELL = 100_000  # characters; csv's own limit (131,072) applies to the whole process, and others raise it
_LONGEST_HEADER = 1 << 20  # characters


class CsvRow(NamedTuple):
    """A row by column names, with its cells stripped; `line` is where it ends in the file."""

    line: int
    cells: Mapping[str, str]


class CsvTable(NamedTuple):
    """A table: the names of its columns, its rows, and a description of its format."""

    columns: Sequence[str]
    rows: Sequence[CsvRow]
    written: str


def read_csv(content: bytes, name: str, columns: Collection[str] = (), *, western: bool = False) -> CsvTable:
    """The table in a file; an empty file gives an empty table. `columns` are the expected columns, which help to find
    the separator. `western` is for tables of which only ASCII letters are read: they may be in the Windows character
    set.

    Raises Invalid, with `name` and what was found, for anything but a table: no text, an open quote, a row with more
    cells than the header.
    """
    text, encoding = _decoded(content, name, western=western)
    text, mark = _without_separator_line(text)
    if mark is None:
        mark = _mark_of(text, columns)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    written = f"cells parted by {_MARK_NAMES.get(mark, repr(mark))}, in {encoding}"
    try:
        found = [(lines.line_num, [_bare(cell) for cell in row]) for row in lines]
    except csv.Error as error:
        raise Invalid(
            None, expected=Phrase("a CSV table"), subject=Verbatim(f"{name}:{lines.line_num}"),
            got=Phrase("%(error)s, in %(written)s", error=Verbatim(error), written=Verbatim(written)),
        ) from None  # fmt: skip
    for line, row in found:
        if (longest := max(map(len, row), default=0)) > _LONGEST_CELL:
            expected = Phrase("cells of at most %(most)s characters", most=_LONGEST_CELL)
            raise Invalid(None, expected=expected, got=Verbatim(str(longest)), subject=Verbatim(f"{name}:{line}"))
    filled = [(line, row) for line, row in found if any(row)]
    header = filled[0][1] if filled else []
    if len(header) > _MOST_COLUMNS:  # each row would be padded to all of them
        expected = Phrase("at most %(most)s columns", most=_MOST_COLUMNS)
        raise Invalid(None, expected=expected, got=Verbatim(str(len(header))), subject=Verbatim(name))
    if len(header) * len(filled) > _MOST_CELLS:
        expected = Phrase("at most %(most)s cells", most=_MOST_CELLS)
        got = Phrase("%(rows)s rows of %(columns)s cells", rows=len(filled), columns=len(header))
        raise Invalid(None, expected=expected, got=got, subject=Verbatim(name))
    return CsvTable(
        [each for each in header if each], list(_checked_csv_rows(filled[1:], header, name, written)), written
    )


def refuse_rounded(cell: str, place: str) -> None:
    """Raises Invalid for an id that a spreadsheet took for a number and wrote as one, such as 6.6E+23."""
    if _ROUNDED.fullmatch(cell) and "+" in cell:
        raise Invalid(
            None,
            expected=Phrase("the id as the recruiter writes it"),
            got=cell,
            remedy=Phrase("a spreadsheet took the id for a number and rounded it: download the table again, and do not"
                          " save it in a spreadsheet"),
            subject=Verbatim(place),
        )  # fmt: skip


def _checked_csv_rows(
    found: Sequence[tuple[int, list[str]]], header: Sequence[str], name: str, written: str
) -> Iterator[CsvRow]:
    if twice := next((each for each in header if each and header.count(each) > 1), None):
        expected = Phrase("each column once")
        raise Invalid(None, expected=expected, got=twice, subject=Verbatim(name))
    for line, row in found:
        extra = [cell for column, cell in zip(header, row, strict=False) if cell and not column]
        if any(row[len(header) :]) or extra:
            raise Invalid(
                None, expected=Phrase("at most %(count)s cells, as the header has", count=sum(map(bool, header))),
                got=Phrase("%(count)s, with %(written)s", count=len(row), written=Verbatim(written)),
                subject=Verbatim(f"{name}:{line}"),
            )  # fmt: skip
        padded = [*row, *[""] * (len(header) - len(row))]
        yield CsvRow(line, {column: cell for column, cell in zip(header, padded, strict=False) if column})


def decode_text(content: bytes) -> str:
    """The text of a file that a program may have saved again: UTF-8 with or without a byte order mark, or UTF-16.

    Raises UnicodeDecodeError.
    """
    encoding = _encoding_of(content)
    return content.decode("utf-8-sig" if encoding == "UTF-8" else encoding)


def _encoding_of(content: bytes) -> str:
    if content.startswith(_UTF_16):
        return "UTF-16"
    if b"\0" in content[:2]:  # UTF-16 without its mark; no UTF-8 text begins like this
        return "UTF-16LE" if content[1:2] == b"\0" else "UTF-16BE"
    return "UTF-8"


def _decoded(content: bytes, name: str, *, western: bool) -> tuple[str, str]:
    """The text of a file and the name of its encoding. Raises Invalid if it is not text."""
    if content.startswith(_WORKBOOKS):
        raise Invalid(
            None, expected=Phrase("a CSV table"), got=Phrase("a workbook of a spreadsheet"),
            remedy=Phrase("save it as “CSV UTF-8”"), subject=Verbatim(name),
        )  # fmt: skip
    encoding = _encoding_of(content)
    try:
        text = decode_text(content)
    except UnicodeDecodeError:
        if encoding != "UTF-8" or not western:
            raise _no_text(name, encoding) from None
        try:
            text, encoding = content.decode(_WESTERN), "Windows-1252"
        except UnicodeDecodeError:
            raise _no_text(name, encoding) from None
    if "\0" in text:
        raise _no_text(name, encoding)
    return text, encoding


def _no_text(name: str, encoding: str) -> Invalid:
    return Invalid(
        None,
        expected=Phrase("a CSV table in UTF-8 or UTF-16"),
        got=Phrase("bytes that are not %(encoding)s text", encoding=Verbatim(encoding)),
        remedy=Phrase("save it as “CSV UTF-8”"),
        subject=Verbatim(name),
    )


def _without_separator_line(text: str) -> tuple[str, str | None]:
    """A text without the line in which some programs name the separator, and that separator; None without such a
    line.
    """
    found = re.match(r"\s*\"?sep=(.)\"?[ \t]*(?:\r\n|\r|\n)", text, re.IGNORECASE)
    return (text[found.end() :], found[1]) if found else (text, None)


def _mark_of(text: str, columns: Collection[str]) -> str:
    """The separator of the cells: the one that gives most of the columns in the header, then the most frequent one."""
    header = next((line for line in re.split(r"\r\n|\r|\n", text[:_LONGEST_HEADER]) if line.strip(',;|\t "')), "")

    def fits(mark: str) -> tuple[int, int]:
        try:
            cells = [_bare(cell) for cell in next(csv.reader([header], delimiter=mark), [])]
        except csv.Error:  # an unterminated cell
            cells = []
        return len(set(cells) & set(columns)), len(cells)

    return max(_MARKS, key=fits)


def _bare(cell: str) -> str:
    """A cell stripped of blanks, of the invisible marks that programs add, and of the formula (`="…"`) that some use to
    keep an id from becoming a number.
    """
    found = cell.strip().strip("\ufeff\u200b\u200e\u200f").strip()
    return found[2:-1] if _KEPT_AS_TEXT.fullmatch(found) else found
