"""The packets that a client may send over Socket.IO; any other closes its connection. Pure.

Engine.IO and Socket.IO trust their clients: a malformed packet ends in a traceback, binary packets are kept until all
of their parts have arrived, and an event may have the name of the server's own `connect`.

Source: the Engine.IO protocol 4 and the Socket.IO protocol 5, https://socket.io/docs/v4/socket-io-protocol/.
"""

from typing import Any

from socketio import packet

from app.games.base import JSON

_CONTROL = frozenset({"1", "2probe", "3", "5"})  # Engine.IO's close, upgrade ping, pong, and upgrade
_MESSAGES = tuple(f"4{kind}" for kind in (packet.CONNECT, packet.DISCONNECT, packet.EVENT))
_RESERVED = frozenset({"connect", "connect_error", "disconnect", "disconnecting", "newListener", "removeListener"})
_LONGEST_QUOTE = 40  # characters of a packet worth logging


class BadPacket(ValueError):
    """What no client of the protocol sends."""


def check(message: str | bytes) -> None:
    """Refuse anything but an Engine.IO packet that a client may send here. Raises BadPacket."""
    if not isinstance(message, str):
        raise BadPacket(f"expected text, got {len(message)} bytes of binary data")
    if message not in _CONTROL and not message.startswith(_MESSAGES):
        raise BadPacket(f"expected a packet of Engine.IO 4, got {_shortened_quote(message)}")


class TextPacket(packet.Packet):
    """A Socket.IO packet without binary parts, which Parlor's protocol does not use."""

    uses_binary_events = False

    def decode(self, encoded_packet: Any) -> int:
        """Parse a packet. Raises BadPacket for anything a client may not send; returns the number of binary parts:
        none.
        """
        text = encoded_packet if isinstance(encoded_packet, str) else ""
        try:
            parts = super().decode(text)
        except (ValueError, TypeError, RecursionError):
            raise BadPacket(f"expected a packet of Socket.IO 5, got {_shortened_quote(text)}") from None
        if parts or self.packet_type not in (packet.CONNECT, packet.DISCONNECT, packet.EVENT):
            raise BadPacket(f"expected a connection, an event or a goodbye, got {_shortened_quote(text)}")
        if self.packet_type == packet.EVENT:
            name = self.data[0] if isinstance(self.data, list) and self.data else None
            if not isinstance(name, str):
                raise BadPacket(f"expected an event with a name, got {_shortened_quote(text)}")
            if name in _RESERVED:
                raise BadPacket(f"expected an event of the protocol, got {name!r}, which only the server may raise")
        return 0


def error_answer(code: str, message: str, violation: str | None = None) -> JSON:
    """The acknowledgement of an event that is refused; `violation` is the rule that a move breaks."""
    more = {} if violation is None else {"violation": violation}
    return {"ok": False, "error": {"code": code, "message": message, **more}}


def _shortened_quote(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…")
