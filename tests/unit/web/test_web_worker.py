"""Reading from a client: how long and for how much the server waits, and for how many at once."""

import socket
from collections.abc import Iterator

import pytest
from gunicorn.http.errors import LimitRequestHeaders

from workers.web_worker import ClientReader, WaitedFor


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        yield near, far


def read_for_ever(reader: ClientReader, client: socket.socket) -> None:
    """Read bytes that come one by one."""
    while True:
        client.sendall(b"x")
        reader.chunk()


def test_what_does_not_come_in_time_is_not_waited_for(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    reader = ClientReader(near, WaitedFor(10))
    far.sendall(b"a byte")
    reader.expect(0.05, 10**9)
    assert reader.chunk() == b"a byte"
    with pytest.raises(TimeoutError):  # each byte comes in time, all of them do not
        read_for_ever(reader, far)


def test_who_sends_fast_enough_has_as_long_as_it_takes(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    reader = ClientReader(near, WaitedFor(10))
    far.sendall(b"x" * 60_000)
    reader.expect(60, 10**6, rate=10)
    reader.chunk(60_000)
    reader._began -= 3600  # an hour ago
    far.sendall(b"x")
    assert reader.chunk() == b"x"
    reader._began -= 3600
    far.sendall(b"x")
    with pytest.raises(TimeoutError):
        reader.chunk()


def test_no_more_is_read_than_was_expected(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    reader = ClientReader(near, WaitedFor(10))
    reader.expect(60, 5000)
    with pytest.raises(LimitRequestHeaders):
        read_for_ever(reader, far)
    assert reader.received == 5001


def test_of_too_many_the_one_that_was_waited_for_longest_is_hung_up_on() -> None:
    waited_for = WaitedFor(2)
    pairs = [socket.socketpair() for _ in range(3)]
    first, second, third = (ClientReader(near, waited_for) for near, _ in pairs)
    first.expect(60, 10)
    second.expect(60, 10)
    first.expect(60, 10)  # the next request of the same connection
    third.expect(60, 10)
    closed = []
    for near, far in pairs:
        far.settimeout(0.05)
        try:
            closed.append(far.recv(1) == b"")
        except TimeoutError:
            closed.append(False)
        near.close()
        far.close()
    assert closed == [False, True, False]
