"""The embedded broker: private, and what it was told survives a kill."""

import os
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest
from redis import Redis

from app.config import Settings
from app.errors import Invalid
from tests.stack import PATIENCE, wait_until
from workers import broker


def start(settings: Settings) -> "subprocess.Popen[bytes]":
    for folder in ("run", "broker"):
        (settings.home / folder).mkdir(exist_ok=True)
    command = broker.command(settings.redis_socket, settings.home / "broker")
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait_until(lambda: broker.answers(settings.redis_url), "an answer")
    return server


def test_it_listens_on_a_socket_for_its_owner_alone_and_on_no_port(settings: Settings) -> None:
    server = start(settings)
    try:
        assert stat.S_IMODE(settings.redis_socket.stat().st_mode) == 0o700
        with Redis.from_url(settings.redis_url) as client:
            assert client.info("server")["tcp_port"] == 0
    finally:
        server.terminate()
        assert server.wait(PATIENCE) == 0


def test_what_it_was_told_survives_a_kill(settings: Settings) -> None:
    server = start(settings)
    with Redis.from_url(settings.redis_url) as client:
        client.rpush("queue", "task")
    time.sleep(1.2)  # it writes to disk every second
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    server = start(settings)
    try:
        with Redis.from_url(settings.redis_url) as client:
            assert client.lrange("queue", 0, -1) == [b"task"]
    finally:
        server.terminate()
        server.wait(20)


def test_nobody_answers_where_nothing_listens(settings: Settings) -> None:
    assert not broker.answers(settings.redis_url)


def test_a_machine_without_the_program_is_told_which_setting_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_file", lambda _: False)
    with pytest.raises(Invalid, match="REDIS_URL"):
        broker.server_program()
