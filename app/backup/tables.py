"""The rows of a database as an archive holds them: read in one snapshot, and written into empty tables.

The tables are those in the database, not those in the code: an archive of an older version is loaded into that
version's tables, which are migrated afterwards.
"""

import base64
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from functools import partial
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    ColumnElement,
    Connection,
    Date,
    DateTime,
    Engine,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    func,
    insert,
    select,
    text,
)
from sqlalchemy.types import TypeEngine

from app.core.errors import Invalid
from app.core.extensions import READ_ONLY
from app.models.types import Json, JsonColumn

VERSION_TABLE = "alembic_version"
_TRANSIENT = ("lease",)  # who currently runs what
_INDEX = "match_text_index"  # and names that begin with it: SQLite's search tables, which follow `match_text`
_OF_THIS_SERVER = {"match": ("inserted_in",)}  # columns without meaning in another database
_ROWS_AT_ONCE = 2000
_PLAIN: Sequence[tuple[type[TypeEngine[Any]], tuple[type, ...]]] = (
    (Boolean, (bool,)), (Integer, (int,)), (Float, (int, float)), (String, (str,)),
)  # fmt: skip


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """A connection that sees the database as of its first query, whatever is written meanwhile."""
    options: dict[str, Any] = dict(READ_ONLY)
    if engine.dialect.name == "postgresql":
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with engine.connect().execution_options(**options) as connection:
        yield connection


def tables_of(connection: Connection) -> list[Table]:
    """The tables of a database, each after those that it refers to."""
    found = MetaData()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Skipped unsupported reflection of expression-based index")
        found.reflect(connection, only=lambda name, _: not name.startswith(_INDEX))
    for table in found.tables.values():
        for column in table.columns:
            if isinstance(column.type, JSON):
                column.type = Json  # stores None as NULL, as in app/models
    return [table for table in found.sorted_tables if table.name != VERSION_TABLE]


def backed_up(connection: Connection) -> list[Table]:
    """The tables whose rows belong in a backup."""
    return [table for table in tables_of(connection) if table.name not in _TRANSIENT]


def backed_up_columns(table: Table) -> tuple[str, ...]:
    """The columns of a table that belong in a backup."""
    return tuple(column.name for column in table.columns if column.name not in _OF_THIS_SERVER.get(table.name, ()))


def revision_of(connection: Connection) -> str | None:
    """The version of the tables; None where there are none."""
    if not connection.dialect.has_table(connection, VERSION_TABLE):
        return None
    found: str | None = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608
    return found


def rows_of(
    connection: Connection,
    table: Table,
    columns: Iterable[str] | None = None,
    which: ColumnElement[bool] | None = None,
) -> Iterator[list[Any]]:
    """The rows of a table by its key, as JSON values: all that a backup holds, or some rows and `columns`."""
    names = backed_up_columns(table) if columns is None else columns
    wanted = select(*(table.columns[name] for name in names)).order_by(*table.primary_key)
    if which is not None:
        wanted = wanted.where(which)
    found = connection.execution_options(stream_results=True).execute(wanted)
    for row in found.yield_per(_ROWS_AT_ONCE):
        yield [_json_value(value) for value in row]


def _json_value(value: Any) -> Any:
    if isinstance(value, date):  # a datetime, too
        return value.isoformat()
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    return value


def load(
    connection: Connection, table: Table, columns: tuple[str, ...], rows: Iterable[Sequence[Sequence[Any]]]
) -> int:
    """Insert rows into a table, a few thousand at a time; returns how many. Raises Invalid if one does not fit."""
    count = 0
    for values in read_rows(table, columns, rows):
        connection.execute(insert(table), values)
        count += len(values)
    return count


def read_rows(
    table: Table, columns: tuple[str, ...], rows: Iterable[Sequence[Sequence[Any]]]
) -> Iterator[list[dict[str, Any]]]:
    """Rows as values by column, a few thousand at a time. Raises Invalid for what does not fit the table."""
    known = table.columns.keys()
    if unknown := sorted({*columns} - {*known}) or [name for name in columns if columns.count(name) > 1]:
        raise Invalid("backup", expected=f"columns of {table.name}, each once", got=unknown[0])
    readers = [_column_value_reader(table.columns[name].type) for name in columns]
    for part in rows:
        yield [
            {
                name: None if value is None else _read_value(read, value, table.name, name)
                for name, read, value in zip(columns, readers, row, strict=True)
            }
            for row in part
        ]


def _read_value(read: Callable[[Any], Any], value: Any, table: str, column: str) -> Any:
    try:
        return read(value)
    except (ValueError, TypeError):
        raise Invalid("backup", expected=f"values that fit {table}.{column}", got=value) from None


def _column_value_reader(kind: TypeEngine[Any]) -> Callable[[Any], Any]:
    """A converter from a JSON value to its column's. Raises ValueError or TypeError for anything else."""
    if isinstance(kind, DateTime):
        return datetime.fromisoformat
    if isinstance(kind, Date):
        return date.fromisoformat
    if isinstance(kind, LargeBinary):
        return partial(base64.b64decode, validate=True)
    if isinstance(kind, JSON | JsonColumn):
        return lambda value: value
    for column, plain in _PLAIN:
        if isinstance(kind, column):
            return partial(_of_type, plain)
    return partial(_of_type, (str, int, float))


def _of_type(kinds: tuple[type, ...], value: Any) -> Any:
    # SQLite would accept text as a number, and Python counts a bool as one.
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise TypeError
    return value


def restart_numbers(connection: Connection, tables: Iterable[Table]) -> None:
    """Advance PostgreSQL's sequences past the loaded ids; SQLite does so itself."""
    if connection.dialect.name != "postgresql":
        return
    for table in tables:
        for column in table.primary_key:
            sequence = connection.scalar(select(func.pg_get_serial_sequence(f'"{table.name}"', column.name)))
            if sequence is not None:
                most = connection.scalar(select(func.max(column)))
                connection.execute(select(func.setval(sequence, most or 1, most is not None)))
