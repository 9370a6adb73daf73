"""Harm that is not the death of a process: a broker that forgets, a locked database, a web process that stands still,
packets that are none, one connection that asks without end, a full disk, a database server that is restarted."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping

import websocket
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from tests.participant import NAMESPACE, request
from tests.services import PostgresServer
from tests.stack import Stack
from tests.stub_openai import Reply, StubServer
from tests.tables import settings_of
from tests.volume import Volume

FLUSHED, LOCKED, STILL = "flushed broker", "locked database", "paused web"
GARBAGE, FLOOD = "garbage", "sync flood"
FULL, RESTARTED, AWAY, SILENT = "full disk", "restarted database", "database away", "model's server away"
LOCKED_FOR, STILL_FOR, FULL_FOR = 1.2, 3.0, 3.0  # seconds
AWAY_FOR, SILENT_FOR = 12.0, 8.0  # beyond what a transaction waits for a lock, and what a call is repeated for
PACKETS = 200

Harm = Callable[[Stack, int], None]  # does it once; is given the process that serves


def felt_by(harm: str) -> str:
    """The process that shows by its work that a harm is over."""
    return "turns" if harm in (FLUSHED, SILENT) else "web"


def do(harm: Harm, stack: Stack, pid: int) -> None:
    """Do it once. Raises nothing where somebody else was killed meanwhile."""
    gone = (OSError, RedisError, SQLAlchemyError, websocket.WebSocketException, ValueError)
    with contextlib.suppress(*gone):
        harm(stack, pid)


def filled(volume: Volume) -> Harm:
    """A disk on which nobody finds room for a while."""

    def fill(_stack: Stack, _pid: int) -> None:
        until = time.monotonic() + FULL_FOR
        try:
            while time.monotonic() < until:  # somebody may free what we then take
                volume.fill()
                time.sleep(0.1)
        finally:
            volume.make_room()

    return fill


def stopped(server: PostgresServer) -> Harm:
    """A database server that is away for a while."""

    def stop(_stack: Stack, _pid: int) -> None:
        server.stop()
        time.sleep(AWAY_FOR)
        server.start()

    return stop


def silenced(stub: StubServer, scripts: Mapping[str, Reply]) -> Harm:
    """A server of models that answers no call for a while; `scripts` are its models as they are else."""

    def silence(_stack: Stack, _pid: int) -> None:
        for name in scripts:
            stub.script(name, Reply("The server is being started.", status=503))
        time.sleep(SILENT_FOR)
        for name, reply in scripts.items():
            stub.script(name, reply)

    return silence


def restarted(server: PostgresServer) -> Harm:
    """A database server that is stopped without a warning, and comes back."""
    return lambda _stack, _pid: server.restart()


def _still(_stack: Stack, pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(STILL_FOR)
    os.kill(pid, signal.SIGCONT)


def _flush(stack: Stack, _pid: int) -> None:
    url = stack.env["REDIS_URL"] or f"unix://{stack.home / 'run' / 'redis.sock'}"
    with Redis.from_url(url, socket_timeout=2) as client:
        client.flushdb()


def _lock_database(stack: Stack, _pid: int) -> None:
    lock_database(stack, LOCKED_FOR)


def locked_for_long(stack: Stack, _pid: int) -> None:
    """An SQLite database that somebody has locked for longer than anybody waits."""
    lock_database(stack, AWAY_FOR)


def lock_database(stack: Stack, seconds: float) -> None:
    """Let nobody write for so long."""
    engine = create_engine(settings_of(stack).database_url)
    try:
        _lock(engine, seconds)
    finally:
        engine.dispose()


def _lock(engine: Engine, seconds: float) -> None:
    with engine.begin() as connection:  # on SQLite a transaction that may write begins with its lock
        if engine.dialect.name == "postgresql":
            connection.execute(text('LOCK TABLE "match", event IN EXCLUSIVE MODE'))
        time.sleep(seconds)


def _packets(stack: Stack, *, flood: bool) -> None:
    """Send what no client sends, without a ticket; or, from a seat of its own, one question after the other."""
    status, answer = request(stack.url, {"game": "taboo", "role": "attacker"}) if flood else (0, {"match": "none"})
    if flood and status != 201:
        return
    address = stack.url.replace("http", "ws", 1) + f"/socket.io/?EIO=4&transport=websocket&match={answer['match']}"
    connection = websocket.create_connection(address, timeout=5, suppress_origin=True)
    try:
        if flood:
            connection.send(f"40{NAMESPACE},{json.dumps({'ticket': answer['ticket']})}")
        for number in range(PACKETS):
            connection.send(f'42{NAMESPACE},{number}["sync",{{}}]' if flood else f"4x{'{' * (number % 50)}")
    finally:
        connection.shutdown()


HARMS: Mapping[str, Harm] = {
    FLUSHED: _flush,
    LOCKED: _lock_database,
    STILL: _still,
    GARBAGE: lambda stack, _pid: _packets(stack, flood=False),
    FLOOD: lambda stack, _pid: _packets(stack, flood=True),
}
