"""The processes of docker-compose.yml, started here by its own commands, play a round together."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import create_engine

from app import states
from app.queues import call_to_round
from tests.rounds import check, make_round, row_of
from tests.stack import ROOT, free_port, wait_until
from workers.broker import answers

IMAGES = {"database", "broker"}  # services that are not Parlor's


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return found


@pytest.fixture
def environment(home: Path, service_database: str, service_redis: str) -> dict[str, str]:
    port = str(free_port())
    own = {"DATABASE_URL": service_database, "REDIS_URL": service_redis, "PORT": port, "PARLOR_HOME": str(home)}
    return {**os.environ, **own, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.fixture
def started(compose: dict[str, Any], environment: dict[str, str], home: Path) -> Iterator[dict[str, Any]]:
    """All that runs for as long as Parlor does, after what has to be done once."""
    services = {name: each for name, each in compose["services"].items() if name not in IMAGES}
    prepared = subprocess.run(
        services.pop("prepare")["command"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert prepared.returncode == 0, prepared.stderr
    assert "/enter/" in prepared.stdout
    processes = {}
    for name, service in services.items():
        with (home / f"{name}.log").open("wb") as log:
            processes[name] = subprocess.Popen(service["command"], cwd=ROOT, env=environment, stdout=log, stderr=log)
    yield processes
    for process in processes.values():
        process.terminate()
    for process in processes.values():
        process.wait(20)


def test_its_processes_play_a_round_together(started: dict[str, Any], environment: dict[str, str]) -> None:
    engine = create_engine(environment["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://"))
    try:
        round_id = make_round(engine, "scripted", matches=40, queued=True)
        call_to_round(environment["REDIS_URL"], round_id)
        wait_until(lambda: row_of(engine, round_id).status == states.DONE, "the end of the round")
        check(engine, round_id, 40)
    finally:
        engine.dispose()
    assert answers(environment["REDIS_URL"])
    assert {name: process.poll() for name, process in started.items()} == dict.fromkeys(started)


def test_every_process_that_runs_in_production_is_in_it(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == {"prepare", "web", "turns", "batch", "train", "upkeep", *IMAGES}
    for name in ("turns", "batch", "train"):
        command = services[name]["command"]
        assert command[command.index("-Q") + 1] == name
        assert services[name]["image"] == "parlor-models"  # all others do without torch
    assert {services[name]["image"] for name in ("prepare", "web", "upkeep")} == {"parlor"}
    for name, service in services.items():
        if name not in IMAGES:
            assert service["environment"]["DATABASE_URL"].startswith("postgresql://")
            assert service["environment"]["REDIS_URL"].startswith("redis://")
