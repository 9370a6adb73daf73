"""The connected sockets: python-socketio's list of them, with an index by socket.

When a socket disconnects, the library searches every room of its namespace for it, and each socket has a room of its
own: with thousands of them connected, one disconnect would keep the event loop busy for milliseconds.
"""

from typing import Any

from socketio import Manager


class SocketManager(Manager):
    """Knows the rooms of each socket, so that a disconnect costs the same however many sockets there are."""

    def __init__(self) -> None:
        super().__init__()
        self._rooms_of: dict[tuple[str, str], set[str | None]] = {}  # by namespace and socket

    def basic_enter_room(self, sid: str, namespace: str, room: str | None, eio_sid: str | None = None) -> None:
        """As the library does. Raises ValueError for an impossible socket or room."""
        super().basic_enter_room(sid, namespace, room, eio_sid)
        self._rooms_of.setdefault((namespace, sid), set()).add(room)

    def basic_leave_room(self, sid: str, namespace: str, room: str | None) -> None:
        """As the library does."""
        super().basic_leave_room(sid, namespace, room)
        self._rooms_of.get((namespace, sid), set()).discard(room)

    def basic_disconnect(self, sid: str, namespace: str, **_options: Any) -> None:
        """Forget a socket, its rooms, and anything still expected from it."""
        for room in tuple(self._rooms_of.pop((namespace, sid), ())):
            self.basic_leave_room(sid, namespace, room)
        self.callbacks.pop(sid, None)
        for pending in (self.pending_connect, self.pending_disconnect):
            if sid in pending.get(namespace, ()):
                pending[namespace].remove(sid)
                if not pending[namespace]:
                    del pending[namespace]

    def get_rooms(self, sid: str, namespace: str) -> list[str]:
        """The rooms of a socket, without that of the whole namespace."""
        return [room for room in self._rooms_of.get((namespace, sid), ()) if room is not None]
