"""`flask doctor`: what is missing is found, said with its remedy, and no secret is shown."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from flask import Flask
from sqlalchemy import delete, text, update

from app.cli import checks
from app.core.extensions import writing
from app.models import LanguageModel, Lease
from app.registry import add_api_model
from tests.stack import PATIENCE
from tests.stub_openai import StubServer

ROOT = Path(__file__).resolve().parents[2]


def ask(app: Flask, *arguments: str) -> tuple[Result, dict[str, list[dict[str, Any]]]]:
    result = app.test_cli_runner().invoke(args=["doctor", "--json", *arguments])
    found: dict[str, list[dict[str, Any]]] = {}
    for check in json.loads(result.stdout)["checks"]:
        found.setdefault(check["check"], []).append(check)
    return result, found


def states(found: dict[str, list[dict[str, Any]]], name: str) -> list[str]:
    return [check["state"] for check in found[name]]


def add_api(url: str, key_env: str = "", model: str = "stub-negotiator", **options: Any) -> None:
    options |= {"model": model, "base_url": url, "key_env": key_env, "retries": 0}
    with writing() as session:
        add_api_model(session, "mine", None, ["negotiation"], options)


def test_what_does_not_run_is_found_with_its_remedy(app: Flask) -> None:
    result, found = ask(app)
    assert result.exit_code == 1
    assert [states(found, name) for name in ("folders", "disk", "secret key", "database", "models")] == [
        ["ok"], ["ok"], ["ok"], ["ok"], ["ok", "ok"],
    ]  # fmt: skip
    for name in ("broker", "workers", "upkeep"):
        assert states(found, name) == ["fail"]
        assert found[name][0]["remedy"]


def test_text_has_one_line_a_check(app: Flask) -> None:
    result = app.test_cli_runner().invoke(args=["doctor"])
    assert result.exit_code == 1
    assert all(line.split()[0] in ("ok", "warn", "fail") for line in result.stdout.splitlines())
    assert "→ start Parlor: make run" in result.stdout


def test_a_model_at_a_host_that_is_not_allowed_any_more_is_a_failure(
    app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_api("http://127.0.0.1:9/v1")
    monkeypatch.setenv("API_HOSTS", "api.openai.com")
    _, found = ask(app)
    assert states(found, "model mine") == ["fail"]
    assert "API_HOSTS allows (api.openai.com)" in found["model mine"][0]["detail"]


def test_a_running_upkeep_and_broker_are_seen(make_app: Callable[..., Flask], broker: str) -> None:
    app = make_app(REDIS_URL=broker)
    with app.app_context():
        with writing() as session:
            session.add(Lease(name="upkeep", owner="it", until=datetime.now(UTC) + timedelta(seconds=30)))
        _, found = ask(app)
        assert (states(found, "broker"), states(found, "upkeep"), states(found, "workers")) == (
            ["ok"],
            ["ok"],
            ["fail", "fail", "fail"],  # nobody plays turns or rounds, and nobody trains
        )
        with writing() as session:
            session.execute(update(Lease).values(until=datetime.now(UTC) - timedelta(seconds=1)))
        _, found = ask(app)
        assert states(found, "upkeep") == ["fail"]
        assert "has not run since" in found["upkeep"][0]["detail"]


@pytest.fixture
def worker(home: Path, broker: str, database_url: str) -> Iterator[None]:
    environment = {**os.environ, "PARLOR_HOME": str(home), "REDIS_URL": broker, "DATABASE_URL": database_url}
    options = ["-Q", "turns,batch,train", "-P", "threads", "-c", "1"]
    options += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "workers.celery_app", "worker", "-n", "turns@test"]
    process = subprocess.Popen(
        [*command, *options], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    yield
    process.terminate()
    process.wait(PATIENCE)


@pytest.mark.usefixtures("worker")
def test_everything_in_order_is_exit_code_0(make_app: Callable[..., Flask], broker: str) -> None:
    app = make_app(REDIS_URL=broker)
    with app.app_context():
        with writing() as session:
            session.add(Lease(name="upkeep", owner="it", until=datetime.now(UTC) + timedelta(seconds=90)))
        deadline = time.monotonic() + PATIENCE
        while True:
            result, found = ask(app)
            if result.exit_code == 0 or time.monotonic() > deadline:
                break
        assert states(found, "workers") == ["ok", "ok", "ok"], found
        assert [each["detail"] for each in found["workers"]] == [
            "turns@test plays models' turns",
            "turns@test plays rounds",
            "turns@test trains models",
        ]


def test_a_game_without_an_opponent_is_found(app: Flask) -> None:
    with writing() as session:
        session.execute(update(LanguageModel).values(usable_in_rounds=False, offered_to_people=False))
    _, found = ask(app)
    assert states(found, "models") == ["fail", "fail"]


def test_a_model_is_looked_at_and_only_called_when_asked(app: Flask) -> None:
    with StubServer() as stub:
        add_api(stub.url)
        _, found = ask(app)
        assert states(found, "model mine") == ["ok"]
        assert stub.requests == []
        _, found = ask(app, "--call")
        assert states(found, "model mine") == ["ok"]
        assert len(stub.requests) == 1
    _, found = ask(app)
    assert states(found, "model mine") == ["warn"]
    assert "cannot be reached" in found["model mine"][0]["detail"]


def test_calls_count_to_the_budget_of_the_installation_and_none_is_made_beyond_it(
    make_app: Callable[..., Flask],
) -> None:
    with StubServer() as stub:
        app = make_app(SPENDING_LIMIT_USD=0.5)
        with app.app_context():
            add_api(stub.url, price_in=10_000, price_out=10_000)
            _, found = ask(app, "--call")
            assert states(found, "model mine") == ["ok"]
            assert len(stub.requests) == 1
            _, found = ask(app, "--call")
        assert states(found, "model mine") == ["warn"]
        said = found["model mine"][0]["detail"]
        assert said.startswith("not called: budget of $0.50 a month of this installation reached: $")
        assert said.endswith(", UTC; raise SPENDING_LIMIT_USD or wait for the next month")
        assert len(stub.requests) == 1


def test_a_call_that_fails_fails_the_check(app: Flask) -> None:
    with StubServer() as stub:
        add_api(stub.url, model="stub-500")
        _, found = ask(app, "--call")
    assert states(found, "model mine") == ["fail"]
    assert "HTTP 500" in found["model mine"][0]["detail"]


def test_a_key_that_is_not_set_is_a_warning(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    add_api("http://127.0.0.1:9/v1", "NO_SUCH_KEY")
    _, found = ask(app)
    assert (states(found, "model mine"), found["model mine"][0]["detail"]) == (["warn"], "NO_SUCH_KEY is not set here")


def test_old_tables_are_found(app: Flask) -> None:
    with writing() as session:
        session.execute(text("update alembic_version set version_num = 'older'"))
    _, found = ask(app)
    assert (states(found, "database"), found["database"][0]["remedy"]) == (["fail"], "flask db upgrade")


def test_a_missing_table_of_models_is_no_traceback(app: Flask) -> None:
    with writing() as session:
        session.execute(delete(LanguageModel))
        session.execute(text("drop table lease"))
    _, found = ask(app)
    assert states(found, "database") == ["fail"]
    assert states(found, "upkeep") == ["fail"]


def test_a_key_that_others_can_read_is_found(app: Flask, home: Path) -> None:
    (home / "secret_key").chmod(0o644)
    _, found = ask(app)
    assert (states(found, "secret key"), found["secret key"][0]["remedy"]) == (["fail"], f"chmod 600 {home}/secret_key")


def test_a_database_that_is_away_is_said_without_its_password(home: Path, free_port: int) -> None:
    environment = {
        **os.environ,
        "PARLOR_HOME": str(home),
        "DATABASE_URL": f"postgresql://me:hush-hush@127.0.0.1:{free_port}/parlor",
        "REDIS_URL": f"redis://:hush-hush@127.0.0.1:{free_port}/0",
    }
    flask = str(Path(sys.executable).with_name("flask"))
    done = subprocess.run(
        [flask, "doctor"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "fail  database: postgresql+psycopg://me:***@127.0.0.1" in done.stdout
    assert f"fail  broker: redis://:***@127.0.0.1:{free_port}/0 does not answer" in done.stdout
    assert "hush-hush" not in done.stdout + done.stderr
    listed = subprocess.run(
        [flask, "model", "list"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (listed.returncode, listed.stderr.count("\n")) == (2, 1), listed.stderr
    assert "hush-hush" not in listed.stderr


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:////var/parlor.db", "sqlite:////var/parlor.db"),
        ("unix:///run/redis.sock?password=hush", "unix:///run/redis.sock?password=***"),
        ("redis://:hush@host:6379/0", "redis://:***@host:6379/0"),
        ("postgresql://me:h@ush@host/db?sslpassword=x&a=1", "postgresql://me:***@host/db?sslpassword=***&a=1"),
        ("redis://host", "redis://host"),
    ],
)
def test_a_password_is_masked_wherever_it_stands(url: str, shown: str) -> None:
    assert checks.masked(url) == shown
