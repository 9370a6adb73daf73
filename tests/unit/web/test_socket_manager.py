"""Sockets that go: what that costs does not grow with the number of those that stay."""

from collections.abc import Sequence

import pytest
import socketio

from app.web.sockets.socket_manager import SocketManager
from tests.effort import calls


def connected(number: int) -> tuple[SocketManager, Sequence[str]]:
    server = socketio.Server(client_manager=SocketManager(), async_mode="threading")
    manager = server.manager
    sids = [manager.connect(manager.pre_connect(f"engine {each}", "/play"), "/play") for each in range(number)]
    return manager, sids


def test_a_socket_that_goes_costs_the_same_among_thousands() -> None:
    costs = []
    for number in (10, 3000):
        manager, sids = connected(number)
        manager.pre_disconnect(sids[5], "/play")
        costs.append(calls(lambda: manager.disconnect(sids[5], "/play")))
    assert costs[0] == costs[1]


def test_a_socket_that_has_gone_is_in_no_room_and_the_others_stay_in_theirs() -> None:
    manager, sids = connected(3)
    for sid in sids:
        manager.enter_room(sid, "/play", "both seats")
    manager.leave_room(sids[2], "/play", "both seats")
    assert [sorted(manager.get_rooms(sid, "/play")) for sid in sids] == [
        sorted([sids[0], "both seats"]), sorted([sids[1], "both seats"]), [sids[2]],
    ]  # fmt: skip
    manager.pre_disconnect(sids[0], "/play")
    manager.disconnect(sids[0], "/play")
    assert manager.get_rooms(sids[0], "/play") == []
    assert [manager.is_connected(sid, "/play") for sid in sids] == [False, True, True]
    assert [sid for sid, _ in manager.get_participants("/play", "both seats")] == [sids[1]]
    for sid in sids[1:]:
        manager.pre_disconnect(sid, "/play")
        manager.disconnect(sid, "/play")
    assert (manager.rooms, manager.pending_connect, manager.pending_disconnect) == ({}, {}, {})


def test_a_room_may_not_be_named_like_a_socket() -> None:
    manager, sids = connected(2)
    with pytest.raises(ValueError, match="sid room"):
        manager.enter_room(sids[0], "/play", sids[1])
    assert manager.get_rooms(sids[0], "/play") == [sids[0]]
