"""Tables as CSV: what a column is, and how its values are written. Pure."""

import csv
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import Any

ROWS_AT_ONCE = 200
BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
_TEXTS = ("text", "json")  # the types that a spreadsheet may take for a formula
_LONG_NUMBER = re.compile(r"-?[0-9]{16,}")  # a spreadsheet keeps 15 digits of a number
_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠−]")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its type, what it means, which values it may hold, and where its value comes from."""

    name: str
    type: str  # text | json | integer | number | boolean | time
    meaning: str
    values: str
    read: Callable[[Any], Any]


class CountedRows:
    """Rows that count themselves as they are read."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = rows
        self.seen = 0

    def __iter__(self) -> Iterator[Any]:
        for row in self._rows:
            self.seen += 1
            yield row


def to_csv(
    columns: Sequence[Column], found: Iterable[Any], *, guard: bool = False, bom: bool = False
) -> Iterator[bytes]:
    """CSV in UTF-8, header first, in pieces of some hundred rows.

    `guard` puts an apostrophe before text that a spreadsheet would take for a formula, or for a number and round it;
    `bom` marks UTF-8 for Excel.
    """
    writer = csv.writer(SimpleNamespace(write=lambda text: text))

    def line(cells: Sequence[str]) -> str:
        # The writer ends lines with CR LF, because only then does it quote both of them inside a cell.
        text: str = writer.writerow(cells)
        return text[:-2] + "\n"

    piece = [(BOM if bom else "") + line([column.name for column in columns])]
    for row in found:
        piece.append(line([_cell(column, row, guard) for column in columns]))
        if len(piece) >= ROWS_AT_ONCE:
            yield "".join(piece).encode()
            piece.clear()
    yield "".join(piece).encode()


def _cell(column: Column, row: Any, guard: bool) -> str:
    value = column.read(row)
    match value:
        case None:
            text = ""
        case bool():
            text = "true" if value else "false"
        case float():
            text = str(int(value)) if value.is_integer() else repr(value)
        case datetime():
            text = value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case dict() | list():
            text = json.dumps(value, sort_keys=True, ensure_ascii=False)
        case _:
            text = str(value)
    if guard and column.type in _TEXTS and (looks_like_formula(text) or _LONG_NUMBER.fullmatch(text)):
        return f"'{text}"
    return text


def looks_like_formula(text: str) -> bool:
    """Whether a spreadsheet may run the text: it begins with = + - @, a tab or a line break, whatever blank is before.

    Source: OWASP, CSV Injection, with the full-width variants that some programs treat alike.
    """
    if text[:1] in ("\t", "\r", "\n") and text:
        return True
    blank = 0
    while blank < len(text) and (text[blank].isspace() or unicodedata.category(text[blank]) in ("Cf", "Zs")):
        blank += 1
    return bool(_FORMULA.match(text, blank))
