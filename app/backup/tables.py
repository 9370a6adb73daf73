"""The rows of a database as an archive holds them: read in one snapshot, and written into empty tables.

The tables are those that the database has, not those of the code: an archive of an older version is loaded into the
tables of that version, which are migrated afterwards.
"""

import base64
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import (
    JSON,
    Connection,
    DateTime,
    Engine,
    LargeBinary,
    MetaData,
    Table,
    func,
    insert,
    select,
    text,
)

from app.extensions import READ_ONLY
from app.models.types import Json

VERSION_TABLE = "alembic_version"
_TRANSIENT = ("lease",)  # who runs what just now
_ROWS_AT_ONCE = 2000


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """A connection that sees the database as it is at its first question, whatever is written meanwhile."""
    options: dict[str, Any] = dict(READ_ONLY)
    if engine.dialect.name == "postgresql":
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with engine.connect().execution_options(**options) as connection:
        yield connection


def tables_of(connection: Connection) -> list[Table]:
    """The tables that a database has, each after those that it refers to."""
    found = MetaData()
    found.reflect(connection)
    for table in found.tables.values():
        for column in table.columns:
            if isinstance(column.type, JSON):
                column.type = Json  # for which nothing is NULL, as in app/models
    return [table for table in found.sorted_tables if table.name != VERSION_TABLE]


def backed_up(connection: Connection) -> list[Table]:
    """The tables whose rows belong into a backup."""
    return [table for table in tables_of(connection) if table.name not in _TRANSIENT]


def revision_of(connection: Connection) -> str | None:
    """The version of the tables; None where there are none."""
    if not connection.dialect.has_table(connection, VERSION_TABLE):
        return None
    found: str | None = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608
    return found


def rows_of(connection: Connection, table: Table) -> Iterator[list[Any]]:
    """The rows of a table by its key, as JSON takes them."""
    found = connection.execution_options(stream_results=True).execute(select(table).order_by(*table.primary_key))
    for row in found.yield_per(_ROWS_AT_ONCE):
        yield [_plain(value) for value in row]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    return value


def load(connection: Connection, table: Table, columns: tuple[str, ...], rows: Iterable[list[Any]]) -> int:
    """Insert rows into an empty table; returns how many."""
    readers = [_reader(table.columns[name].type) for name in columns]
    count = 0
    found = iter(rows)
    while part := list(islice(found, _ROWS_AT_ONCE)):
        values = [
            {
                name: None if value is None else read(value)
                for name, read, value in zip(columns, readers, row, strict=True)
            }
            for row in part
        ]
        connection.execute(insert(table), values)
        count += len(part)
    return count


def _reader(kind: Any) -> Any:
    if isinstance(kind, DateTime):
        return datetime.fromisoformat
    if isinstance(kind, LargeBinary):
        return base64.b64decode
    return lambda value: value


def restart_numbers(connection: Connection, tables: Iterable[Table]) -> None:
    """Let the numbers that PostgreSQL gives go on after those that were loaded; SQLite looks by itself."""
    if connection.dialect.name != "postgresql":
        return
    for table in tables:
        for column in table.primary_key:
            sequence = connection.scalar(select(func.pg_get_serial_sequence(f'"{table.name}"', column.name)))
            if sequence is not None:
                most = connection.scalar(select(func.max(column)))
                connection.execute(select(func.setval(sequence, most or 1, most is not None)))
