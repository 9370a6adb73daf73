"""Reads a file of rows value by value: JSON lines or a JSON array, optionally compressed with gzip.

Memory holds one row, never the whole file.
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from app.core.errors import Invalid, Phrase, Verbatim
from app.datasets.json_list import LONGEST, read_items, repeated_error
from training.json_rows import RepeatedField, parse_json

_MAGIC = b"\x1f\x8b"  # the first bytes of a gzip file
_BOM = b"\xef\xbb\xbf"
_HEAD = 1 << 12  # bytes searched for a file's first character
_WHAT = "JSON lines or a JSON array"


@dataclass(frozen=True, slots=True)
class RawRow:
    """A value of a file, or the error in its place. `number` counts from 1: lines of JSON lines, items of an array."""

    number: int
    value: Any = None
    error: Invalid | None = None


def read_rows(file: BinaryIO, name: str, most: int | None = None) -> Iterator[RawRow]:
    """The values of a file that must be seekable to its beginning; `name` is its name in errors.

    `most` is the maximum of unpacked bytes. A line that is not JSON is an error of its row. Raises Invalid for
    everything that ends the reading: an array that breaks off, a damaged or too large file.
    """
    file.seek(0)
    packed = file.read(len(_MAGIC)) == _MAGIC
    file.seek(0)
    plain = cast(BinaryIO, gzip.GzipFile(fileobj=file, mode="rb")) if packed else file
    try:
        head = plain.read(_HEAD).removeprefix(_BOM).lstrip()
        plain.seek(0)
        limited = _Limited(plain, name, most)
        if head.startswith(b"["):
            values = read_items(cast(BinaryIO, limited), name, _WHAT, "row", first=1)
            yield from (
                RawRow(number, error=value) if isinstance(value, Invalid) else RawRow(number, value)
                for number, value in enumerate(values, 1)
            )
        else:
            yield from _jsonl_rows(limited)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise Invalid(None, expected=Phrase("a whole file"), got=Phrase("a damaged gzip file"), subject=name) from None


def _jsonl_rows(file: "_Limited") -> Iterator[RawRow]:
    number = 0
    while line := file.readline(LONGEST):
        number += 1
        if number == 1:
            line = line.removeprefix(_BOM)
        if len(line) == LONGEST and not line.endswith(b"\n"):
            while (rest := file.readline(LONGEST)) and not rest.endswith(b"\n"):
                pass
            expected = Phrase("at most %(most)s MiB in a line", most=LONGEST >> 20)
            error = Invalid(None, expected=expected, got=Phrase("more"))
            yield RawRow(number, error=error)
        elif line.strip():
            yield read_row(number, line)


def read_row(number: int, line: bytes) -> RawRow:
    """The value of a line of JSON lines, or the error in its place."""
    try:
        return RawRow(number, parse_json(line.decode()))
    except RepeatedField as repeated:
        return RawRow(number, error=repeated_error(str(repeated)))
    except UnicodeDecodeError:
        got = Phrase("bytes that are not UTF-8")
    except json.JSONDecodeError as error:
        got = Phrase("invalid JSON at column %(column)s", column=error.colno)
    except RecursionError:
        got = Phrase("lists within lists without end")
    except ValueError:  # Python reads no whole number of more than 4,300 digits
        got = Phrase("a number with thousands of digits")
    return RawRow(number, error=Invalid(None, expected=Phrase("JSON"), got=got))


class _Limited:
    """A file that is read only up to its allowed size."""

    def __init__(self, file: BinaryIO, name: str, most: int | None) -> None:
        self._file = file
        self._name = name
        self._most = most
        self._seen = 0

    def read(self, size: int) -> bytes:
        return self._count_bytes(self._file.read(size))

    def readline(self, size: int) -> bytes:
        return self._count_bytes(self._file.readline(size))

    def _count_bytes(self, data: bytes) -> bytes:
        self._seen += len(data)
        if self._most is not None and self._seen > self._most:
            raise too_large(self._most, self._name)
        return data


def too_large(most: int, name: str | None = None) -> Invalid:
    """The refusal of a file that is larger than a page accepts, in bytes."""
    return Invalid(
        "file",
        expected=Phrase("at most %(most)s MB", most=f"{most / 1e6:g}"),
        got=Phrase("a larger file"),
        remedy=Phrase("`flask dataset import` takes larger ones"),
        subject=name and Verbatim(name),
    )
