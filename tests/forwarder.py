"""A port that leads to a server, and can be closed: how a test takes a database or a model away from who uses it."""

import contextlib
import select
import socket
import threading


class Forwarder:
    """A port that leads to a server until it is closed; then nobody listens there, and open connections are cut."""

    def __init__(self, port: int, host: str, to: int) -> None:
        self.port, self._to = port, (host, to)
        self._open: list[socket.socket] = []
        self.listen()

    def listen(self) -> None:
        """Be there (again)."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        """Be gone."""
        with contextlib.suppress(OSError):  # gone already
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._open = []

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(self._to)
                self._open += [near, far]
                threading.Thread(target=_carry, args=(near, far), daemon=True).start()


def _carry(near: socket.socket, far: socket.socket) -> None:
    with contextlib.suppress(OSError), near, far:
        while True:
            for source in select.select([near, far], [], [])[0]:
                data = source.recv(1 << 16)
                if not data:
                    return
                (far if source is near else near).sendall(data)
