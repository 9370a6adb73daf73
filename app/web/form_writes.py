"""How pages and the API write: in a real thread, so that a busy database never stalls the event loop.

Whoever asks waits `PATIENCE` seconds at most for the transaction to begin, and is told to come back after that; then
nothing of it has been done, and nothing will be. Moves wait for as long as it takes (`app/web/move_writer.py`).
"""

import time
from collections.abc import Callable
from typing import TypeVar, cast

from flask import current_app
from gevent import Timeout, get_hub
from gevent.threadpool import ThreadPool
from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool

from app.errors import Phrase, Unavailable
from app.extensions import came_second, db, is_locked, writing

PATIENCE = 2.0  # seconds
_RACES = 3  # tries of a transaction that another one was faster than
_EXTENSION = "parlor.writes"

T = TypeVar("T")


def write(work: Callable[[Session], T]) -> T:
    """What `work(session)` returns, done and committed in a transaction of its own, in a thread.

    `work` has no request: it is given what it needs, and may be run again when another transaction was faster. Raises
    Unavailable when the database is busy for longer than PATIENCE, and whatever `work` raises; nothing is written then.
    """
    return _thread().write(work)


def close() -> None:
    """Give the app's connection back. The next write opens another one."""
    for thread in current_app.extensions.get(_EXTENSION, {}).values():
        thread.close()


def _thread() -> "_Thread":
    threads = current_app.extensions.setdefault(_EXTENSION, {})
    hub = get_hub()  # what a pool belongs to; a web process has one
    if hub not in threads:
        threads[hub] = _Thread(db.engine)
    return cast(_Thread, threads[hub])


class _Attempt:
    """A transaction that somebody waits for until `deadline` (seconds of a monotonic clock)."""

    def __init__(self, work: Callable[[Session], object], deadline: float) -> None:
        self.work = work
        self.deadline = deadline
        self._decided: list[str] = []  # appending is atomic, also between threads

    def begin(self) -> bool:
        """The transaction holds its lock. False when nobody waits for it any more."""
        self._decided.append("begun")
        return self._decided[0] == "begun"

    def give_up(self) -> bool:
        """Stop waiting. False when it is too late: the transaction has begun."""
        self._decided.append("given up")
        return self._decided[0] == "given up"


class _Thread:
    """One real thread with one connection: transactions of one process do not wait for each other in the database."""

    def __init__(self, database: Engine) -> None:
        arguments = {"check_same_thread": False} if database.dialect.name == "sqlite" else {"connect_timeout": 2}
        self._engine = create_engine(database.url, poolclass=StaticPool, connect_args=arguments, pool_pre_ping=True)
        self._pool = ThreadPool(1, idle_task_timeout=60)

    def write(self, work: Callable[[Session], T]) -> T:
        """See the module's `write`."""
        attempt = _Attempt(work, time.monotonic() + PATIENCE)
        pending = None
        try:
            with Timeout(PATIENCE):
                pending = self._pool.spawn(self._run, attempt)
                found, error = pending.get()
        except Timeout:
            if attempt.give_up() or pending is None:
                raise _busy() from None
            found, error = pending.get()
        if error is not None:
            raise error
        return cast(T, found)

    def close(self) -> None:
        """Close the connection, in the thread: one that is closed while it waits for a lock ends the process."""
        self._pool.apply(self._engine.dispose)

    def _run(self, attempt: _Attempt) -> tuple[object, Exception | None]:
        """In the thread. An error is handed over rather than raised: the pool would print it as well."""
        tries_left = _RACES
        while True:
            tries_left -= 1
            try:
                return self._committed(attempt), None
            except DBAPIError as error:
                if is_locked(error):
                    return None, _busy()
                if not (tries_left and came_second(error)):
                    return None, error
            except Exception as error:
                return None, error

    def _committed(self, attempt: _Attempt) -> object:
        left = attempt.deadline - time.monotonic()
        if left <= 0:
            raise _busy()
        with writing(self._engine, patience=left) as session:
            if not attempt.begin():
                raise _busy()
            return attempt.work(session)


def _busy() -> Unavailable:
    return Unavailable(Phrase("The database is busy just now, and nothing was changed. Please try again in a moment."))
