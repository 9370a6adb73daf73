"""The embedded broker: private, and independent of the disk."""

import os
import signal
import stat
import subprocess
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


def test_it_writes_nothing_to_the_disk_and_answers_its_probe(settings: Settings) -> None:
    server = start(settings)
    probe = broker.Probe(settings.redis_socket)
    try:
        with Redis.from_url(settings.redis_url) as client:
            client.rpush("queue", *("task" * 100 for _ in range(1000)))
        wait_until(probe, "an answer to the probe")
        os.kill(server.pid, signal.SIGSTOP)
        while probe():  # what was answered before
            pass
        os.kill(server.pid, signal.SIGCONT)
        wait_until(probe, "an answer after a while")
    finally:
        server.terminate()
        server.wait(PATIENCE)
    assert not probe()
    assert list((settings.home / "broker").iterdir()) == []


def test_nobody_answers_where_nothing_listens(settings: Settings) -> None:
    assert not broker.answers(settings.redis_url)


def test_a_machine_without_the_program_is_told_which_setting_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_file", lambda _: False)
    with pytest.raises(Invalid, match="REDIS_URL"):
        broker.server_program()
