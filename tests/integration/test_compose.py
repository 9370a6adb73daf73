"""The processes of docker-compose.yml, started here by its own commands, play a round together."""

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from redis import Redis
from redis.exceptions import AuthenticationError
from sqlalchemy import create_engine

from app.core.config import load_settings
from app.jobs import states
from app.rounds.job import ROUND
from tests.rounds import check, make_round, row_of
from tests.stack import PATIENCE, ROOT, free_port, wait_until
from workers import broker as embedded
from workers.broker import answers

IMAGES = {"database", "broker"}  # services that are not Parlor's
ONCE = {"passwords", "prepare"}  # services that end


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
    services = {name: each for name, each in compose["services"].items() if name not in IMAGES | {"passwords"}}
    prepared = subprocess.run(
        services.pop("prepare")["command"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE
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
        process.wait(PATIENCE)


def ask(compose: dict[str, Any], environment: dict[str, str], names: Iterable[str]) -> dict[str, int]:
    """The exit codes of the health checks of these services, made at once."""
    asked = {}
    for name in names:
        _, *command = compose["services"][name]["healthcheck"]["test"]
        asked[name] = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    codes = {}
    for name, process in asked.items():
        _, said = process.communicate(timeout=PATIENCE)
        codes[name] = process.returncode
        assert said.count("\n") == process.returncode, said  # one line, where something is wrong
    return codes


@pytest.mark.long
def test_its_processes_play_a_round_together_and_say_how_they_are(
    started: dict[str, Any], compose: dict[str, Any], environment: dict[str, str]
) -> None:
    engine = create_engine(environment["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://"))
    try:
        round_id = make_round(engine, "scripted", matches=40, queued=True)
        ROUND.enqueue(environment["REDIS_URL"], round_id)
        wait_until(lambda: row_of(engine, round_id).status == states.DONE, "the end of the round")
        check(engine, round_id, 40)
    finally:
        engine.dispose()
    assert answers(environment["REDIS_URL"])
    wait_until(lambda: not any(ask(compose, environment, started).values()), "the health of all")
    assert {name: process.poll() for name, process in started.items()} == dict.fromkeys(started)
    started["turns"].send_signal(signal.SIGSTOP)
    try:
        assert ask(compose, environment, ["turns"]) == {"turns": 1}
    finally:
        started["turns"].send_signal(signal.SIGCONT)


def test_every_process_that_runs_in_production_is_in_it(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == {"web", "turns", "batch", "models", "train", "upkeep", *ONCE, *IMAGES}
    for name in ("turns", "batch", "train"):
        command = services[name]["command"]
        assert command[command.index("-Q") + 1] == name
    for name in ("models", "train"):
        assert services[name]["image"] == "parlor-models"  # all others do without torch
        assert services[name]["build"]["args"]["REQUIREMENTS"] == "models"
    for name in ("turns", "batch"):
        assert services[name]["environment"]["MODELS_PROCESS"] == "true"
    for name in (*ONCE, "web", "turns", "batch", "upkeep"):
        assert services[name]["image"] == "parlor"
        assert "REQUIREMENTS" not in services[name]["build"]["args"]


def test_no_container_may_do_more_than_it_has_to(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["read_only"] is True, name
        assert {"mem_limit", "pids_limit", "logging", "tmpfs"} <= set(service), name
        assert ("healthcheck" in service) == (name not in ONCE), name
        assert "privileged" not in service, name
    assert {compose["services"][name]["user"] for name in IMAGES} == {"postgres", "redis"}
    assert re.search(r"^USER parlor$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)


def test_images_can_be_named_by_their_digest(compose: dict[str, Any]) -> None:
    named = [compose["services"][name]["image"] for name in sorted(IMAGES)]
    assert named == ["${REDIS_IMAGE:-redis:7}", "${POSTGRES_IMAGE:-postgres:17}"]
    assert "FROM ${PYTHON_IMAGE}" in (ROOT / "Dockerfile").read_text()
    assert "--require-hashes" in (ROOT / "Dockerfile").read_text()


# ---- Passwords ----------------------------------------------------------------


def make_passwords(compose: dict[str, Any], folder: Path) -> subprocess.CompletedProcess[str]:
    *command, place = compose["services"]["passwords"]["command"]
    assert place == "/passwords"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [*command, str(folder)], cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )


def files_in(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_the_first_start_makes_passwords_and_later_ones_keep_them(compose: dict[str, Any], tmp_path: Path) -> None:
    assert make_passwords(compose, tmp_path).returncode == 0
    made = files_in(tmp_path)
    database, broker = made["database/password"], made["broker/password.conf"].removeprefix("requirepass ").strip()
    assert made == {
        "database/password": database,
        "broker/password.conf": f"requirepass {broker}\n",
        "parlor/DATABASE_URL": f"postgresql://parlor:{database}@database:5432/parlor",
        "parlor/REDIS_URL": f"redis://:{broker}@broker:6379/0",
    }
    assert min(len(database), len(broker)) >= 32
    assert database != broker
    for own in ("DATABASE_URL", "REDIS_URL"):
        assert stat.S_IMODE((tmp_path / "parlor" / own).stat().st_mode) == 0o600
    again = make_passwords(compose, tmp_path)
    assert (again.returncode, again.stdout, files_in(tmp_path)) == (0, "", made)
    (tmp_path / "parlor" / "REDIS_URL").unlink()
    halved = make_passwords(compose, tmp_path)
    assert (halved.returncode, halved.stderr.count("\n")) == (2, 1)
    assert "parlor/REDIS_URL" in halved.stderr
    assert broker not in halved.stdout + halved.stderr


def test_no_password_is_in_the_file_and_each_service_has_its_own_alone(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert services["database"]["environment"] == {
        "POSTGRES_USER": "parlor", "POSTGRES_PASSWORD_FILE": "/passwords/password", "POSTGRES_DB": "parlor",
    }  # fmt: skip
    assert not re.search(r"://[^/\s]*:[^/\s]*@", (ROOT / "docker-compose.yml").read_text())
    for name, service in services.items():
        if name != "passwords":
            mounted = [each for each in service["volumes"] if "passwords" in each]
            own = name if name in IMAGES else "parlor"
            assert [each.partition(":")[0] for each in mounted] == [f"{own}-passwords"], name
            assert mounted[0].endswith(":ro"), name
        if name not in IMAGES:
            assert service["environment"]["SETTINGS_FOLDER"] == "/passwords/parlor", name


def test_the_broker_asks_for_its_password(compose: dict[str, Any], home: Path) -> None:
    make_passwords(compose, home / "passwords")
    _, conf, *options = compose["services"]["broker"]["command"]
    program = embedded.server_program()
    assert program is not None
    conf = conf.replace("/passwords", str(home / "passwords" / "broker"))
    here = ["--port", "0", "--unixsocket", str(home / "redis.sock"), "--dir", str(home)]
    with (home / "redis.log").open("wb") as log:
        server = subprocess.Popen([program, conf, *options, *here], stdout=log, stderr=log)
    try:
        wait_until((home / "redis.sock").exists, "the broker's socket")
        with Redis(unix_socket_path=str(home / "redis.sock")) as stranger, pytest.raises(AuthenticationError):
            stranger.ping()
        url = load_settings({"REDIS_URL": (home / "passwords/parlor/REDIS_URL").read_text()}).redis_url
        password = url.partition("redis://:")[2].partition("@")[0]
        with Redis(unix_socket_path=str(home / "redis.sock"), password=password) as ours:
            assert ours.ping()
            assert ours.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    finally:
        server.terminate()
        server.wait(PATIENCE)
