"""Reads a JSON list of objects item by item, so that memory holds one item and never the list."""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from app.core.errors import Invalid, Phrase, Verbatim, shown
from app.core.files import file_problem
from training.json_rows import repeated_field

CHUNK = 1 << 16  # bytes
LONGEST = 1 << 25  # characters of one item
_SPACE = re.compile(r"[ \t\n\r]*")


def read_list(path: Path, what: str, item: str) -> Iterator[Any]:
    """The items of a JSON list in a file; `item` is the name of an item in refusals.

    Raises Invalid, which names the file, the item with the error, the expectation and the given value.
    """
    try:
        with path.open("rb") as file:
            for number, value in enumerate(read_items(file, str(path), what, item)):
                if isinstance(value, Invalid):
                    raise value.at(f"{path}, {item} {number}")
                yield value
    except OSError as error:
        raise Invalid(None, expected=what, got=Verbatim(file_problem(error)), subject=path) from None


def read_items(file: BinaryIO, where: str, what: str, item: str, first: int = 0) -> Iterator[Any]:
    """The items of a JSON list in an open file, which errors call `where`; `first` is the number of the first item.

    An item in which an object names a field twice is replaced by the Invalid that says so, so that the reader can
    continue after it. Otherwise raises Invalid as `read_list` does, and OSError.
    """
    yield from _Reader(file, where, what, item).items(first)


def repeated_error(what: str) -> Invalid:
    """The refusal of an object that names a field twice."""
    return Invalid(None, expected=Phrase("each field of an object once"), got=Verbatim(what))


def fields_of(raw: Any) -> Any:
    """A value that was given instead of an object with certain fields, for a refusal: the names of an object's own
    fields.
    """
    return Verbatim(f"{{{shown(', '.join(raw))[1:-1]}}}") if isinstance(raw, dict) else raw


class _Reader:
    """A window of the file's text that advances as items are taken."""

    def __init__(self, file: BinaryIO, where: str, what: str, item: str) -> None:
        self._file = file
        self._decoder = json.JSONDecoder(object_pairs_hook=self._object_of)
        self._repeated: str | None = None  # a field that an object in the item repeats
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._where, self._what, self._item = where, what, item
        self._text = ""
        self._at = 0
        self._ended = False

    def items(self, first: int = 0) -> Iterator[Any]:
        opening = self._next_mark()
        if opening != "[":
            raise Invalid(None, expected=self._what, got=Verbatim(self._quote(opening)), subject=self._where)
        self._at += 1
        mark = self._next_mark()
        number = first
        while mark != "]":
            value = self._take_item(number)
            yield value if self._repeated is None else repeated_error(f"{self._repeated!r} twice")
            mark = self._next_mark()
            if mark not in (",", "]"):
                place = f"{self._where}, after {self._item} {number}"
                raise Invalid(
                    None, expected="a comma or the end of the list", got=Verbatim(self._quote(mark)), subject=place
                )
            self._at += mark == ","
            number += 1
        self._at += 1
        self._check_nothing_follows()

    def _take_item(self, number: int) -> Any:
        """The item that begins here. If the end of the window cuts it off, it is read again with twice as much text."""
        self._next_mark()
        while True:
            self._repeated = None
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._ended or len(self._text) - self._at > LONGEST:
                    got = "the end of the file" if self._ended and error.pos >= len(self._text) else error.msg.lower()
                    raise Invalid(
                        None, expected="an object", got=Verbatim(got), subject=f"{self._where}, {self._item} {number}"
                    ) from None
            except (RecursionError, ValueError) as error:
                deep = isinstance(error, RecursionError)
                got = "lists within lists without end" if deep else "a number with thousands of digits"
                place = f"{self._where}, {self._item} {number}"
                raise Invalid(None, expected="an object", got=Verbatim(got), subject=place) from None
            else:
                # A number at the end of the window may continue beyond it.
                if end < len(self._text) or self._ended:
                    self._at = end
                    return value
            self._read_more(max(CHUNK, len(self._text) - self._at))

    def _object_of(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            self._repeated = repeated_field(pairs)
        return found

    def _next_mark(self) -> str:
        """The next character that is not a space, without consuming it; empty at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read_more(CHUNK)

    def _check_nothing_follows(self) -> None:
        if rest := self._next_mark():
            raise Invalid(None, expected="nothing after the list", got=Verbatim(self._quote(rest)), subject=self._where)

    def _read_more(self, size: int) -> None:
        data = self._file.read(size)
        self._ended = not data
        try:
            self._text = self._text[self._at :] + self._decode.decode(data, final=self._ended)
        except UnicodeDecodeError:
            raise Invalid(
                None, expected=self._what, got=Verbatim("bytes that are not UTF-8"), subject=self._where
            ) from None
        self._at = 0

    def _quote(self, mark: str) -> str:
        return shown(self._text[self._at : self._at + 20]) if mark else "the end of the file"
