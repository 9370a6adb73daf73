"""Lists of rows that are read during iteration: by cursor, or from an export."""

import csv
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

from parlor_client.connection import Connection, ConnectionLost, lines_of, wait_to_ask_again
from parlor_client.errors import ParlorError

_PAGE = 200  # items, the most on a page
_LONGEST_CELL = 2**31 - 1  # characters: prompts are longer than the default limit of csv
Row = TypeVar("Row", covariant=True)


class Table(Generic[Row]):
    """Rows from a Parlor. Each iteration reads them again, page by page."""

    def __init__(self, read: Callable[[], Iterator[Row]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[Row]:
        return self._read()

    def frame(self) -> Any:
        """All rows as a pandas DataFrame, in which numbers are numbers and times are text.

        Raises ParlorError where pandas is not installed; `list(...)` then gives the rows as dictionaries.
        """
        try:
            pandas = import_module("pandas")
        except ImportError:
            remedy = "pip install pandas, or take list(…) of it for dictionaries"
            raise ParlorError(f"frame: expected pandas to be installed, got none; {remedy}") from None
        return pandas.DataFrame(list(self))


def pages(connection: Connection, path: str, params: Mapping[str, Any]) -> Iterator[Any]:
    """The items of a list, page after page. Raises Refused, NotReachable."""
    cursor: str | None = None
    while True:
        page = connection.get(path, {**params, "limit": _PAGE, "cursor": cursor})
        yield from page["items"]
        cursor = page["next"]
        if not page["more"]:
            return


def exported(connection: Connection, name: str, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of an export, with values parsed by its codebook; an empty cell is None.

    Raises Refused, and NotReachable also when the connection breaks off partway.
    """
    types = {row["column"]: row["type"] for row in _csv_rows(connection, "codebook", {}) if row["table"] == name}
    for row in _csv_rows(connection, name, params):
        yield {column: _typed_cell_value(types.get(column, "text"), text) for column, text in row.items()}


def _csv_rows(connection: Connection, name: str, params: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The rows of an export, requested again as long as none has arrived. Raises Refused, NotReachable."""
    csv.field_size_limit(_LONGEST_CELL)
    deadline, begun = time.monotonic() + connection.patience, False
    while True:
        try:
            with connection.stream(f"/exports/{name}.csv", params) as response:
                for row in _rows_by_column(csv.reader(lines_of(response))):
                    begun = True
                    yield row
            return
        except ConnectionLost as error:
            wait_to_ask_again(error, 0.0 if begun else deadline, "the rows have broken off, read them anew")


def _rows_by_column(lines: Iterable[list[str]]) -> Iterator[dict[str, str]]:
    heading: list[str] | None = None
    for line in lines:
        if heading is None:
            heading = line
        else:
            yield dict(zip(heading, line, strict=True))


def _typed_cell_value(kind: str, text: str) -> Any:
    if text == "":
        return None
    if kind == "json":
        return json.loads(text)
    if kind == "integer":
        return int(text)
    if kind == "number":
        return float(text)
    return text == "true" if kind == "boolean" else text
