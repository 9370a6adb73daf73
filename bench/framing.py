"""Engine.IO 4 and Socket.IO 5 as text frames of a WebSocket, as much of them as a benchmark's player needs. Pure.

A whole Socket.IO client would cost more than the server that is to be measured.
"""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

NAMESPACE = "/play"
PONG = "3"
_CONNECTED = f"40{NAMESPACE}"
_REFUSED = f"44{NAMESPACE},"
_EVENT = f"42{NAMESPACE},"
_ACK = f"43{NAMESPACE},"


@dataclass(frozen=True, slots=True)
class Packet:
    """The content of a frame. `kind` is open, connected, refused, ack, ping, closed, other, or the name of an event."""

    kind: str
    body: Any = None
    number: int | None = None  # of the event that an acknowledgement answers


def path(match: str) -> str:
    """The path at which to open the WebSocket of a match."""
    return f"/socket.io/?EIO=4&transport=websocket&match={quote(match)}"


def connect(ticket: str) -> str:
    """The packet that enters the namespace."""
    return f"40{NAMESPACE},{json.dumps({'ticket': ticket})}"


def move(number: int, move_id: str, ply: int, encoded_text: str) -> str:
    """A `move` event to be acknowledged as `number`; the text is already JSON."""
    return f'42{NAMESPACE},{number}["move",{{"move_id":"{move_id}","ply":{ply},"text":{encoded_text}}}]'


def read(frame: str) -> Packet:
    """The packet in a frame that came from the server."""
    if frame.startswith(_EVENT):
        name, body = json.loads(frame[len(_EVENT) :])
        return Packet(name, body)
    if frame.startswith(_ACK):
        start = frame.index("[")
        return Packet("ack", json.loads(frame[start:])[0], int(frame[len(_ACK) : start]))
    if frame == "2":
        return Packet("ping")
    if frame.startswith(_CONNECTED):
        return Packet("connected")
    if frame.startswith(_REFUSED):
        return Packet("refused", json.loads(frame[len(_REFUSED) :]))
    if frame.startswith("0"):
        return Packet("open")
    return Packet("closed" if frame.startswith(("1", "41")) else "other")
