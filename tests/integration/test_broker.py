"""The embedded broker: private, and independent of the disk."""

import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from redis import Redis

from app.core.config import Settings
from tests.stack import PATIENCE, wait_until
from workers import broker


def start(settings: Settings) -> "subprocess.Popen[bytes]":
    for folder in ("run", "broker"):
        (settings.home / folder).mkdir(exist_ok=True)
    program = broker.server_program()
    assert program is not None
    command = broker.command(program, settings.redis_socket, settings.home / "broker")
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


@pytest.mark.parametrize(
    ("of_the_system", "of_the_wheel", "expected"),
    [
        ({"redis-server": "7.0.15"}, "6.2.14", "redis-server"),
        ({"redis-server": "7.0.15", "valkey-server": "8.1.0"}, "6.2.14", "valkey-server"),
        ({"redis-server": "6.2.7"}, "6.2.14", "wheel"),
        ({"redis-server": "6.2.7"}, None, "redis-server"),
        ({"redis-server": "5.0.14"}, None, None),
        ({"redis-server": "nonsense"}, None, None),
        ({}, "6.2.14", "wheel"),
        ({}, None, None),
    ],
)
def test_the_newest_server_of_the_machine_is_taken_if_it_is_new_enough(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    of_the_system: dict[str, str],
    of_the_wheel: str | None,
    expected: str | None,
) -> None:
    for name, version in {**of_the_system, **({"wheel": of_the_wheel} if of_the_wheel else {})}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho Redis server v={version} sha=00000000:0\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(broker, "_OTHER_FOLDERS", ())
    wheel = tmp_path / "wheel" if of_the_wheel else None
    monkeypatch.setattr(broker, "_of_the_wheel", lambda: wheel)
    assert broker.server_program() == (None if expected is None else tmp_path / expected)
