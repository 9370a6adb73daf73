"""Clients that send what no browser does: bodies without end, heads without end, a byte a second, or nothing at all.

`python -m tests.chaos.hostile URL KIND --connections 8 --seconds 10` has so many of them at once, each of which
connects again when it is hung up on, and prints what came of it as JSON. They run in a process of their own, so that
they take no time from whoever measures.
"""

import argparse
import contextlib
import json
import select
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.stack import ROOT

MB = 1_000_000
PAUSE = 0.5  # seconds before one connects again
_PIECE = b"x" * 65_536
_NOWHERE = "/there/is/nothing/here"


@dataclass
class Attempt:
    """One connection: what the server let it send, what it answered, and how long that took."""

    sent: int = 0
    status: int = 0  # 0: hung up on without an answer, or never
    seconds: float = 0.0


def _head(method: str = "POST", path: str = _NOWHERE, *fields: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *fields, "", ""]
    return "\r\n".join(lines).encode()


def _length(length: int, megabytes_a_second: float = 0, path: str = _NOWHERE) -> Iterator[bytes]:
    """A body of so many bytes, as fast as it is taken or not faster than that."""
    yield _head("POST", path, f"Content-Length: {length}")
    began, sent = time.monotonic(), 0
    while sent < length:
        yield _PIECE
        sent += len(_PIECE)
        if megabytes_a_second and (early := began + sent / MB / megabytes_a_second - time.monotonic()) > 0:
            time.sleep(early)


def _chunked(chunk: bytes) -> Iterator[bytes]:
    """A body in chunks that has no end."""
    yield _head("POST", _NOWHERE, "Transfer-Encoding: chunked")
    pieces = b"%x\r\n%s\r\n" % (len(chunk), chunk) * (len(_PIECE) // (len(chunk) + 8) + 1)
    while True:
        yield pieces


def _trickling_body() -> Iterator[bytes]:
    yield _head("POST", _NOWHERE, "Content-Length: 50000")
    while True:
        time.sleep(1)
        yield b"x"


def _trickling_head() -> Iterator[bytes]:
    yield b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: "
    while True:
        time.sleep(1)
        yield b"x"


def _endless_head() -> Iterator[bytes]:
    yield b"GET / HTTP/1.1\r\nHost: localhost\r\n"
    while True:
        yield b"X-More: " + b"x" * 8000 + b"\r\n"


def _silent() -> Iterator[bytes]:
    while True:
        time.sleep(1)
        yield b""


def _pipelined() -> Iterator[bytes]:
    while True:
        yield _head("GET", "/healthz") * 50


def _upgrade() -> Iterator[bytes]:
    """A WebSocket's handshake with a body that never ends."""
    fields = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    yield _head("GET", "/socket.io/?EIO=4&transport=websocket", *fields, key, f"Content-Length: {60 * MB}")
    while True:
        yield _PIECE


KINDS: Mapping[str, Callable[[], Iterator[bytes]]] = {
    "60 MB": lambda: _length(60 * MB),
    "500 MB announced": lambda: _length(500 * MB),
    "60 MB at 12 MB/s": lambda: _length(60 * MB, 12),
    "60 MB to an upload form": lambda: _length(60 * MB, 0, "/admin/datasets/import"),
    "endless chunks": lambda: _chunked(b"x" * 4096),
    "chunks of a byte": lambda: _chunked(b"x"),
    "body of a byte a second": _trickling_body,
    "head of a byte a second": _trickling_head,
    "endless head": _endless_head,
    "silent connections": _silent,
    "pipelined requests": _pipelined,
    "WebSocket with a body": _upgrade,
}


def attack(url: str, pieces: Iterator[bytes], until: float) -> Attempt:
    """Send from one connection until it is closed, or `until`, a time of the monotonic clock."""
    place, attempt, began = urlsplit(url), Attempt(), time.monotonic()
    answer = b""
    with contextlib.suppress(OSError), socket.create_connection((place.hostname, place.port), timeout=30) as client:
        try:
            for piece in pieces:
                if time.monotonic() > until:
                    break
                client.settimeout(max(0.1, until - time.monotonic()))
                client.sendall(piece)
                attempt.sent += len(piece)
                if (more := _heard(client)) is not None:
                    answer += more
                    if not more or len(answer) > MB or b" 413 " in answer:
                        break
        except OSError:
            pass
        with contextlib.suppress(OSError):
            client.settimeout(0.5)
            answer += client.recv(65_536)
    first = answer.split(b"\r\n", 1)[0].split()
    attempt.status = int(first[1]) if len(first) > 1 and first[1].isdigit() else 0
    attempt.seconds = time.monotonic() - began
    return attempt


def _heard(client: socket.socket) -> bytes | None:
    """What has come, b"" where the server has hung up, None where there is nothing yet."""
    return client.recv(65_536) if select.select([client], [], [], 0)[0] else None


def attack_together(url: str, kind: str, connections: int, seconds: float) -> list[Attempt]:
    """So many connections at once, again and again for so long."""
    until, attempts = time.monotonic() + seconds, list[Attempt]()

    def again_and_again() -> None:
        while time.monotonic() < until:
            attempts.append(attack(url, KINDS[kind](), until))
            time.sleep(PAUSE)

    threads = [threading.Thread(target=again_and_again, daemon=True) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 60)
    return attempts


@contextlib.contextmanager
def attacked(url: str, kind: str, connections: int, seconds: float) -> Iterator[list[str]]:
    """The same in a process of its own beside the block; the list has one line with what came of it in the end."""
    command = [sys.executable, "-m", "tests.chaos.hostile", url, kind]
    command += ["--connections", str(connections), "--seconds", str(seconds)]
    found: list[str] = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield found
        finally:
            out, _ = process.communicate()
            found.append(out.strip())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.hostile", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    attempts = attack_together(options.url, options.kind, options.connections, options.seconds)
    answers = Counter(str(each.status or "none") for each in attempts)
    most = max((each.sent for each in attempts), default=0)
    print(json.dumps({"attempts": len(attempts), "answers": dict(answers), "most_sent": most}))


if __name__ == "__main__":
    main()
