"""Connections that nobody needs: counted by address, and closed when they never come into a namespace."""

import io
from typing import Any

import gevent
import pytest
import socketio

from app.core.config import Settings
from app.web.sockets.connections import ConnectionLimits
from app.web.sockets.packets import TextPacket


class Web:
    """A Socket.IO server behind the limits, asked as a WSGI server asks it, by polling."""

    def __init__(self, **settings: Any) -> None:
        self.server = socketio.Server(async_mode="gevent", serializer=TextPacket)
        self.limits = ConnectionLimits(self.server, Settings(**settings), ("/play",))
        self.application = self.limits.install(socketio.WSGIApp(self.server))

    def ask(self, address: str, sid: str = "", body: bytes | None = None) -> tuple[str, str]:
        """The status of a request, and the id of the connection that it opened."""
        said: list[str] = []
        environ = {
            "PATH_INFO": "/socket.io/",
            "QUERY_STRING": "EIO=4&transport=polling" + (f"&sid={sid}" if sid else ""),
            "REQUEST_METHOD": "GET" if body is None else "POST",
            "REMOTE_ADDR": address,
            "CONTENT_LENGTH": str(len(body or b"")),
            "wsgi.input": io.BytesIO(body or b""),
        }
        answer = b"".join(self.application(environ, lambda status, *_: said.append(status))).decode()
        return said[0][:3], answer.partition('"sid":"')[2].partition('"')[0]

    def open(self, address: str) -> str:
        status, sid = self.ask(address)
        assert status == "200"
        return sid


@pytest.mark.parametrize(
    ("mine", "also_mine", "anothers"),
    [
        ("192.0.2.7", "::ffff:192.0.2.7", "192.0.2.8"),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1"),  # a customer is given a /64 at least
    ],
)
def test_an_address_has_room_again_when_one_of_its_connections_is_gone(
    mine: str, also_mine: str, anothers: str
) -> None:
    web = Web(CONNECTIONS_PER_ADDRESS=2)
    first = web.open(mine)
    web.open(also_mine)
    assert web.ask(mine)[0] == web.ask(also_mine)[0] == "429"
    web.open(anothers)
    assert web.ask(mine, first, b"1")[0] == "200"  # goodbye
    web.open(also_mine)


def test_no_limit_is_no_limit() -> None:
    web = Web(CONNECTIONS_PER_ADDRESS=0)
    assert len({web.open("192.0.2.7") for _ in range(50)}) == 50


def test_a_connection_that_comes_into_no_namespace_is_closed_at_the_second_look() -> None:
    web = Web()
    web.server.on("connect", lambda *_: None, namespace="/play")
    lingers, plays = web.open("192.0.2.7"), web.open("192.0.2.8")
    web.limits.close_outsiders()
    assert web.ask("192.0.2.8", plays, b"40/play,")[0] == "200"
    assert web.ask("192.0.2.7", lingers, b"40")[0] == "200"  # which lets everybody in and leads nowhere
    late = web.open("192.0.2.9")
    web.limits.close_outsiders()
    for sid, status in ((lingers, "400"), (plays, "200"), (late, "200")):
        assert web.ask("192.0.2.7", sid, b"3")[0] == status


def test_who_polls_and_sends_far_too_fast_is_closed() -> None:
    web = Web(MOVES_PER_SECOND=200)
    sid = web.open("192.0.2.7")
    body = b"\x1e".join([b"3"] * 16)
    requests = [gevent.spawn(web.ask, "192.0.2.7", sid, body) for _ in range(150)]
    assert ("400", "") in (request.value for request in gevent.iwait(requests))  # the others wait for their turn
    gevent.killall(requests)
    assert web.ask("192.0.2.7", sid, b"3")[0] == "400"
