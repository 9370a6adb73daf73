"""Lists described once: each has columns, whose values are shown by pages, commands, CSV and JSON.

The `listing.py` of a package declares its list. app/web/admin/lists.py makes its page, app/cli/lists.py its command.
The database sorts, and a page of a list starts after the last row of the previous page: by key, not by number, so that
rows do not shift meanwhile.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Select, Text, and_, cast, func, literal, or_, select
from sqlalchemy.orm import Session

from app.core.csv_tables import Column
from app.core.errors import Invalid, Phrase, Verbatim, either

R = TypeVar("R", bound=Any)  # a row of a table
_AT_ONCE = 200  # rows of a file
_SORTED_CHARACTERS = 80  # of JSON: the address of the next page has them
_LARGEST = 2**63 - 1
EVERYWHERE, PAGES, COMMANDS, NOWHERE = "everywhere", "pages", "commands", "nowhere"
DESCENDING = "-"  # before the name of a column to sort by


class Reference(NamedTuple):
    """A cell that links to something: its kind, such as "model", from which pages know the address; its key and name.

    `title` is its name on pages, if different. `numbered` follows the name of a job: "round 3", by which programs know
    it.
    """

    kind: str
    key: Any
    name: str | int | Phrase
    title: str | Phrase | None = None
    numbered: Phrase | None = None

    def __str__(self) -> str:
        return str(self.words)

    @property
    def words(self) -> str | int | Phrase:
        """Its name in a sentence."""
        if self.numbered is None:
            return self.name
        return Phrase("%(name)s (%(job)s)", name=Verbatim(self.name), job=self.numbered)


def job_cell(kind: str, number: int, name: str | Phrase | None, numbered: Phrase) -> Reference:
    """A cell that links to a job, shown as its name followed by its number, or as its number alone."""
    if isinstance(name, str) and name:
        return Reference(kind, number, name, numbered=numbered)
    return Reference(kind, number, numbered)


class Done(NamedTuple):
    """A cell with progress: how much is done, and `of` how much if that is known."""

    done: int
    of: int | None

    def __str__(self) -> str:
        return f"{self.done}/{'?' if self.of is None else self.of}"


class State(NamedTuple):
    """A cell with a state in one word; `mark` is its colour on pages: good, bad, warn, open or nothing.

    `title` is its name on pages, if different.
    """

    word: str
    mark: str = ""
    title: Phrase | None = None

    def __str__(self) -> str:
        return self.word


class Labelled(NamedTuple):
    """A cell with a value that has another name on pages, and also in terminals if it has several parts."""

    value: Any
    title: Phrase

    def __str__(self) -> str:
        return str(self.title if isinstance(self.value, dict) else self.value)


class Measured(NamedTuple):
    """A cell with a figure and its interval, with the name and label of its metric."""

    name: str
    label: str
    figure: Any  # with value, low, high and n

    def __str__(self) -> str:
        ends = "" if self.figure.low is None else f" ({self.figure.low:.4g} to {self.figure.high:.4g})"
        return f"{printed(self.figure.value)}{ends}"


class Difference(NamedTuple):
    """A cell with a difference and its interval, each with its sign."""

    figure: Any  # with value, low, high, n and no_interval

    def __str__(self) -> str:
        value, low, high = self.figure[:3]
        ends = f"no interval: {self.figure.no_interval}" if low is None else f"{low:+.2f} to {high:+.2f}"
        return "" if value is None else f"{value:+.2f} ({ends})"


class Scored(NamedTuple):
    """A cell with a score and its standard error; a share is shown in percent."""

    value: float
    stderr: float | None
    is_share: bool

    def __str__(self) -> str:
        times, form, error = (100, ".2f", ".2f") if self.is_share else (1, ".4g", ".2g")
        return f"{times * self.value:{form}}" + ("" if self.stderr is None else f" ± {times * self.stderr:{error}}")


class Dollars(float):
    """A cell with US dollars."""


class Code(str):
    """Text for programs: a path, a hash, a seed."""


class English(str):
    """Text that is English in every language, such as an error message."""


Cell = Any  # one of these, text, a Phrase, a number, an exact amount, a moment, a list of cells, or None


@dataclass(frozen=True, slots=True)
class ListColumn:
    """A column of a list.

    name: in addresses, on the command line, in CSV and JSON.
    title: its heading on pages.
    value: the cell of an item.
    values: the cells of many items, instead of `value`, if they need a database query.
    sort: what the database sorts by.
    notes: what pages show below the cell in smaller type.
    none: what pages show instead of None.
    digits: the format of numbers on pages, as a Babel pattern.
    seen: where it is shown unless columns have been chosen: one of EVERYWHERE and the names below it.
    if_any: whether it is then left out if no line has a value.
    type: of its values in CSV, if neither `sort` nor `numeric` determines it.
    """

    name: str
    title: Phrase
    value: Callable[[Any], Cell] | None = None
    _: KW_ONLY
    values: Callable[[Session, Sequence[Any]], Sequence[Cell]] | None = None
    sort: Any = None
    notes: Callable[[Any], Sequence[Cell]] = lambda _item: ()
    none: Phrase | None = None
    digits: str = "#,##0.######"
    numeric: bool = False
    seen: str = EVERYWHERE
    type: str = ""
    if_any: bool = False

    def cells(self, session: Session, items: Sequence[Any]) -> Sequence[Cell]:
        """The cells of these items."""
        if self.values is not None:
            return self.values(session, items)
        return [self.value(item) for item in items] if self.value is not None else [None] * len(items)


def attribute(column: Any, title: Phrase, name: str = "", **said: Any) -> ListColumn:
    """A column of the list's own table, sorted by that column; it has the table's name for it, unless `name` is
    given.
    """
    return ListColumn(name or column.key, title, lambda item: getattr(item.row, column.key), sort=column, **said)


def computed(
    name: str,
    title: Phrase,
    expression: Any,
    cell: Callable[[Any, Any], Cell] = lambda _item, value: value,
    **said: Any,
) -> ListColumn:
    """A column that the database computes for each row and sorts by.

    cell: the cell for an item and the value of its row.
    """

    def values(session: Session, items: Sequence[Any]) -> list[Cell]:
        if not items:
            return []
        key = type(items[0].row).id
        found: dict[Any, Any] = dict(
            session.execute(select(key, expression).where(key.in_([item.row.id for item in items]))).all()
        )
        return [cell(item, found[item.row.id]) for item in items]

    return ListColumn(name, title, values=values, sort=expression, **said)


class ListOrder(NamedTuple):
    """The order of a list: by a column, or without one the default order, which is the latest first."""

    column: ListColumn | None
    descending: bool

    @property
    def name(self) -> str:
        """Its name in addresses and commands; empty without a column."""
        return "" if self.column is None else f"{DESCENDING if self.descending else ''}{self.column.name}"


class ListRows(NamedTuple, Generic[R]):
    """Rows of a list, and the place after which further ones begin, None if there are none."""

    rows: list[R]
    after: str | None


@dataclass(frozen=True, slots=True)
class Listing(Generic[R]):
    """A list: its name, its table, its columns, and the function that makes the items that columns read from many rows.

    The first column links to the item, and the second is its number or key. `key` is the default sort key, the highest
    first if `descending`; without one it is the number. `start` makes the statement that selects the rows, if the list
    does not have all of the table.
    """

    name: str
    table: type[R]
    columns: Sequence[ListColumn]
    items: Callable[[Session, Sequence[R]], Sequence[Any]]
    key: Any = None
    descending: bool = True
    start: Callable[[], Select[Any]] | None = None

    def column(self, name: str, field: str) -> ListColumn:
        """The column with this name. Raises Invalid, for `field`, if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise Invalid(field, expected=either(column.name for column in self.columns), got=name)

    def usual(self, place: str) -> list[ListColumn]:
        """The columns that pages or commands show unless columns have been chosen."""
        return [column for column in self.columns if column.seen in (EVERYWHERE, place)]

    def order(self, text: str, field: str = "sort") -> ListOrder:
        """The order by the column with this name, reversed if a minus precedes it. Raises Invalid."""
        if not text:
            return ListOrder(None, descending=self.descending)
        column = self.column(text.removeprefix(DESCENDING), field)
        if column.sort is None:
            sorting = either(each.name for each in self.columns if each.sort is not None)
            raise Invalid(field, expected=sorting, got=text)
        return ListOrder(column, text.startswith(DESCENDING))

    def read(
        self,
        session: Session,
        order: ListOrder,
        limit: int | None = None,
        *,
        where: Sequence[ColumnElement[bool]] = (),
        after: str = "",
        offset: int = 0,
    ) -> ListRows[R]:
        """Up to `limit` rows in this order; all rows without a limit.

        `after`: the place after which they begin, as an earlier call returned it. `offset`: the number of rows to skip.
        Raises Invalid for an invalid place.
        """
        tie: Any = self.table.id
        key = order.column.sort if order.column is not None else tie if self.key is None else self.key
        statement = (select(self.table) if self.start is None else self.start()).add_columns(key).where(*where)
        parts: list[list[Any]] = [[]]
        # Rows without a value come last in both directions, read separately, so that an index of values alone serves
        # the others.
        if may_be_none := _may_be_none(key):
            parts = [[key.is_not(None)], [key.is_(None)]]
        if after:
            value, last = _read_key_and_tie(after, key, tie)
            statement = statement.where(_behind(key, tie, order.descending, value, last))
            parts = parts[1:] if may_be_none and value is None else parts
        if may_be_none and (limit is None or offset):
            statement, parts = statement.order_by(None).order_by(key.is_(None)), [[]]
        else:
            statement = statement.order_by(None)
        directed = [each.desc() if order.descending else each.asc() for each in ((key,) if key is tie else (key, tie))]
        statement = statement.order_by(*directed).offset(offset or None)
        found: list[Any] = []
        for part in parts:
            if limit is None or len(found) <= limit:
                some = statement.where(*part)
                found += session.execute(some if limit is None else some.limit(limit + 1 - len(found))).all()
        more = limit is not None and len(found) > limit
        kept = found[:limit]
        if not more or not kept:
            return ListRows([row[0] for row in kept], None)
        value, last = kept[-1][1], kept[-1][0].id
        return ListRows([row[0] for row in kept], str(last) if key is tie else f"{_key_in_address(value)}~{last}")

    def count(self, session: Session, where: Sequence[ColumnElement[bool]]) -> int:
        """The number of rows."""
        chosen = (select(self.table) if self.start is None else self.start()).where(*where).order_by(None)
        return session.scalar(select(func.count()).select_from(chosen.subquery())) or 0

    def lines(
        self,
        session: Session,
        columns: Sequence[ListColumn],
        order: ListOrder,
        where: Sequence[ColumnElement[bool]] = (),
    ) -> Iterator[Mapping[str, Any]]:
        """The plain values of all rows by column, read in batches, for files."""
        after: str | None = ""
        while after is not None:
            rows, after = self.read(session, order, _AT_ONCE, where=where, after=after)
            items = self.items(session, rows)
            yield from self.values(session, columns, items)

    def values(
        self, session: Session, columns: Sequence[ListColumn], items: Sequence[Any]
    ) -> Iterator[Mapping[str, Any]]:
        """The plain values of items by column."""
        for cells in zip(*(column.cells(session, items) for column in columns), strict=True):
            yield {column.name: plain(cell) for column, cell in zip(columns, cells, strict=True)}


@dataclass(frozen=True, slots=True)
class FoundListing(Listing[R]):
    """A list of what is not in one table, for commands: `find` returns all of it, in the default order.

    The `sort` of its columns are functions of an item, and their `type` is given.
    """

    _: KW_ONLY
    find: Callable[[Session], Sequence[R]]

    def read(
        self,
        session: Session,
        order: ListOrder,
        limit: int | None = None,
        *,
        where: Sequence[ColumnElement[bool]] = (),  # noqa: ARG002 - `find` knows what is wanted
        after: str = "",  # noqa: ARG002 - commands skip lines by their number
        offset: int = 0,
    ) -> ListRows[R]:
        """Up to `limit` items in this order, after `offset` others."""
        found = [*self.find(session)]
        if order.column is not None:
            found.sort(key=order.column.sort, reverse=order.descending)
        end = len(found) if limit is None else offset + limit
        return ListRows(found[offset:end], str(end) if end < len(found) else None)


def of_other(column: Any, condition: ColumnElement[bool]) -> Any:
    """A column of the row in another table that meets the condition, for sorting."""
    return select(column).where(condition).scalar_subquery()


def start_of_json(column: Any) -> Any:
    """The beginning of a JSON column as text, for sorting; an empty list has no value."""
    return func.nullif(func.substr(cast(column, Text), 1, _SORTED_CHARACTERS), "[]", type_=Text)


def csv_columns(columns: Sequence[ListColumn]) -> list[Column]:
    """The same columns for CSV, whose rows are `Listing.lines`."""

    def value_of(name: str) -> Callable[[Mapping[str, Any]], Any]:
        return lambda line: "; ".join(map(str, line[name])) if isinstance(line[name], list) else line[name]

    return [
        Column(column.name, kind, f"{column.title}.", _VALUES[kind], value_of(column.name))
        for column in columns
        for kind in (_type_in_csv(column),)
    ]


_VALUES = {
    "number": "a number", "boolean": "true | false", "time": "ISO 8601 in UTC, 2026-01-31T12:00:00.000Z",
    "text": "text, of several parts with semicolons between",
}  # fmt: skip


def _type_in_csv(column: ListColumn) -> str:
    """The type of a column's values: time or boolean if its sort expression has that type, else number or text."""
    if column.type:
        return column.type
    try:
        kind = None if column.sort is None else _python_type(column.sort)
    except NotImplementedError:  # an expression of unknown type
        kind = None
    usual = "number" if column.numeric else "text"
    return "time" if kind is datetime else "boolean" if kind is bool else usual


def plain(cell: Cell) -> Any:
    """A cell as JSON; a datetime stays one."""
    match cell:
        case Reference():
            return plain(cell.numbered or cell.name)
        case Done():
            return cell.done
        case State():
            return cell.word
        case Labelled():
            return cell.value
        case Measured() | Difference():
            return cell.figure.value
        case Scored():
            return {"value": cell.value, "stderr": cell.stderr}
        case Dollars():
            return float(cell)
        case Phrase() | Code() | Decimal():
            return str(cell)
        case list() | tuple():
            return [plain(each) for each in cell]
    return cell


def printed(cell: Cell) -> str:
    """A cell for a terminal."""
    match cell:
        case None:
            return ""
        case datetime():
            return f"{cell:%Y-%m-%d %H:%M}"
        case bool():
            return "yes" if cell else "no"
        case float():
            return f"{cell:.4g}"
        case dict():
            return json.dumps(cell)
        case list() | tuple() if not hasattr(cell, "_fields"):
            return ", ".join(map(printed, cell))
    return " ".join(str(cell).split())


# ---- Places in an order ------------------------------------------------------------


def _may_be_none(key: Any) -> bool:
    return bool(getattr(key, "nullable", True))


def _behind(key: Any, tie: Any, descending: bool, value: Any, last: Any) -> ColumnElement[bool]:
    """Whether a row comes after the one with this key and tie, for a WHERE."""

    def further(column: Any, than: Any) -> ColumnElement[bool]:
        bound = literal(than, column.type) if isinstance(than, bool) else than  # otherwise taken for SQL's TRUE
        found: ColumnElement[bool] = column < bound if descending else column > bound
        return found

    if key is tie:
        return further(tie, last)
    if value is None:
        return and_(key.is_(None), further(tie, last))
    behind = or_(further(key, value), and_(key == value, further(tie, last)))
    return or_(behind, key.is_(None)) if _may_be_none(key) else behind


def _key_in_address(value: Any) -> str:
    """The key of a place for an address: text begins with `=`, which tells empty text from no value."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return str(int(value))
    return "" if value is None else f"={value}" if isinstance(value, str) else str(value)


def _read_key_and_tie(text: str, key: Any, tie: Any) -> tuple[Any, Any]:
    """The key and the tie that `Listing.read` wrote into an address: `KEY~TIE`, or the tie alone. Raises Invalid."""
    value, _, last = text.rpartition("~")
    try:
        if (key is tie) == ("~" in text):
            raise ValueError(text)
        return _read_sort_value(value, _python_type(key)) if value else None, _read_sort_value(last, _python_type(tie))
    except (ValueError, OverflowError):
        raise Invalid("before", expected=Phrase("what the link to the next page holds"), got=text) from None


def _python_type(column: Any) -> type:
    found: type = getattr(column.type, "impl", column.type).python_type
    return found


def _read_sort_value(text: str, kind: type) -> Any:
    if kind is datetime:
        at = datetime.fromisoformat(text.replace(" ", "+"))
        if at.tzinfo is None:
            raise ValueError(text)
        return at.astimezone(UTC)
    if kind is str:
        if not text.isprintable():
            raise ValueError(text)
        return text.removeprefix("=")
    if kind is bool:
        return bool(int(text))
    number = float(text) if kind is float else int(text)
    if not (text.isascii() and math.isfinite(number) and abs(number) <= _LARGEST):
        raise ValueError(text)
    return number
