"""The frames of the benchmark's players against those of python-socketio, which the server speaks."""

import json

import pytest
from socketio.packet import ACK, CONNECT, CONNECT_ERROR, DISCONNECT, EVENT, Packet

from bench import framing


def from_server(kind: int, data: object = None, number: int | None = None) -> framing.Packet:
    return framing.read("4" + str(Packet(kind, data, namespace="/play", id=number).encode()))


def to_server(frame: str) -> Packet:
    assert frame[0] == "4"  # a message of Engine.IO
    return Packet(encoded_packet=frame[1:])


def test_a_move_arrives_as_the_event_that_the_protocol_describes() -> None:
    packet = to_server(framing.move(7, "0-1-7", 12, json.dumps('It is "Öl", not [2]')))
    assert (packet.packet_type, packet.namespace, packet.id) == (EVENT, "/play", 7)
    assert packet.data == ["move", {"move_id": "0-1-7", "ply": 12, "text": 'It is "Öl", not [2]'}]


def test_a_ticket_arrives_as_auth_of_the_namespace() -> None:
    packet = to_server(framing.connect("abc.def"))
    assert (packet.packet_type, packet.namespace, packet.data) == (CONNECT, "/play", {"ticket": "abc.def"})


def test_an_acknowledgement_names_the_move_that_it_answers() -> None:
    packet = from_server(ACK, [{"ok": True, "ply": 13}], 7)
    assert packet == framing.Packet("ack", {"ok": True, "ply": 13}, 7)


def test_an_event_has_its_name_and_body() -> None:
    body = {"ply": 3, "transcript": [{"text": '43/play,1["x"]'}]}
    assert from_server(EVENT, ["change", body]) == framing.Packet("change", body)


def test_a_refused_connection_says_why() -> None:
    assert from_server(CONNECT_ERROR, {"message": "no"}) == framing.Packet("refused", {"message": "no"})


@pytest.mark.parametrize(
    ("frame", "kind"),
    [('0{"sid":"x"}', "open"), ('40/play,{"sid":"x"}', "connected"), ("2", "ping"), ("1", "closed"), ("6", "other")],
)
def test_other_frames_are_told_apart(frame: str, kind: str) -> None:
    assert framing.read(frame).kind == kind


def test_a_server_that_disconnects_has_closed() -> None:
    assert from_server(DISCONNECT).kind == "closed"


def test_the_match_is_in_the_address_as_it_is() -> None:
    assert framing.path("a-b_c").endswith("match=a-b_c")
    assert framing.path("a b&c").endswith("match=a%20b%26c")
