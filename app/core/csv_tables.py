"""CSV tables: their columns, and how values are written. Pure."""

import csv
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

ROWS_AT_ONCE = 200
BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
_TEXTS = ("text", "json")  # the types that a spreadsheet may take for a formula
# Text that a spreadsheet takes for a number and writes back changed: it keeps 15 digits and no leading zeros.
_MONTH = (
    r"(?:jan(?:uary?)?|feb(?:ruary?)?|m[aä]r(?:ch|z)?|apr(?:il)?|ma[iy]|jun[ei]?|jul[iy]?|aug(?:ust)?|sept?(?:ember)?"
    r"|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)\.?"
)
_REWRITTEN = re.compile(
    r"-?[0-9]{16,}"
    r"|0[0-9]+(?:[.,][0-9]*)?"
    r"|[0-9]+(?:[.,][0-9]*)?e[+-]?[0-9]+|[.,][0-9]+e[+-]?[0-9]+"
    r"|[0-9]{1,4}[-/][0-9]{1,4}(?:[-/][0-9]{1,4})?|[0-9]{1,4}\.[0-9]{1,2}\.(?:[0-9]{1,4})?|[0-9]+ [0-9]+/[0-9]+"
    r"|[0-9]{1,4}:[0-9]{1,2}(?::[0-9]{1,2})?(?:[.,][0-9]+)?(?: ?[ap]m)?"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[t ][0-9:.]+z?"
    rf"|[0-9]{{1,4}}[-/. ]*{_MONTH}(?:[-/. ]*[0-9]{{1,4}})?|{_MONTH}[-/., ]*[0-9]{{1,4}}(?:[-/., ]+[0-9]{{1,4}})?",
    re.IGNORECASE,
)
_LEVEL = re.compile(r"\w+(?:[ -]\w+)*")
_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠−]")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its type, its meaning, its allowed values, and the function that reads a value.

    Without `read`, the value is the row's attribute with the column's name.
    """

    name: str
    type: str  # text | json | integer | number | boolean | date | time
    meaning: str
    values: str
    read: Callable[[Any], Any] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.read is None:
            object.__setattr__(self, "read", attrgetter(self.name))

    @property
    def levels(self) -> tuple[str, ...]:
        """The possible values of a text column with a fixed set, read from `values`: `waiting | over; empty for none`.

        Empty for other text, or if more values than those listed are possible.
        """
        listed = self.values.partition(";")[0].split(" | ")
        found = tuple(each for each in listed if not each.startswith("empty"))
        return found if self.type == "text" and len(found) > 1 and all(map(_LEVEL.fullmatch, found)) else ()


CODEBOOK = (
    Column("table", "text", "The table.", "a name", lambda row: row[0]),
    Column("column", "text", "The column of that table.", "a name", lambda row: row[1].name),
    Column("type", "text", "The type of its values.", "text | json | integer | number | boolean | date | time",
           lambda row: row[1].type),
    Column("meaning", "text", "What it says.", "a sentence", lambda row: row[1].meaning),
    Column("values", "text", "Which values it may hold.", "a list or an example", lambda row: row[1].values),
)  # fmt: skip


LONGEST_NAME = 32  # characters of a column's name, as Stata takes it
# Words reserved by Stata, R or both, in any case.
_RESERVED = frozenset((
    "_all", "_b", "_coef", "_cons", "_n", "_pi", "_pred", "_rc", "_skip", "break", "byte", "con", "double", "else",
    "false", "float", "for", "function", "if", "in", "inf", "infinity", "int", "long", "na", "nan", "next", "null",
    "numlist", "repeat", "strl", "true", "using", "while", "with",
))  # fmt: skip
_AT_THE_END = re.compile(r"(?:_(?:match|block)_\d+)?$")


def with_short_names(columns: Sequence[Column]) -> list[Column]:
    """The columns, renamed by `short_names`; the meaning of a renamed column begins with its original name."""
    names = short_names([column.name for column in columns])
    return [
        column if column.name == name else replace(column, name=name, meaning=f"[{column.name}] {column.meaning}")
        for column, name in zip(columns, names, strict=True)
    ]


def short_names(names: Sequence[str]) -> list[str]:
    """Names that statistics programs accept: at most 32 characters, letters, digits and underscores, no digit first,
    unique regardless of case. Names that fit stay unchanged.
    """
    seen: dict[str, int] = {}
    for place, name in enumerate(names):
        if _is_accepted_name(name):
            seen.setdefault(name.casefold(), place)
    found: list[str] = []
    for place, name in enumerate(names):
        if seen.get(name.casefold()) == place and _is_accepted_name(name):
            found.append(name)
            continue
        found.append(next(each for each in _shorter(name) if each.casefold() not in seen))
        seen[found[-1].casefold()] = place
    return found


def _is_accepted_name(name: str) -> bool:
    return len(name) <= LONGEST_NAME and name.isidentifier() and name.casefold() not in _RESERVED


def _shorter(name: str) -> Iterator[str]:
    """Shorter and shorter names with a number, which keep the match or block at their end."""
    plain = re.sub(r"\W+", "_", name).strip("_") or "column"
    if not plain.isidentifier() or plain.casefold() in _RESERVED:
        plain = f"x_{plain}"
    end = _AT_THE_END.search(plain)
    last = end[0] if end is not None else ""
    body = plain.removesuffix(last)
    for number in count(1):
        tail = last if number == 1 else f"_{number}{last}"
        yield body[: LONGEST_NAME - len(tail)].rstrip("_") + tail


class CountedRows:
    """Rows that are counted as they are read."""

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
    """CSV in UTF-8, header first, in chunks of some hundred rows, with the column names of `short_names`.

    `guard` puts an apostrophe before text that a spreadsheet would run as a formula, or change because it looks like a
    number or a date; `bom` marks UTF-8 for Excel.
    """
    writer = csv.writer(SimpleNamespace(write=lambda text: text))

    def line(cells: Sequence[str]) -> str:
        # The writer ends lines with CR LF, because only then does it quote both inside cells.
        text: str = writer.writerow(cells)
        return text[:-2] + "\n"

    piece = [(BOM if bom else "") + line(short_names([column.name for column in columns]))]
    for row in found:
        piece.append(line([_cell_text(column, row, guard) for column in columns]))
        if len(piece) >= ROWS_AT_ONCE:
            yield "".join(piece).encode()
            piece.clear()
    yield "".join(piece).encode()


def _cell_text(column: Column, row: Any, guard: bool) -> str:
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
    return guarded(text) if guard and column.type in _TEXTS else text


def guarded(text: str) -> str:
    """The text with an apostrophe in front if a spreadsheet would run it as a formula, or change it.

    A spreadsheet changes numbers with more than 15 digits, leading zeros or an exponent, and dates.
    """
    return f"'{text}" if looks_like_formula(text) or _REWRITTEN.fullmatch(text.strip()) else text


def looks_like_formula(text: str) -> bool:
    """Whether a spreadsheet may run the text: it begins with = + - @, after any blanks, or with a tab or a line break.

    Source: OWASP, CSV Injection, with the full-width variants that some programs treat alike.
    """
    if text[:1] in ("\t", "\r", "\n") and text:
        return True
    blank = 0
    while blank < len(text) and (text[blank].isspace() or unicodedata.category(text[blank]) in ("Cf", "Zs")):
        blank += 1
    return bool(_FORMULA.match(text, blank))
