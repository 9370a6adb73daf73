"""One WebSocket on the event loop: what goes in comes out, whole and in order, however it is cut up on the way."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gevent
import pytest
from gevent import socket
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Event, Ping, Pong, Request, TextMessage

from app.web.bucket import Bucket
from app.web.sockets import websocket as lines
from app.web.sockets.packets import check
from app.web.sockets.websocket import WebSocketConnection, WebSocketLimits
from tests.stack import PATIENCE

LONGEST = 1000


@dataclass
class _Server:
    max_http_buffer_size: int = LONGEST


class Client:
    """The other end, as a browser's library would be. `heard` are the messages that came to the server."""

    def __init__(self, handler: Any = None, limits: WebSocketLimits | None = None) -> None:
        self.heard: list[str | bytes | None] = []
        near, self._far = socket.socketpair()
        self._near = near
        self._frames = WSConnection(ConnectionType.CLIENT)
        hello = self._frames.send(Request(host="parlor", target="/socket.io/")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in hello[1:] if line)
        self.environ = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
        self.environ["gunicorn.socket"] = near
        self.line = WebSocketConnection(handler or self._hear_all, _Server(), limits)
        self.served = gevent.spawn(self._serve)

    def _serve(self) -> None:
        with pytest.raises(StopIteration):
            self.line(self.environ, None)
        self._near.close()

    def _hear_all(self, line: WebSocketConnection) -> None:
        while self.heard[-1:] != [None]:
            self.heard.append(line.wait())

    def send(self, event: Event, *, byte_by_byte: bool = False) -> None:
        data = self._frames.send(event)
        for piece in [data[n : n + 1] for n in range(len(data))] if byte_by_byte else [data]:
            self._far.sendall(piece)
            gevent.sleep(0)

    def receive(self, events: int, chunk: int = 1 << 16) -> list[Event]:
        """So many events that the server has sent."""
        came: list[Event] = []
        with gevent.Timeout(10):
            while len(came) < events:
                data = self._far.recv(chunk)
                self._frames.receive_data(data or None)
                came += self._frames.events()
        return came

    def hang_up(self) -> None:
        self._far.close()

    def wait(self) -> None:
        """Until the server has let go."""
        self.served.join(PATIENCE)
        assert self.served.successful()


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client()
    assert isinstance(made.receive(1)[0], AcceptConnection)
    yield made
    made.hang_up()
    made.wait()


def test_messages_come_whole_and_in_order_however_they_are_cut_up(client: Client) -> None:
    client.send(TextMessage(data="one"), byte_by_byte=True)
    client.send(TextMessage(data="tw", message_finished=False))
    client.send(Ping(payload=b"?"))  # may come between the parts of a message
    client.send(TextMessage(data="o – “zwei”"))
    client.send(BytesMessage(data=b"thr", message_finished=False))
    client.send(BytesMessage(data=b"ee"))
    assert client.receive(1) == [Pong(payload=b"?")]
    client.hang_up()
    client.wait()
    assert client.heard == ["one", "two – “zwei”", b"three", None]


def test_what_is_sent_in_one_moment_arrives_as_it_was_sent(client: Client) -> None:
    for text in ("change", "acknowledgement", "reply"):
        client.line.send(text)
    client.line.send(b"\x00")
    gevent.sleep(0.01)
    came = client.receive(4)
    assert [event.data for event in came] == ["change", "acknowledgement", "reply", b"\x00"]  # type: ignore[attr-defined]


def test_a_slow_reader_gets_everything_in_the_end_and_stops_nobody(client: Client) -> None:
    texts = [f"{number} {'x' * 20_000}" for number in range(200)]  # more than any socket buffers
    for text in texts:
        client.line.send(text)
        gevent.sleep(0)
    client.line.send("last")
    data = ""
    while not data.endswith("last"):
        data += "".join(event.data for event in client.receive(1) if isinstance(event, TextMessage))
    assert data == "".join(texts) + "last"


def test_a_message_that_is_too_long_closes_the_line(client: Client) -> None:
    client.send(TextMessage(data="x" * LONGEST))
    client.send(TextMessage(data="y" * (LONGEST - 1), message_finished=False))
    client.send(TextMessage(data="yy"))
    client.wait()
    assert client.heard == ["x" * LONGEST, None]
    assert client.receive(1)[0].code == 1009  # type: ignore[attr-defined]


def test_a_goodbye_is_answered_and_ends_the_line(client: Client) -> None:
    client.send(CloseConnection(code=1000, reason="bye"))
    client.wait()
    assert client.heard == [None]
    assert isinstance(client.receive(1)[0], CloseConnection)
    with pytest.raises(OSError, match="closed"):
        client.line.send("too late")


def test_a_line_that_the_server_closes_says_goodbye_once(client: Client) -> None:
    client.line.close()
    client.line.close()
    gevent.sleep(0.01)
    assert len(client.receive(1)) == 1
    with pytest.raises(OSError, match="closed"):
        client.line.send("too late")


def test_what_is_no_frame_ends_the_line(client: Client) -> None:
    client._far.sendall(b"\xff\xff\xff\xff what is this")
    client.wait()
    assert client.heard == [None]


def test_sending_to_somebody_who_is_gone_is_noticed_when_reading(client: Client) -> None:
    client.hang_up()
    client.line.send("hello?")
    client.wait()
    assert client.heard == [None]


@pytest.mark.parametrize("changed", [{"HTTP_SEC_WEBSOCKET_KEY": ""}, {"HTTP_SEC_WEBSOCKET_VERSION": "8"}])
def test_a_handshake_of_another_kind_is_refused(changed: dict[str, str]) -> None:
    said: list[tuple[str, Any]] = []
    line = WebSocketConnection(lambda _line: None, _Server())
    environ = {"HTTP_SEC_WEBSOCKET_KEY": "k", "HTTP_SEC_WEBSOCKET_VERSION": "13", **changed}
    body = line(environ, lambda status, headers: said.append((status, headers)))
    assert b"version 13" in b"".join(body)
    assert said[0][0].startswith("400")


def test_whoever_sends_too_fast_is_read_at_the_pace_and_loses_nothing() -> None:
    client = Client(limits=WebSocketLimits(Bucket(100, time.monotonic())))
    client.receive(1)
    begun = time.monotonic()
    for number in range(250):
        client.send(TextMessage(data=str(number)))
    client.hang_up()
    client.served.join(PATIENCE)
    assert client.heard == [*map(str, range(250)), None]
    assert time.monotonic() - begun >= 0.4  # 200 at once, and the others a hundred a second


def test_frames_that_bring_no_message_count_too() -> None:
    client = Client(limits=WebSocketLimits(Bucket(100, time.monotonic())))
    client.receive(1)
    begun = time.monotonic()
    for _ in range(125):
        client.send(Ping())
        client.send(TextMessage(data="x", message_finished=False))
    client.send(TextMessage(data="end"))
    client.hang_up()
    client.served.join(PATIENCE)
    assert client.heard == ["x" * 125 + "end", None]
    assert time.monotonic() - begun >= 0.4


def test_a_message_of_another_protocol_closes_the_line_and_is_told_once() -> None:
    told: list[str] = []
    client = Client(limits=WebSocketLimits(check=check, refused=told.append))
    client.receive(1)
    client.send(TextMessage(data='42["move"]'))
    client.send(TextMessage(data="hello?"))
    client.send(TextMessage(data='42["move"]'))
    client.wait()
    assert client.heard == ['42["move"]', None]
    assert client.receive(1)[0].code == 1008  # type: ignore[attr-defined]
    assert told == ["expected a packet of Engine.IO 4, got 'hello?'"]
    client.hang_up()


def test_who_does_not_answer_a_goodbye_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_GOODBYE_SECONDS", 0.05)
    client = Client()
    client.receive(1)
    gevent.sleep(0)
    client.line.close()
    client.wait()
    assert client.heard == [None]
    client.hang_up()


def test_who_does_not_read_is_not_listened_to_until_they_do() -> None:
    def answer(line: WebSocketConnection) -> None:
        while (message := line.wait()) is not None:
            client.heard.append(message)
            line.send("x" * 500_000)

    client = Client(answer)
    client.receive(1)
    for number in range(20):
        client.send(TextMessage(data=str(number)))
        gevent.sleep(0)
    gevent.sleep(0.3)
    assert len(client.heard) < 20  # the rest would lie in the memory of the server
    read = 0
    while read < 20 * 500_000:
        read += sum(len(event.data) for event in client.receive(1) if isinstance(event, TextMessage))
    assert len(client.heard) == 20
    client.hang_up()
    client.wait()
