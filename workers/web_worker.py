"""The gunicorn worker class that serves Parlor: its gevent worker, with limits on what a connection may send.

gunicorn's own worker reads the unwanted rest of a body 1 kB at a time, without a limit and without yielding to others.
Here every read yields and has a deadline, for heads and for bodies; a client that is answered before the end of its
body is drained of a small amount and disconnected; and the number of clients that the server waits for is limited. The
application sets how long a body may be (`app/web/body_limits.py`).
"""

import contextlib
import logging
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import gevent
from gunicorn.http.body import ChunkedReader
from gunicorn.http.errors import LimitRequestHeaders, NoMoreData
from gunicorn.http.message import Request
from gunicorn.http.parser import RequestParser
from gunicorn.http.unreader import SocketUnreader
from gunicorn.util import close, close_graceful
from gunicorn.workers.ggevent import GeventWorker

from app.web.bucket import Bucket
from workers.open_files import max_open_files

HEAD_SECONDS = 5.0  # until a request's head has arrived, including the wait for its first byte
MOST_HEAD = 32_768  # bytes of it
BODY_SECONDS = 10.0  # until a body has arrived, plus a second for each LEAST_RATE bytes of it
LEAST_RATE = 8192
SEND_SECONDS = 60.0  # for the client to take a piece of an answer
MOST_WAITED_FOR = 1000  # connections whose head or body has not arrived; beyond that, the oldest is disconnected
DRAIN_SECONDS, DRAIN_BYTES = 1.0, 65_536  # of what is still sent after the answer
_PIECE = 65_536  # bytes of a body read before others get their turn
_SMALL_PIECE = 4096  # the same for heads and chunks, which take longer to parse
_AROUND_CHUNKS = 256  # bytes that a chunked body may have on the wire beyond twice its own
_AROUND_CHUNK = len(b"\r\n\r\n")  # plus the digits of its size
_LINES_A_SECOND = 5.0  # log lines about bad requests
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class WaitedFor:
    """The readers whose clients have yet to send something, longest wait first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._readers: dict[ClientReader, None] = {}

    def add(self, reader: "ClientReader") -> None:
        """Add a reader, or restart its wait; if that is one too many, the oldest is disconnected."""
        self.remove(reader)
        self._readers[reader] = None
        if len(self._readers) > self._most:
            next(iter(self._readers)).hang_up()

    def remove(self, reader: "ClientReader") -> None:
        """Remove a reader whose data has arrived or is no longer wanted."""
        self._readers.pop(reader, None)


class ClientReader(SocketUnreader):
    """Reads from a client's socket within limits on time and size, yielding to other connections."""

    max_body_chunk = _PIECE

    def __init__(self, sock: Any, waited_for: WaitedFor) -> None:
        super().__init__(sock, _SMALL_PIECE)
        self.received = 0  # bytes received of what is expected
        self.asks = False  # whether the client waits to be asked for the body
        self._waited_for = waited_for
        self._began = self._seconds = 0.0
        self._rate = 0
        self._most = 0

    def expect(self, seconds: float, most: int, rate: int = 0) -> None:
        """Wait for at most `most` bytes, for `seconds` plus one more for each `rate` bytes received."""
        self.received, self._began = 0, time.monotonic()
        self._seconds, self._most, self._rate = seconds, most, rate
        self._waited_for.add(self)

    def allow(self, most: int) -> None:
        """Change the limit `most` of `expect` while reading."""
        self._most = most

    def expect_nothing(self) -> None:
        """Stop waiting for data."""
        self._waited_for.remove(self)

    @property
    def holds(self) -> bool:
        """Whether data was read that nothing has asked for yet: the client did not wait for its answer."""
        return bool(self.buf.tell() > 0)

    def hang_up(self) -> None:
        """Disconnect, so that code reading here finds the client gone."""
        self.expect_nothing()
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def chunk(self, size_hint: int | None = None) -> bytes:
        """The next bytes. Raises TimeoutError after the deadline and LimitRequestHeaders for too many."""
        if self.asks:
            self.asks = False
            self.sock.sendall(_CONTINUE)
        if self.received > self._most:
            raise LimitRequestHeaders(f"more than {self._most} bytes")
        gevent.sleep(0)
        more = self.received / self._rate if self._rate else 0.0
        left = self._began + self._seconds + more - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.sock.settimeout(left)
        try:
            data = super().chunk(size_hint)
        finally:
            self.sock.settimeout(SEND_SECONDS)
        self.received += len(data)
        return bytes(data)


class RequestBody:
    """The body that an application reads from. `unread` is false once all of it was read."""

    def __init__(self, body: Any, reader: ClientReader) -> None:
        self._body = body
        self._reader = reader
        self._left: int | None = None  # bytes of it; None: it comes in chunks
        if isinstance(body.reader, ChunkedReader):
            body.reader.parser = self._chunked_pieces(body.reader.parser)
        else:
            self._left = body.reader.length
        self.unread = self._left != 0

    def begin(self) -> None:
        """Start waiting for the body."""
        self._reader.expect(BODY_SECONDS, _AROUND_CHUNKS if self._left is None else self._left, LEAST_RATE)

    def _chunked_pieces(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The pieces of a chunked body; the bytes around them may be as many as those in them, plus a few.

        If many small chunks came at once, the rest is not even parsed. Raises LimitRequestHeaders.
        """
        size = around = 0
        for piece in pieces:
            size += len(piece)
            around += len(f"{len(piece):x}") + _AROUND_CHUNK
            if around > size + _AROUND_CHUNKS:
                raise LimitRequestHeaders(f"more than {_AROUND_CHUNKS} bytes around small chunks")
            self._reader.allow(2 * size + _AROUND_CHUNKS)
            yield piece

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, none at the end. Raises OSError and ParseException for an incomplete body."""
        data: bytes = self._body.read(size)
        if self._left is not None:
            self._left -= len(data)
        if not data or self._left == 0:
            self.unread = False
            self._reader.expect_nothing()
        return data


class BoundedRequest(Request):
    """A request after which the connection is closed if the client sent more than its answer needed."""

    def set_body_reader(self) -> None:
        """Put the limits around the body."""
        super().set_body_reader()
        self.body: Any = RequestBody(self.body, self.unreader)

    def should_close(self) -> bool:
        """Whether no further request is read from the connection; one that was sent too early is never read."""
        return bool(self.has_more() or super().should_close())

    def has_more(self) -> bool:
        """Whether the client has sent, or is about to send, more than was read of this request."""
        return bool(self.body.unread or self.unreader.holds)


class BoundedParser(RequestParser):
    """The requests of a connection, which are read from `reader`."""

    mesg_class = BoundedRequest

    def __init__(self, cfg: Any, reader: ClientReader, address: Any) -> None:
        super().__init__(cfg, reader.sock, address)
        self.unreader = reader

    def finish_body(self, *_: object) -> bool:
        """Whether the last body was read to its end: an unread rest is never drained here."""
        return not (self.mesg and self.mesg.body.unread)


class _Seldom(logging.Filter):
    """Limits log lines about bad requests, so that they cannot fill a disk."""

    def __init__(self) -> None:
        super().__init__()
        self._pace = Bucket(_LINES_A_SECOND, time.monotonic())

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write a record."""
        return not record.getMessage().startswith("Invalid request") or self._pace.take(time.monotonic())


class WebWorker(GeventWorker):
    """See the module."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._waited_for = WaitedFor(min(MOST_WAITED_FOR, max_open_files() // 4))
        self._per_address: Counter[str] = Counter()
        self._most_per_address = 0
        self._group: Callable[[str], str] = str
        self.log.error_log.addFilter(_Seldom())

    def limit_addresses(self, most: int, group: Callable[[str], str]) -> None:
        """Allow at most `most` connections for one address, or for addresses with the same `group` name; 0: no
        limit.
        """
        self._most_per_address, self._group = most, group

    def handle(self, listener: Any, client: Any, addr: Any) -> None:
        """Serve one connection to its end."""
        address = self._group(addr[0]) if isinstance(addr, tuple) else ""
        if 0 < self._most_per_address <= self._per_address[address]:
            most = f"more than {self._most_per_address} connections (twice CONNECTIONS_PER_ADDRESS)"
            self.log.warning(f"Invalid request from ip={address}: {most}; behind a proxy set TRUSTED_PROXIES")
            close(client)
            return
        self._per_address[address] += 1
        reader = ClientReader(client, self._waited_for)
        try:
            self._serve_connection(listener.getsockname(), reader, addr)
        finally:
            close(client)
            reader.expect_nothing()
            self._per_address[address] -= 1
            if not self._per_address[address]:
                del self._per_address[address]

    def _serve_connection(self, name: Any, reader: ClientReader, addr: Any) -> None:
        """Answer requests one by one; a client disconnected before all was read is drained of a small amount."""
        client, request, early = reader.sock, None, False
        client.settimeout(SEND_SECONDS)
        parser = BoundedParser(self.cfg, reader, addr)
        try:
            while True:
                request = None
                reader.expect(HEAD_SECONDS, MOST_HEAD)
                request = next(parser)
                self._serve_request(name, request, reader, addr)
                gevent.sleep(0)  # the next request may be here already, and so may other people's
        except (StopIteration, NoMoreData):
            early = request is not None and request.has_more()
        except TimeoutError:
            early = request is None and reader.received > 0
            if early:
                self._send_answer(client, _SLOW)
        except OSError:
            pass  # the client is gone
        except Exception as error:
            self.handle_error(request, client, addr, error)
            early = True
        if early:
            close_graceful(client, DRAIN_SECONDS, DRAIN_BYTES)

    @staticmethod
    def _send_answer(client: Any, answer: bytes) -> None:
        with contextlib.suppress(OSError):
            client.sendall(answer)

    def _serve_request(self, name: Any, request: BoundedRequest, reader: ClientReader, addr: Any) -> None:
        reader.expect_nothing()
        if request.body.unread:
            request.body.begin()
        # gunicorn would ask for the body before its length is checked.
        reader.asks, request._expected_100_continue = request._expected_100_continue, False
        try:
            self.handle_request(name, request, reader.sock, addr)
        finally:
            reader.asks = False
            reader.expect_nothing()
