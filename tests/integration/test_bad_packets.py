"""What no client of the protocol sends closes its own connection, costs one line in the log, and harms nobody else."""

import contextlib
import json
import urllib.error
import urllib.request
from contextlib import ExitStack, closing

import pytest
import websocket
from websocket import WebSocketBadStatusException, WebSocketConnectionClosedException

from tests.another_web import another_web
from tests.participant import Participant, Table
from tests.stack import Stack, wait_until
from tests.tables import taboo

DEEP = "[" * 100_000


def log_of(parlor: Stack) -> list[str]:
    """What the web process has logged so far."""
    return (parlor.home / "logs" / "web.log").read_text().splitlines()


def open_socket(server: str, match: str = "", **headers: str) -> websocket.WebSocket:
    """A WebSocket without a ticket, past the server's first packet."""
    address = f"{server.replace('http', 'ws')}/socket.io/?EIO=4&transport=websocket&match={match}"
    connection = websocket.create_connection(address, timeout=20, header=headers)
    assert connection.recv().startswith("0{")
    return connection


def enter(table: Table) -> websocket.WebSocket:
    """A WebSocket at a seat, past its view."""
    connection = open_socket(table.server, table.match)
    connection.send("40/play," + json.dumps({"ticket": table.ticket}))
    assert connection.recv().startswith("40/play,{")
    assert connection.recv().startswith('42/play,["view"')
    return connection


def closed_by_server(connection: websocket.WebSocket) -> bool:
    """Read until the server has closed the connection; a server that never does fails the test by the time-out."""
    try:
        while connection.recv() != "":
            pass
    except (WebSocketConnectionClosedException, ConnectionError):
        pass
    return True


ANYBODY = [
    "4x", "4", "x", "", "7", "6", "0", "2", "3x", "b4AAA", "4[[", "4null", '4"2/play"', f"4{DEEP}", "42", "42{}",
    "42[]",
    "42[7]", "42[[]]", '42[{"a":1}]', f"42{DEEP}", "42/play", "42/play,", '42/play,["move"', f"42/play,{'9' * 200}[]",
    "43/play,1[]", '44/play,{"message":"x"}', '451-["a",{"_placeholder":true,"num":0}]', '459999999999-["a"]', "461-[]",
    "4²", "49", '42["connect"]', '42["disconnect"]',
]  # fmt: skip
SEATED = [
    '["connect",{"QUERY_STRING":"match=x"}]',
    '["disconnect"]',
    '["connect_error"]',
    "[]",
    "{}",
    '["move',
    '[["move"]]',
]


def test_a_bad_packet_closes_its_connection_with_one_line(parlor: Stack) -> None:
    table = taboo(parlor, "attacker", "marzipan")
    with Participant(table) as bystander:
        before = len(log_of(parlor))
        for packet in ANYBODY:
            with closing(open_socket(parlor.url)) as connection:
                connection.send(packet)
                assert closed_by_server(connection), packet[:60]
        for packet in SEATED:
            with closing(enter(table)) as connection:
                connection.send(f"42/play,{packet}")
                assert closed_by_server(connection), packet
        with closing(open_socket(parlor.url)) as connection:
            connection.send_binary(b"\x04\x00")
            assert closed_by_server(connection)
        with closing(open_socket(parlor.url)) as connection:
            connection.send("40/admin,")
            assert connection.recv().startswith("44/admin,")  # refused as ever, and no bad packet
        sent = len(ANYBODY) + len(SEATED) + 1
        logged = log_of(parlor)[before:]
        assert 1 <= len(logged) <= sent
        assert all("a connection was closed" in line and len(line) < 400 for line in logged), logged
        assert bystander.move("It is sweet.")["ok"]
        assert bystander.connections == 1


def test_an_unfinished_handshake_leaves_no_traceback(parlor: Stack) -> None:
    before = len(log_of(parlor))
    with urllib.request.urlopen(f"{parlor.url}/socket.io/?EIO=4&transport=polling", timeout=20) as response:  # noqa: S310
        sid = json.loads(response.read().decode()[1:])["sid"]
    address = f"{parlor.url.replace('http', 'ws')}/socket.io/?EIO=4&transport=websocket&sid={sid}"
    websocket.create_connection(address, timeout=20).close()
    with closing(open_socket(parlor.url)) as connection:
        connection.send("4x")
        assert closed_by_server(connection)
    assert "Traceback" not in "\n".join(log_of(parlor)[before:])


@pytest.mark.parametrize(
    "body", [b"4x", b"\xff\xfe", b"b4AAA", b"d=4x", b"\x1e".join([b"3"] * 20), b"42[]", f"4{DEEP}"[:90_000].encode()]
)
def test_a_bad_packet_by_polling_closes_that_connection(parlor: Stack, body: bytes) -> None:
    before = len(log_of(parlor))
    base = f"{parlor.url}/socket.io/?EIO=4&transport=polling"
    with urllib.request.urlopen(base, timeout=20) as response:  # noqa: S310 - our own address
        sid = json.loads(response.read().decode()[1:])["sid"]

    def is_open() -> bool:
        try:
            urllib.request.urlopen(f"{base}&sid={sid}", b"3", timeout=20).close()  # noqa: S310
        except urllib.error.HTTPError as error:
            error.close()
            return False
        return True

    assert is_open()
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(f"{base}&sid={sid}", body, timeout=20).close()  # noqa: S310
    assert not is_open()
    assert "Traceback" not in "\n".join(log_of(parlor)[before:])


def test_an_address_may_have_so_many_connections_and_no_more(parlor: Stack) -> None:
    limits = {"CONNECTIONS_PER_ADDRESS": "3", "TRUSTED_PROXIES": "1"}
    with another_web(parlor, limits) as server, ExitStack() as opened:
        here = {"X-Forwarded-For": "192.0.2.7"}
        mine = [opened.enter_context(closing(open_socket(server, **here))) for _ in range(3)]
        with pytest.raises(WebSocketBadStatusException) as refused:
            open_socket(server, **here)
        assert refused.value.status_code == 429
        for other in ("192.0.2.8", "2001:db8::1"):
            opened.enter_context(closing(open_socket(server, **{"X-Forwarded-For": other})))
        mine[0].close()

        def comes_in() -> bool:
            try:
                opened.enter_context(closing(open_socket(server, **here)))
            except WebSocketBadStatusException:
                return False
            return True

        wait_until(comes_in, "room for one more, when one is gone")
