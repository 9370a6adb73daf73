"""A start before the database and the Redis server are there, as after a power cut, waits for them and says so."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from app.core.config import ROOT
from tests.forwarder import Forwarder
from tests.stack import PATIENCE, TURNS_ALONE, Stack, free_port, wait_until


def waits(parlor: Stack, setting: str) -> None:
    wait_until(lambda: f"waiting: {setting}: " in parlor.output(), f"a line about {setting}")


def through(url: str, port: int) -> str:
    """The same service by another port of this machine."""
    parts = urlsplit(url)
    user = f"{parts.username or ''}{f':{parts.password}' if parts.password else ''}@" if parts.username else ""
    return parts._replace(netloc=f"{user}127.0.0.1:{port}").geturl()


def test_a_start_waits_for_a_database_and_a_redis_server_that_are_not_there_yet(
    service_database: str, service_redis: str, stack: Callable[..., Stack]
) -> None:
    database, redis = free_port(), free_port()
    urls = {"DATABASE_URL": through(service_database, database), "REDIS_URL": through(service_redis, redis)}
    parlor = stack({**TURNS_ALONE, **urls}, wait=False)
    opened = []
    for setting, port, url in (("REDIS_URL", redis, service_redis), ("DATABASE_URL", database, service_database)):
        waits(parlor, setting)
        parts = urlsplit(url)
        opened.append(Forwarder(port, str(parts.hostname), parts.port or {"redis": 6379}.get(parts.scheme, 5432)))
    parlor.wait_until_ready()
    assert parlor.output().count("waiting: ") == 2
    assert parlor.stop() == 0
    for each in opened:
        each.close()


@pytest.mark.parametrize(
    ("setting", "url"),
    [
        ("REDIS_URL", "redis://127.0.0.1:1/0"),
        ("REDIS_URL", "redis://nowhere.invalid/0"),
        ("DATABASE_URL", "postgresql://127.0.0.1:1/nowhere"),
        ("DATABASE_URL", "postgresql://nowhere.invalid/nowhere"),
        ("DATABASE_URL", "postgresql:///nowhere?host=/nowhere"),
    ],
)
def test_a_start_that_waits_says_for_what_and_can_be_stopped(
    stack: Callable[..., Stack], setting: str, url: str
) -> None:
    parlor = stack({setting: url}, wait=False)
    waits(parlor, setting)
    assert parlor.stop(signal.SIGTERM) == 0
    assert parlor.output().count("\n") == 1


def prepared(home: Path, url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "workers.prepare"],
        cwd=ROOT, env={**os.environ, "PARLOR_HOME": str(home), "DATABASE_URL": url}, capture_output=True, text=True,
        timeout=PATIENCE,
    )  # fmt: skip


@pytest.fixture
def refusing() -> Iterator[Callable[[bytes, str], int]]:
    """A server that answers every start of a connection as PostgreSQL does when it lets nobody in; gives its port."""
    listeners: list[socket.socket] = []

    def refuse(listener: socket.socket, answer: bytes) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                if client.recv(1000)[4:8] in (b"\x04\xd2\x16\x2f", b"\x04\xd2\x16\x30"):  # it asks for SSL, or GSSAPI
                    client.sendall(b"N")
                    client.recv(1000)
                client.sendall(answer)

    def serve(code: bytes, says: str) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        fields = b"SFATAL\0VFATAL\0C%b\0M%b\0\0" % (code, says.encode())
        answer = b"E" + (len(fields) + 4).to_bytes(4, "big") + fields
        threading.Thread(target=refuse, args=(listener, answer), daemon=True).start()
        return int(listener.getsockname()[1])

    yield serve
    for each in listeners:
        each.shutdown(socket.SHUT_RDWR)
        each.close()


@pytest.mark.parametrize(
    ("code", "says", "later"),
    [
        (b"57P03", "das Datenbanksystem startet", True),
        (b"57P03", "the database system is in recovery mode", True),
        (b"53300", "sorry, too many clients already", True),
        (b"28P01", "Passwort-Authentifizierung fehlgeschlagen", False),
        (b"3D000", 'database "parlor" does not exist', False),
    ],
)
def test_what_a_database_answers_tells_whether_to_wait_for_it(
    home: Path, refusing: Callable[[bytes, str], int], code: bytes, says: str, later: bool
) -> None:
    done = prepared(home, f"postgresql://somebody@127.0.0.1:{refusing(code, says)}/parlor")
    assert done.returncode == (os.EX_TEMPFAIL if later else 2), done
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: DATABASE_URL: ")
    assert says in done.stderr


def test_a_wrong_name_of_a_database_is_one_line(service_database: str, home: Path) -> None:
    done = prepared(home, f"{service_database}_of_nobody")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
    assert "does not exist" in done.stderr
