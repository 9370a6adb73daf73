"""Unbound extensions, and the two ways to talk to the database.

`reading()` and `writing()` give a session. On SQLite a writing transaction begins with BEGIN IMMEDIATE, so that two
processes never both believe that they may write; a reading one begins plainly and waits for nobody.
Services take a session and never commit; the edge that opened it does, once.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flask_limiter import Limiter
from flask_limiter.util import get_remote_address
from flask_login import LoginManager
from flask_migrate import Migrate
from flask_socketio import SocketIO
from flask_sqlalchemy import SQLAlchemy
from flask_wtf import CSRFProtect
from sqlalchemy import Connection, Engine, MetaData, event
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.orm import DeclarativeBase, Session

READ_ONLY = {"parlor_read_only": True}
BUSY_SECONDS = 10
_LOST_A_RACE = ("40001", "40P01")  # PostgreSQL's serialization_failure and deadlock_detected


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
migrate = Migrate(render_as_batch=True, compare_type=True)
socketio = SocketIO()
login = LoginManager()
csrf = CSRFProtect()
limiter = Limiter(get_remote_address)


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
