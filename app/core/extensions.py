"""The database, not yet bound to an app, and its sessions for reading and writing, which every process needs.

`reading()` and `writing()` give a session. On SQLite a writing transaction begins with BEGIN IMMEDIATE, so that two
processes never both believe that they may write; a reading one begins normally and never waits. Services take a session
and never commit; the edge that opened it does, once.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import structlog
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Connection, Engine, MetaData, create_engine, event, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection
from sqlalchemy.orm import DeclarativeBase, Session

from app.core import write_priority

READ_ONLY = {"parlor_read_only": True}
BUSY_SECONDS = 10
_LOST_A_RACE = ("40001", "40P01")  # PostgreSQL's serialization_failure and deadlock_detected
_LOCK_NOT_AVAILABLE, _DISK_FULL = "55P03", "53100"
_SQLITE_AWAY = (
    sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOTADB,
)  # fmt: skip
_MOST_RACES = 20
DATABASE_AWAY = (OperationalError, InterfaceError, NoConnection)  # what a transaction raises while `is_away` holds
MOST_SECONDS_AWAY = 60.0  # how long background work waits for an unavailable database
_AWAY = 1.0  # seconds between retries while a database is unavailable

# For libpq, which by default notices a database's disappearance from the network after a quarter of an hour, or never.
_OF_CONNECTIONS = {
    "connect_timeout": 10,  # seconds, as the next two
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,  # milliseconds
}

# Tracebacks show statements without their values, which may be private links or what somebody wrote.
ENGINE_OPTIONS: dict[str, Any] = {"hide_parameters": True}

T = TypeVar("T")
log = structlog.get_logger()


class _Base(DeclarativeBase):
    # SQLite can only alter a constraint that has a name.
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


db = SQLAlchemy(model_class=_Base)
if TYPE_CHECKING:  # a type checker cannot follow the class that Flask-SQLAlchemy makes
    Model = _Base
else:
    Model = db.Model


def open_engine(url: str | URL, **options: Any) -> Engine:
    """An engine besides the app's; `options` are passed to `create_engine`."""
    return create_engine(url, **ENGINE_OPTIONS, **options)


@contextmanager
def reading(engine: Engine | None = None) -> Iterator[Session]:
    """A session that only reads. Needs an app context unless an engine is given."""
    with Session((engine or db.engine).execution_options(**READ_ONLY)) as session:
        yield session


@contextmanager
def writing(engine: Engine | None = None, *, patience: float | None = None) -> Iterator[Session]:
    """A session that commits when its block ends and rolls back when it raises.

    With `patience`, the transaction begins before the block does, and waits this many seconds for the locks of others,
    instead of BUSY_SECONDS on SQLite and forever on PostgreSQL.
    """
    if patience is None:
        with Session(engine or db.engine) as session, session.begin():
            yield session
        return
    milliseconds = max(1, int(1000 * patience))
    with (engine or db.engine).connect() as connection:
        if isinstance(driver := connection.connection.driver_connection, sqlite3.Connection):
            driver.execute(f"PRAGMA busy_timeout={milliseconds}")
        with Session(connection) as session, session.begin():
            session.connection()  # BEGIN, which takes SQLite's lock
            if connection.dialect.name == "postgresql":
                session.execute(text(f"SET LOCAL lock_timeout = {milliseconds}"))
            yield session


def is_locked(error: DBAPIError) -> bool:
    """Whether a transaction failed because another one held a lock for longer than it was to wait."""
    if isinstance(error.orig, sqlite3.Error):
        return _sqlite_code(error.orig) == sqlite3.SQLITE_BUSY
    return getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE


def is_away(error: Exception) -> bool:
    """Whether the database is unavailable for a reason outside of Parlor."""
    if isinstance(error, NoConnection | InterfaceError):
        return True
    if isinstance(original := getattr(error, "orig", None), sqlite3.Error):
        # For a file that is empty because somebody removed the old one, SQLite gives the code of any wrong statement.
        return _sqlite_code(original) in _SQLITE_AWAY or str(original).startswith("no such table")
    return isinstance(error, OperationalError) or (isinstance(error, DBAPIError) and error.connection_invalidated)


def is_full(error: Exception) -> bool:
    """Whether the disk of the database is full, which waiting does not change."""
    original = getattr(error, "orig", None)
    if isinstance(original, sqlite3.Error):
        return _sqlite_code(original) == sqlite3.SQLITE_FULL
    return getattr(original, "sqlstate", None) == _DISK_FULL


def reason_of(error: Exception) -> str:
    """The database's own message, on one line."""
    return " ".join(str(getattr(error, "orig", None) or error).split())


def _sqlite_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def lost_race(error: Exception) -> bool:
    """Whether a transaction failed because another one was faster, or because of a deadlock.

    A retry may well succeed.
    """
    if isinstance(error, IntegrityError):
        return True
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in _LOST_A_RACE


def lock_tables(session: Session, *names: str) -> None:
    """Keep others from writing to these tables during this transaction; on SQLite nobody else can write meanwhile
    anyway.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text(f"LOCK TABLE {', '.join(names)} IN SHARE ROW EXCLUSIVE MODE"))


class Transact(Protocol):
    """Runs `work(session)` in a transaction of its own and returns its result."""

    def __call__(self, work: Callable[[Session], T], /) -> T: ...


def sync_commits(database: Engine) -> None:
    """Flush all commits to disk, as PostgreSQL does with each commit and SQLite does later."""
    name = database.url.database
    if database.dialect.name == "sqlite" and name and (written := Path(f"{name}-wal")).exists():
        with written.open("rb") as file:
            os.fsync(file.fileno())


def transact(database: Engine) -> Transact:
    """The function for services that take several transactions; each waits as `transact_with_retry` does."""
    return lambda work: transact_with_retry(database, work, MOST_SECONDS_AWAY)


def in_turn(transact: Transact, work: Callable[[Session], T]) -> T:
    """Run one of many successive transactions, and pause after it so that others get the database's lock."""
    began = time.monotonic()
    done = transact(work)
    time.sleep(time.monotonic() - began)
    return done


def transact_with_retry(database: Engine, work: Callable[[Session], T], seconds: float) -> T:
    """The result of `work(session)` in a transaction, which is retried if another one was faster, or until the database
    is available again, for at most `seconds`. Raises the error of the last try.
    """
    deadline = time.monotonic() + seconds
    races = 0
    while True:
        try:
            with writing(database) as session:
                return work(session)
        except (DBAPIError, NoConnection) as error:
            second = lost_race(error)
            races += second
            if races > _MOST_RACES or not (second or isinstance(error, DATABASE_AWAY)):
                raise
            if time.monotonic() > deadline:
                raise
            if not second:
                log.warning("the database is away, trying again", error=reason_of(error))
                time.sleep(_AWAY)


@event.listens_for(Engine, "do_connect")
def _notice_a_dead_network(dialect: Any, _record: Any, _args: Any, options: dict[str, Any]) -> None:
    if dialect.name == "postgresql":
        for name, value in _OF_CONNECTIONS.items():
            options.setdefault(name, value)


@event.listens_for(Engine, "connect")
def _set_up_sqlite(connection: Any, _record: Any) -> None:
    if not isinstance(connection, sqlite3.Connection):
        return
    connection.isolation_level = None  # avoids the driver's own, late BEGIN
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", f"busy_timeout={BUSY_SECONDS * 1000}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
    connection.create_function("bytes_of_hex", 1, _bytes_of_hex, deterministic=True)


@event.listens_for(Engine, "connect")
def _set_up_postgresql(connection: Any, _record: Any) -> None:
    if isinstance(connection, sqlite3.Connection):
        return
    # With a million matches, PostgreSQL expects a page to take long and spends half a second compiling its statements,
    # to read some thousand rows in a tenth of that.
    before, connection.autocommit = connection.autocommit, True
    connection.execute("SET jit = off")
    connection.autocommit = before


def _bytes_of_hex(value: str | None) -> bytes | None:
    r"""The bytes for a text like \x01ff, as PostgreSQL reads it; SQLite can do this only from 3.41 on."""
    return None if value is None else bytes.fromhex(value[2:])


@event.listens_for(Engine, "begin")
def _begin_sqlite(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        if connection.get_execution_options().get("parlor_read_only"):
            connection.exec_driver_sql("BEGIN")
            return
        with write_priority.waiting(connection.engine.url.database):
            connection.exec_driver_sql("BEGIN IMMEDIATE")
