"""The database, not yet bound to an app, and the two ways to talk to it: what every process needs.

`reading()` and `writing()` give a session. On SQLite a writing transaction begins with BEGIN IMMEDIATE, so that two
processes never both believe that they may write; a reading one begins plainly and waits for nobody.
Services take a session and never commit; the edge that opened it does, once.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Connection, Engine, MetaData, event
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError
from sqlalchemy.orm import DeclarativeBase, Session

READ_ONLY = {"parlor_read_only": True}
BUSY_SECONDS = 10
_LOST_A_RACE = ("40001", "40P01")  # PostgreSQL's serialization_failure and deadlock_detected
_MOST_RACES = 20
_AWAY = 1.0  # seconds between two tries while a database is away

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


@contextmanager
def reading(engine: Engine | None = None) -> Iterator[Session]:
    """A session that only reads. Needs an app context unless it is given an engine."""
    with Session((engine or db.engine).execution_options(**READ_ONLY)) as session:
        yield session


@contextmanager
def writing(engine: Engine | None = None) -> Iterator[Session]:
    """A session that commits when its block ends and rolls back when it raises."""
    with Session(engine or db.engine) as session, session.begin():
        yield session


def came_second(error: Exception) -> bool:
    """Whether a transaction failed because another one was faster, or waited for it while it waited for that one.

    What it wanted may well succeed on what is there now.
    """
    if isinstance(error, IntegrityError):
        return True
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in _LOST_A_RACE


def insist(database: Engine, work: Callable[[Session], T], seconds: float) -> T:
    """What `work(session)` returns, done in a transaction: again if somebody was faster, and until the database is back
    if it is away, for at most so many seconds. Raises what the last try raised.
    """
    deadline = time.monotonic() + seconds
    races = 0
    while True:
        try:
            with writing(database) as session:
                return work(session)
        except DBAPIError as error:
            second = came_second(error)
            races += second
            if races > _MOST_RACES or not (second or isinstance(error, OperationalError)):
                raise
            if time.monotonic() > deadline:
                raise
            if not second:
                log.warning("the database is away, trying again", error=str(error.orig))
                time.sleep(_AWAY)


@event.listens_for(Engine, "connect")
def _set_up_sqlite(connection: Any, _record: Any) -> None:
    if not isinstance(connection, sqlite3.Connection):
        return
    connection.isolation_level = None  # the driver's own, late BEGIN is not wanted
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", f"busy_timeout={BUSY_SECONDS * 1000}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


@event.listens_for(Engine, "begin")
def _begin_sqlite(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        read_only = connection.get_execution_options().get("parlor_read_only")
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")
