"""Rewrites JSON and tables in a model's text as lines of a label and a value, parsed like all others. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from app.society.ratings.words import REASON, folded, roles_of

_MOST_LEVELS = 4  # of nested objects around a rating
_NAMING = frozenset(("aspect", "criterion", "dimension", "category", "metric", "name", "label"))  # name what is rated
_DIVIDER = re.compile(r"[\s|:\-–+]*-[\s|:\-–+]*")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|[_\-.]")
_LISTED = re.compile(r"[,;\t]")


class Fields(NamedTuple):
    """The text with its JSON or table as lines, and the reasons in it, if any."""

    text: str
    reason: str | None


def fields_of(text: str) -> Fields | None:
    """The fields of the first JSON object, or of the tables, of a text; None where it has neither."""
    return _of_json(text) or _of_tables(text)


def _of_json(text: str) -> Fields | None:
    begin = text.find("{")
    if begin < 0:
        return None
    begin = text.find("[") if "[" in text[:begin] and text[text.find("[") + 1 : begin].strip() == "" else begin
    try:
        found, end = json.JSONDecoder().raw_decode(text, begin)
    except (ValueError, RecursionError):
        return None
    reasons: list[str] = []
    lines = [*_lines_of_json(found, reasons)]
    if not lines:
        return None
    return Fields("\n".join((text[:begin], *lines, text[end:])), "\n".join(reasons) if reasons else None)


def _lines_of_json(found: Any, reasons: list[str]) -> Iterator[str]:
    """A line for each leaf, with the keys that lead to it; reasons are collected separately."""
    open_ones: list[tuple[Any, tuple[str, ...]]] = [(found, ())]
    while open_ones:
        value, path = open_ones.pop()
        if isinstance(value, Mapping):
            named = tuple(str(each) for key, each in value.items() if key.lower() in _NAMING and isinstance(each, str))
            inner = [
                (each, (*path, *named, _words_of_key(key))) for key, each in value.items() if key.lower() not in _NAMING
            ]
        elif isinstance(value, list):
            inner = [(each, path if len(value) == 1 or isinstance(each, Mapping) else (*path, f"item {at}"))
                     for at, each in enumerate(value)]  # fmt: skip
        else:
            if path and any(REASON in roles_of(folded(word)) for word in path[-1].split()):
                reasons.append(str(value))
            elif path and not isinstance(value, bool):
                shown = "none" if value is None else " ".join(str(value).split())
                yield f"{' '.join(path)}: {shown}"
            continue
        if len(path) < _MOST_LEVELS:
            open_ones.extend(reversed(inner))


def _words_of_key(key: str) -> str:
    return _CAMEL.sub(" ", key)


# ---- Tables ---------------------------------------------------------------------------


def _of_tables(text: str) -> Fields | None:
    lines = text.split("\n")
    told: list[str] = []
    reasons: list[str] = []
    at, is_any = 0, False
    while at < len(lines):
        rows = _rows_of_table(lines, at)
        if len(rows) > 1:
            is_any = True
            told += _lines_of_table(rows, reasons)
            at += len(rows)
        else:
            told.append(lines[at])
            at += 1
    return Fields("\n".join(told), "\n".join(reasons) if reasons else None) if is_any else None


def _rows_of_table(lines: Sequence[str], at: int) -> list[list[str]]:
    """The rows of the table that begins at a line; a divider is an empty row."""
    rows: list[list[str]] = []
    while at + len(rows) < len(lines) and "|" in (line := lines[at + len(rows)]):
        bare = line.strip().removeprefix("|").removesuffix("|")
        rows.append([] if _DIVIDER.fullmatch(line) else [cell.strip(" *_`") for cell in bare.split("|")])
    if not rows and at + 1 < len(lines):
        rows = _listed(lines, at)
    return rows


def _listed(lines: Sequence[str], at: int) -> list[list[str]]:
    """A line of names and one of values, separated by commas or tabs, such as "rating,reason" above "6,kind"."""
    names = [cell.strip() for cell in _LISTED.split(lines[at])]
    if not 1 < len(names) < 5 or not all(name and not _has_digit(name) and roles_of(folded(name)) for name in names):
        return []
    values = [cell.strip() for cell in _LISTED.split(lines[at + 1], len(names) - 1)]
    return [names, values] if len(values) == len(names) and any(map(_has_digit, values)) else []


def _lines_of_table(rows: Sequence[Sequence[str]], reasons: list[str]) -> Iterator[str]:
    header: Sequence[str] = () if any(map(_has_digit, rows[0])) else rows[0]
    for row in rows[1:] if header else rows:
        subject = row[0] if row and not _has_digit(row[0]) else ""
        for place, cell in enumerate(row):
            name = header[place] if place < len(header) else ""
            if any(REASON in roles_of(folded(word)) for word in name.split()):
                reasons.append(cell)
            elif _has_digit(cell) and (name or subject):
                yield f"{name} {'' if place == 0 else subject}: {cell}"


def _has_digit(cell: str) -> bool:
    return any(each.isdigit() for each in cell)
