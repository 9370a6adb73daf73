"""How pages and the API write: in real threads, so that a busy database never stalls the event loop.

A form with a request key is processed once: if it is sent again, even from another tab at the same moment, it changes
nothing and returns its first result.

A request waits at most `PATIENCE` seconds for the transaction to begin; after that the client is told to come back, and
nothing has been or will be written. Moves wait for as long as it takes (`app/web/sockets/move_writer.py`).
"""

import hashlib
import secrets
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

from flask import current_app, request
from gevent import Timeout, get_hub
from gevent.threadpool import ThreadPool
from markupsafe import Markup
from sqlalchemy import Engine, delete
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool

from app.core.errors import Phrase, Unavailable
from app.core.extensions import db, is_locked, lost_race, open_engine, reading, writing
from app.models import FormRequest

PATIENCE = 10.0  # seconds
_THREADS = 8  # on PostgreSQL, where waiting for a locked row keeps nobody from another row
_RACES = 3  # tries of a transaction that others were faster than
_EXTENSION = "parlor.writes"
_KEY = "request_key"  # the form field
_NOT_CONTENT = (_KEY, "csrf_token")
_KEPT = timedelta(days=30)  # how long a submitted form is remembered

T = TypeVar("T")


def write(work: Callable[[Session], T]) -> T:
    """What `work(session)` returns, run and committed in a transaction of its own, in a thread.

    `work` has no request: it is given what it needs, and may be rerun if another transaction was faster. Raises
    Unavailable if the database is busy for longer than PATIENCE, and whatever `work` raises; nothing is written then.
    """
    return _writer().write(work)


def write_once(work: Callable[[Session], T], *, without_key: bool = False) -> T:
    """The same for a form with a request key: it is done once, and later calls return its result, which is JSON.

    A form without a key is processed as often as it is sent; with `without_key` its content alone is its key.
    """
    digest = _digest(without_key=without_key)
    return write(work if digest is None else _work_done_once(digest, work))


def result_before() -> Any:
    """The earlier result of this request's form; None if it was not sent before."""
    digest = _digest()
    if digest is None:
        return None
    with reading() as session:
        found = session.get(FormRequest, digest)
        return None if found is None else found.result


def request_key_field(key: str | None = None) -> Markup:
    """The hidden field by which a form is processed only once; by default with the key of this page."""
    if key is None:
        key = request.environ.setdefault(f"{_EXTENSION}.{_KEY}", secrets.token_urlsafe(16))
    return Markup('<input type="hidden" name="{}" value="{}">').format(_KEY, key)


def close() -> None:
    """Close the app's connection. The next write opens another one."""
    for writer in current_app.extensions.get(_EXTENSION, {}).values():
        writer.close()


def _writer() -> "_FormWriter":
    writers = current_app.extensions.setdefault(_EXTENSION, {})
    hub = get_hub()  # the owner of a pool; a web process has one
    if hub not in writers:
        writers[hub] = _FormWriter(db.engine)
    return cast(_FormWriter, writers[hub])


def _digest(*, without_key: bool = False) -> str | None:
    """The hash of the key and content of this request's form; None without a key."""
    if not (without_key or request.form.get(_KEY)):
        return None
    parts = [request.path, request.form.get(_KEY, ""), *_entered_values()]
    return hashlib.sha256("\0".join(f"{len(part)}:{part}" for part in parts).encode(errors="replace")).hexdigest()


def _entered_values() -> Iterator[str]:
    """The values that were entered, in the order of the form."""
    for name, value in request.form.items(multi=True):
        if name not in _NOT_CONTENT:
            yield from (name, value)
    for name, file in request.files.items(multi=True):
        at = file.stream.tell()
        size = file.stream.seek(0, 2)
        file.stream.seek(at)
        yield from (name, str(file.filename), str(size))


def _work_done_once(digest: str, work: Callable[[Session], T]) -> Callable[[Session], T]:
    """The same work if it was not done yet, else its result. The row is inserted first, so that two requests queue
    up.
    """

    def done_once(session: Session) -> T:
        known = session.get(FormRequest, digest)
        if known is not None:
            return cast(T, known.result)
        now = datetime.now(UTC)
        session.execute(delete(FormRequest).where(FormRequest.at < now - _KEPT))
        row = FormRequest(digest=digest, at=now, result=None)
        session.add(row)
        session.flush()
        result = work(session)
        row.result = result
        return result

    return done_once


class _Attempt:
    """A transaction that a request waits for until `deadline` (seconds of a monotonic clock)."""

    def __init__(self, work: Callable[[Session], object], deadline: float) -> None:
        self.work = work
        self.deadline = deadline
        self._decided: list[str] = []  # appending is atomic, even between threads

    def begin(self) -> bool:
        """Record that the transaction holds its lock. False if nobody waits for it any more."""
        self._decided.append("begun")
        return self._decided[0] == "begun"

    def give_up(self) -> bool:
        """Stop waiting. False if it is too late because the transaction has begun."""
        self._decided.append("given up")
        return self._decided[0] == "given up"


class _FormWriter:
    """Real threads with a connection each: only one on SQLite, where transactions of one process would merely wait for
    each other in the database.
    """

    def __init__(self, database: Engine) -> None:
        if database.dialect.name == "sqlite":
            self._engine = open_engine(
                database.url, poolclass=StaticPool, connect_args={"check_same_thread": False}, pool_pre_ping=True
            )
            threads = 1
        else:
            threads = _THREADS
            self._engine = open_engine(
                database.url, pool_size=threads, connect_args={"connect_timeout": 2}, pool_pre_ping=True
            )
        self._pool = ThreadPool(threads, idle_task_timeout=60)

    def write(self, work: Callable[[Session], T]) -> T:
        """See the module's `write`."""
        attempt = _Attempt(work, time.monotonic() + PATIENCE)
        pending = None
        try:
            with Timeout(PATIENCE):
                pending = self._pool.spawn(self._try_write, attempt)
                found, error = pending.get()
        except Timeout:
            if attempt.give_up() or pending is None:
                raise _busy() from None
            found, error = pending.get()
        if error is not None:
            raise error
        return cast(T, found)

    def close(self) -> None:
        """Close the connection in its thread: closing one that waits for a lock would end the process."""
        self._pool.apply(self._engine.dispose)

    def _try_write(self, attempt: _Attempt) -> tuple[object, Exception | None]:
        """Try the write, in the thread. An error is returned rather than raised: the pool would also print it."""
        tries_left = _RACES
        while True:
            tries_left -= 1
            try:
                return self._committed(attempt), None
            except DBAPIError as error:
                if is_locked(error):
                    return None, _busy()
                if not (tries_left and lost_race(error)):
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
