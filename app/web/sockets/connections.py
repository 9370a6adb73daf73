"""Limits on connections: what each may send, how fast, and how many one address may have.

A connection is an Engine.IO connection, over a WebSocket or by polling, in any namespace. A client that sends faster
than the budget is read more slowly, so that nobody else waits; a client that sends an invalid packet is disconnected,
with one line in the log. Addresses are those that the app sees: behind an untrusted proxy (TRUSTED_PROXIES) all clients
have the same one.
"""

import io
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import gevent
import structlog

from app.core.config import Settings
from app.games.base import JSON
from app.web.addresses import network_of
from app.web.bucket import Bucket
from app.web.sockets.packets import BadPacket, check
from app.web.sockets.websocket import WebSocketConnection, WebSocketLimits

MORE_THAN_MOVES = 10.0  # packets a second beyond MOVES_PER_SECOND: heartbeats, typing, and requests for the view
JOIN_SECONDS = 30.0  # after which a connection without a namespace is closed
_PATH = "/socket.io/"
_LONGEST_PAUSE = 5.0  # seconds that a request may wait until its packets are let in
_MOST_IN_A_REQUEST = 16  # packets, as in Engine.IO
_MOST_UNREAD = 500  # packets that a polling client may leave unread
_REPORTS_A_SECOND = 5.0  # log lines, so that nobody can fill a disk with them

WsgiApp = Callable[[JSON, Callable[..., Any]], Iterable[bytes]]
log = structlog.get_logger()


def library_logger() -> logging.Logger:
    """The logger of Engine.IO and Socket.IO: errors only, and each once; their own loggers would print them
    themselves.
    """
    logger = logging.getLogger("socketio")
    logger.setLevel(logging.ERROR)
    return logger


@dataclass(frozen=True, slots=True)
class _Connection:
    address: str
    pace: Bucket


class ConnectionLimits:
    """The limits of one web process, around its Socket.IO server."""

    def __init__(self, server: Any, settings: Settings, namespaces: Sequence[str]) -> None:
        """`server` is python-socketio's, with all of its own handlers; `namespaces` are those that are in use."""
        self._server = server
        self._namespaces = namespaces
        self._engine = server.eio
        self._most = settings.CONNECTIONS_PER_ADDRESS
        self._rate = settings.MOVES_PER_SECOND and settings.MOVES_PER_SECOND + MORE_THAN_MOVES
        self._open: dict[str, _Connection] = {}
        self._per_address: Counter[str] = Counter()
        self._outside: set[str] = set()  # connections without a namespace at the last look
        self._looks = False
        self._reports = Bucket(_REPORTS_A_SECOND, time.monotonic())
        self._unreported = 0

    def install(self, wsgi_app: WsgiApp) -> WsgiApp:
        """Wrap the server's handlers and its application in the limits; returns the wrapped application."""
        handlers = dict(self._engine.handlers)
        # The only part of a driver that no setting can change.
        self._engine._async = {**self._engine._async, "websocket": self._websocket_of}

        def connect(sid: str, environ: JSON) -> Any:
            self._add_connection(sid, environ)
            return handlers["connect"](sid, environ)

        def disconnect(sid: str, *reason: str) -> Any:
            self._remove_connection(sid)
            return handlers["disconnect"](sid, *reason)

        def message(sid: str, data: Any) -> Any:
            if not self._is_open(sid):
                return
            try:
                handlers["message"](sid, data)
            except BadPacket as error:
                self._close_connection(sid, str(error))
            except Exception:  # an error of ours; event handlers always answer, so it came from a new connection
                if self._reports.take(time.monotonic()):
                    log.exception("a connection was not served")
                self._close_connection(sid, "it could not be served")

        for name, handler in (("connect", connect), ("disconnect", disconnect), ("message", message)):
            self._engine.on(name, handler)
        return self._around(wsgi_app)

    # ---- Who is there ----------------------------------------------------------

    def _add_connection(self, sid: str, environ: JSON) -> None:
        address = network_of(environ.get("REMOTE_ADDR") or "")
        self._open[sid] = _Connection(address, Bucket(self._rate, time.monotonic()))
        self._per_address[address] += 1
        if not self._looks:
            self._looks = True
            gevent.spawn(self._look_forever)

    def _remove_connection(self, sid: str) -> None:
        if connection := self._open.pop(sid, None):
            self._per_address[connection.address] -= 1
            if not self._per_address[connection.address]:
                del self._per_address[connection.address]

    def _is_open(self, sid: str) -> bool:
        socket = self._engine.sockets.get(sid)
        return socket is not None and not socket.closed

    def _close_connection(self, sid: str, why: str) -> None:
        """Close a connection, with one line in the log."""
        socket = self._engine.sockets.get(sid)
        if socket is not None and not socket.closed:
            self._log_closed(why, self._open[sid].address if sid in self._open else "")
            socket.close(wait=False, reason=self._engine.reason.SERVER_DISCONNECT)

    def _log_closed(self, why: str, address: str, event: str = "a connection was closed") -> None:
        if not self._reports.take(time.monotonic()):
            self._unreported += 1
            return
        more = {"unreported": self._unreported} if self._unreported else {}
        log.warning(event, reason=why, address=address, **more)
        self._unreported = 0

    def _look_forever(self) -> None:
        while True:
            gevent.sleep(JOIN_SECONDS)
            self.close_outsiders()

    def close_outsiders(self) -> None:
        """Close the connections that are in no namespace now and were in none at the last call.

        The default one, "/", does not count: the library admits everybody, and nobody listens there.
        """
        inside = self._server.manager.sid_from_eio_sid
        outside = {sid for sid in self._open if not any(inside(sid, each) for each in self._namespaces)}
        for sid in outside & self._outside:
            self._close_connection(sid, f"expected to be asked into a namespace within {JOIN_SECONDS:g} s, got nothing")
        self._outside = outside - self._outside

    # ---- What comes in ---------------------------------------------------------

    def _websocket_of(self, handler: Callable[[WebSocketConnection], Any], server: Any) -> WebSocketConnection:
        """Engine.IO's driver of a WebSocket. `handler` is a method of the connection's own socket."""
        connection = self._open[handler.__self__.sid]  # type: ignore[attr-defined]

        def refused(why: str) -> None:
            self._log_closed(why, connection.address)

        return WebSocketConnection(handler, server, WebSocketLimits(connection.pace, check, refused))

    def _around(self, inner: WsgiApp) -> WsgiApp:
        def application(environ: JSON, start_response: Callable[..., Any]) -> Iterable[bytes]:
            if not environ.get("PATH_INFO", "").startswith(_PATH):
                return inner(environ, start_response)
            sid = parse_qs(environ.get("QUERY_STRING", "")).get("sid", [None])[0]
            if sid is None and self._is_full(network_of(environ.get("REMOTE_ADDR") or "")):
                return _http_error(
                    start_response, "429 TOO MANY REQUESTS", "too_many", "There are too many connections."
                )
            if sid is not None and not self._is_open(sid):
                self._engine.sockets.pop(sid, None)  # otherwise Engine.IO would raise KeyError until its next sweep
            elif sid is not None and environ.get("REQUEST_METHOD") == "POST" and not self._heard(sid, environ):
                return _http_error(start_response, "400 BAD REQUEST", "invalid", "expected packets of Engine.IO 4")
            return inner(environ, start_response)

        return application

    def _is_full(self, address: str) -> bool:
        if not self._most or not address or self._per_address[address] < self._most:
            return False
        why = (
            f"expected at most {self._most} connections of an address (CONNECTIONS_PER_ADDRESS), got one more;"
            " behind a proxy set TRUSTED_PROXIES, or everybody has its address"
        )
        self._log_closed(why, address, "a connection was refused")
        return True

    def _heard(self, sid: str, environ: JSON) -> bool:
        """Check what a polling client has sent, and wait for its turn. False if the connection was closed instead."""
        connection, socket = self._open[sid], self._engine.sockets[sid]
        length = int(environ.get("CONTENT_LENGTH") or 0)
        if length > self._engine.max_http_buffer_size:
            return True  # Engine.IO itself refuses it
        body = environ["wsgi.input"].read(length)
        environ["wsgi.input"] = io.BytesIO(body)
        packets = body.split(b"\x1e")
        try:
            if len(packets) > _MOST_IN_A_REQUEST:
                raise BadPacket(f"expected at most {_MOST_IN_A_REQUEST} packets in a request, got {len(packets)}")
            for each in packets if body else ():
                check(each.decode())
        except ValueError as error:  # BadPacket is one, and so is invalid UTF-8
            self._close_connection(sid, str(error))
            return False
        pause = connection.pace.spend(len(packets), time.monotonic())
        if pause > _LONGEST_PAUSE or socket.queue.qsize() > _MOST_UNREAD:
            self._close_connection(
                sid, f"expected at most {self._rate:g} packets a second, read as they are answered, got more"
            )
            return False
        gevent.sleep(pause)
        return True


def _http_error(start_response: Callable[..., Any], status: str, code: str, message: str) -> list[bytes]:
    start_response(status, [("Content-Type", "application/json")])
    return [json.dumps({"error": {"code": code, "message": message}}).encode()]
