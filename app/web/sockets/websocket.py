"""One WebSocket on the event loop, in the form that Engine.IO's server expects.

Engine.IO's own driver reads each connection in a greenlet beside the one that handles it, and writes every packet
separately. Here one greenlet does both, and what is sent in the same moment (a move's change, its acknowledgement, the
partner's reply) leaves in one system call: with a hundred people playing that is a quarter of the work of a move.
Framing is wsproto's. Source: RFC 6455.
"""

import contextlib
import os
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import gevent
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, RemoteProtocolError, generate_accept_token

from app.games.base import JSON
from app.web.bucket import Bucket
from app.web.sockets.packets import BadPacket

_READ = 8192
_READ_EVENT = 1  # libev's
_VERSION = "13"
_GOODBYE_SECONDS = 2.0  # within which the other side has to answer a goodbye
_MOST_UNSENT = 1_000_000  # bytes that a slow reader may leave unread before it is no longer listened to
_LOOK_AGAIN = 0.1  # seconds between two checks whether it has read them


class _Server(Protocol):
    max_http_buffer_size: int


def _anything(_: Any) -> None:
    """Neither check nor report anything."""


@dataclass(frozen=True, slots=True)
class WebSocketLimits:
    """What a connection may receive: how many frames a second, and which messages; `refused` is told why it was
    closed.
    """

    pace: Bucket = field(default_factory=lambda: Bucket(0, 0.0))
    check: Callable[[str | bytes], None] = _anything  # raises BadPacket
    refused: Callable[[str], None] = _anything


class WebSocketConnection:
    """`wait`, `send` and `close` are Engine.IO's; so is the handler, which returns when the connection is gone."""

    def __init__(
        self, handler: Callable[["WebSocketConnection"], Any], server: _Server, limits: WebSocketLimits | None = None
    ) -> None:
        self._handler = handler
        self._longest = server.max_http_buffer_size
        self._limits = limits or WebSocketLimits()
        self._frames = Connection(ConnectionType.SERVER)
        self._heard: deque[str | bytes] = deque()
        self._parts: list[Any] = []  # texts, or chunks of binary data
        self._length = 0
        self._unsent: list[bytes] = []
        self._ended = False  # nothing more will come
        self._leaving = False  # the sending of what is unsent is under way
        self._parting = False  # we have said goodbye, and now only listen for the answer

    def __call__(self, environ: JSON, start_response: Callable[..., Any]) -> list[bytes]:
        """The WSGI application: shake hands, then hand the connection over until it is gone."""
        key = environ.get("HTTP_SEC_WEBSOCKET_KEY", "")
        if not key or environ.get("HTTP_SEC_WEBSOCKET_VERSION") != _VERSION:
            start_response("400 BAD REQUEST", [("Sec-WebSocket-Version", _VERSION), ("Content-Type", "text/plain")])
            return [b"expected a WebSocket handshake of version 13\n"]
        self._socket = environ["gunicorn.socket"]
        token = generate_accept_token(key.encode("latin-1"))
        answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        self._socket.sendall(answer + b"Sec-WebSocket-Accept: " + token + b"\r\n\r\n")
        self._hub = gevent.get_hub()
        self._readable = self._hub.loop.io(self._socket.fileno(), _READ_EVENT)
        try:
            self._handler(self)
        except Exception as error:  # for example Engine.IO's error for an aborted handshake, or for its own packets
            self._limits.refused(f"{type(error).__name__}: {error}")
        finally:
            self._ended = True
            self._readable.close()
        if self._unsent:
            self._write_unsent_bytes()  # the last words, before the socket is closed
        raise StopIteration  # tells gunicorn that no response is left to send

    def wait(self) -> str | bytes | None:
        """The next message, or None when the connection is gone and everything received has been read."""
        self._wait_for_reader()
        while not self._heard and not self._ended:
            try:
                self._hub.wait(self._readable)  # reading first would nearly always find nothing
                data = self._socket.recv(_READ)
                self._frames.receive_data(data or None)
                self._wait_for_frame_limit(self._sort_received())
            except (OSError, RemoteProtocolError, LocalProtocolError):
                self._ended = True
        if not self._heard or self._parting:
            return None
        message = self._heard.popleft()
        try:
            self._limits.check(message)
        except BadPacket as error:
            self._refuse(str(error), CloseReason.POLICY_VIOLATION)
            self._heard.clear()
            return None
        self._wait_for_frame_limit(1)
        return message

    def send(self, message: str | bytes) -> None:
        """Send a message, together with all others of the same moment. Raises OSError if the connection is closed."""
        if self._frames.state is not ConnectionState.OPEN:
            raise OSError("the WebSocket is closed")
        event = BytesMessage(data=message) if isinstance(message, bytes) else TextMessage(data=message)
        self._send_bytes(self._frames.send(event))

    def close(self) -> None:
        """Send a close frame, if the connection is still open."""
        if self._frames.state is ConnectionState.OPEN:
            self._send_bytes(self._frames.send(CloseConnection(CloseReason.NORMAL_CLOSURE)))
            self._parting = True
            gevent.spawn_later(_GOODBYE_SECONDS, self._hang_up)

    def _hang_up(self) -> None:
        """Wake up a greenlet that still waits to receive from the other side."""
        if not self._ended:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _refuse(self, why: str, code: int) -> None:
        """Close the connection to a client that violates the protocol."""
        if self._frames.state is ConnectionState.OPEN:
            self._send_bytes(self._frames.send(CloseConnection(code)))
        self._ended = True
        self._limits.refused(why)

    def _wait_for_frame_limit(self, count: int) -> None:
        """Continue reading once `count` more frames are within the limit: only a client that sends faster has to
        wait.
        """
        if (pause := self._limits.pace.spend(count, time.monotonic())) > 0:
            gevent.sleep(pause)

    def _wait_for_reader(self) -> None:
        """Stop listening to a client that does not read until it does; the heartbeat closes the connection if it never
        does.
        """
        while self._leaving and not self._parting and sum(map(len, self._unsent)) > _MOST_UNSENT:
            gevent.sleep(_LOOK_AGAIN)

    def _sort_received(self) -> int:
        """Sort what has been received, up to the end: the other side has closed the connection, or sent too much at
        once.

        Returns how many frames were no whole message; a read that brought nothing counts as one.
        """
        read = whole = 0
        for event in self._frames.events():
            read += 1
            match event:
                case TextMessage() | BytesMessage():
                    self._length += len(event.data)
                    if self._length > self._longest:
                        self._refuse(
                            f"expected a message of at most {self._longest} bytes, got more",
                            CloseReason.MESSAGE_TOO_BIG,
                        )
                        break
                    self._parts.append(event.data)
                    if event.message_finished:
                        joined = self._parts[0] if len(self._parts) == 1 else _joined(self._parts)
                        self._heard.append(joined if isinstance(joined, str) else bytes(joined))
                        self._parts, self._length = [], 0
                        whole += 1
                case Ping():
                    self._send_bytes(self._frames.send(event.response()))
                case CloseConnection() if self._frames.state is ConnectionState.OPEN:  # wsproto gave up
                    self._refuse(f"expected frames of a WebSocket, got others: {event.reason}", event.code)
                case CloseConnection():
                    if self._frames.state is ConnectionState.REMOTE_CLOSING:
                        self._send_bytes(self._frames.send(event.response()))
                    self._ended = True
        return max(read, 1) - whole

    def _send_bytes(self, data: bytes) -> None:
        self._unsent.append(data)
        if not self._leaving:
            self._leaving = True
            self._hub.loop.run_callback(self._write_unsent_bytes)

    def _write_unsent_bytes(self) -> None:
        """Send everything at once, in the event loop itself, where nothing may block; what does not fit is sent in a
        greenlet.
        """
        data = b"".join(self._unsent)
        self._unsent.clear()
        try:
            # The number of a socket closed meanwhile is -1, never another socket's.
            sent = os.write(self._socket.fileno(), data)
        except BlockingIOError:
            sent = 0
        except OSError:
            sent = len(data)  # nobody is there to read it; `wait` will notice
        if sent < len(data):
            gevent.spawn(self._write_to_slow_reader, data[sent:])
        else:
            self._leaving = False

    def _write_to_slow_reader(self, data: bytes) -> None:
        """Wait for a slow reader."""
        try:
            while data:
                self._socket.sendall(data)
                data = b"".join(self._unsent)
                self._unsent.clear()
        except OSError:
            self._unsent.clear()
        self._leaving = False


def _joined(parts: list[Any]) -> str | bytes:
    return "".join(parts) if isinstance(parts[0], str) else b"".join(parts)
