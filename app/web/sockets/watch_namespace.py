"""Live job updates for experimenters' pages: the Socket.IO namespace /admin.

A page says what it watches. About twice a second, as long as any page watches, those rows are read from the database,
and each page is sent what has changed. The session is checked at connect and again at every read: a page whose user has
signed out loses the connection. Every few minutes the connection is closed anyway, and the page connects again.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import gevent
import structlog
from flask import Flask
from flask_login import current_user
from gevent.event import Event
from socketio.exceptions import ConnectionRefusedError as Refused
from sqlalchemy.exc import SQLAlchemyError

from app import accounts
from app.core.errors import Unavailable
from app.core.extensions import db, is_away, reading, reason_of
from app.games.base import JSON
from app.web.auth import session_life, session_token
from app.web.sockets.packets import error_answer
from app.web.watched import watched_kinds

NAMESPACE = "/admin"
EVERY = 0.5  # seconds between two looks
MOST = 50  # rows that a page may watch
LONGEST = 300.0  # seconds after which a page has to prove again that it may watch
_AWAY = "The database does not answer just now. Please try again in a moment."

Row = tuple[str, int]  # a kind of job, and a job's number
log = structlog.get_logger()


@dataclass(slots=True)
class _Watcher:
    """A page: when it connected, the rows that it watches, and what it was last told about each."""

    since: float
    session: str  # the hash of its token
    sent: dict[Row, JSON] = field(default_factory=dict)


class WatchNamespace:
    """The namespace's handlers. The first page that watches starts the loop."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        with app.app_context():
            self._database = db.engine
        self._server: Any = None
        self._watchers: dict[str, _Watcher] = {}
        self._kinds = watched_kinds()
        self._somebody = Event()
        self._started = False
        self._life = timedelta()

    def register(self, server: Any) -> None:
        """Register the handlers on a python-socketio server."""
        self._server = server
        server.on("connect", self.connect, namespace=NAMESPACE)
        server.on("disconnect", self.disconnect, namespace=NAMESPACE)
        server.on("watch", self.watch, namespace=NAMESPACE)

    def connect(self, sid: str, environ: JSON, _auth: Any = None) -> None:
        """Admit signed-in users."""
        try:
            with self._app.request_context(environ):
                token = session_token() if current_user.is_authenticated else None
                life = session_life()
        except SQLAlchemyError as error:
            if not is_away(error):
                raise
            log.warning("the database is away", error=reason_of(error))
            raise Refused(_AWAY, {"code": Unavailable.code, "message": _AWAY}) from None
        if token is None:
            message = "Sign in first: this is for experimenters."
            raise Refused(message, {"code": "not_allowed", "message": message})
        self._life = life
        self._watchers[sid] = _Watcher(time.monotonic(), accounts.hash_token(token))

    def disconnect(self, sid: str, _reason: str | None = None) -> None:
        """Forget a page."""
        self._watchers.pop(sid, None)

    def watch(self, sid: str, data: Any = None, *_more: Any) -> JSON:
        """Tell a page about these rows from now on: first all of them, and then any changes."""
        watcher = self._watchers.get(sid)
        if watcher is None:
            return error_answer("not_allowed", "This connection is not signed in. Load the page again.")
        wanted = self._wanted(data)
        if wanted is None:
            known = " or ".join(each.kind.plural for each in self._kinds)
            return error_answer("invalid", f"{known}: expected at most {MOST} numbers of them")
        watcher.sent = {row: {} for row in wanted}
        self._somebody.set()
        if not self._started:
            self._started = True
            gevent.spawn(self._look_forever)
        return {"ok": True}

    def _wanted(self, data: Any) -> list[Row] | None:
        """The rows that a page asks for; None for anything but a list of numbers of a known kind."""
        kinds = {each.kind.plural: each.kind.name for each in self._kinds}
        if not isinstance(data, dict) or not data.keys() & kinds.keys():
            return None
        wanted: list[Row] = []
        for many, one in kinds.items():
            numbers = data.get(many, [])
            if not isinstance(numbers, list) or not all(type(each) is int for each in numbers):
                return None
            wanted += [(one, number) for number in numbers if 0 < number < 2**31]
        return wanted if len(wanted) <= MOST else None

    # ---- Looking ---------------------------------------------------------------

    def _look_forever(self) -> None:
        """The loop, which nothing may end: without it every page would freeze until the process is restarted."""
        while True:
            self._somebody.wait()
            try:
                self._update_watchers()
            except SQLAlchemyError as error:
                log.warning("nothing was looked at", error=reason_of(error))
            except Exception:
                log.exception("nothing was looked at")
            gevent.sleep(EVERY)

    def _update_watchers(self) -> None:
        now = time.monotonic()
        for sid in [sid for sid, each in self._watchers.items() if now - each.since > LONGEST]:
            self._server.disconnect(sid, namespace=NAMESPACE)
        wanted = {row for watcher in self._watchers.values() for row in watcher.sent}
        if not wanted:
            self._somebody.clear()
            return
        known: dict[Row, JSON] = {}
        with reading(self._database) as session:
            hashes = {watcher.session for watcher in self._watchers.values()}
            signed_in = accounts.open_sessions(session, hashes, datetime.now(UTC), self._life)
            for each in self._kinds:
                name = each.kind.name
                found = each.read(session, {number for of, number in wanted if of == name}, now)
                known |= {(name, number): figures for number, figures in found.items()}
        for sid, watcher in list(self._watchers.items()):
            if watcher.session in signed_in:
                self._send_changed_figures(sid, watcher, known)
            elif watcher.session in hashes:  # signed out since it connected; otherwise it connected during this read
                self._server.disconnect(sid, namespace=NAMESPACE)

    def _send_changed_figures(self, sid: str, watcher: _Watcher, known: Mapping[Row, JSON]) -> None:
        for row, before in watcher.sent.items():
            now = known.get(row)
            if now is None or now == before:
                continue
            change = {name: value for name, value in now.items() if name not in before or before[name] != value}
            watcher.sent[row] = now
            one, number = row
            self._server.emit(one, {**change, one: number}, to=sid, namespace=NAMESPACE)
