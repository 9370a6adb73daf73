"""An app on a real database: SQLite always, PostgreSQL where one is named."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, inspect

from app.cli.commands import Commands
from app.core import reading_process
from app.core.extensions import db, writing
from app.core.queues import Typing
from app.factory import create_app
from app.jobs import process
from app.jobs.kind import JobKind
from app.matches.turns import WorkerContext
from app.publication import runner
from app.recipes import recipe_command, yaml_command
from app.registry import checkpoint_check, ensure_baselines
from app.schema import upgrade
from app.studies import design_command
from app.web import form_writes
from tests import compiled
from tests.enrolments import KnownWave, load_example, open_wave
from tests.new_sqlite import copy_new_sqlite
from tests.shell import Finished, Shell
from tests.stack import PATIENCE, TURNS_ALONE, Stack, running_parlor
from tests.stub_openai import KEY, StubServer
from tests.trainings import ForkingSubprocess


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A database of each kind without a row in it."""
    return "" if request.param == "sqlite" else str(request.getfixturevalue("emptied_database"))


def _bring_up(app: Flask) -> None:
    """Bring a database up to date; where it has its tables, an earlier test's or a copy's, that is a matter of rows."""
    with app.app_context():
        has_tables = inspect(db.engine).has_table("match")
    if not has_tables:
        upgrade(app)
        return
    with app.app_context(), writing() as session:
        ensure_baselines(session, small_models=app.config["SETTINGS"].SMALL_MODELS)


compiled.share()


@pytest.fixture
def make_app(home: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Flask]]:
    """Builds apps on the same migrated database, with settings of the test's own."""
    apps: list[Flask] = []
    monkeypatch.setattr(form_writes, "PATIENCE", PATIENCE)  # a busy machine fails no test

    def make(**overrides: Any) -> Flask:
        own = {"PARLOR_HOME": home, "DATABASE_URL": database_url, "READING_WORDS_PER_MINUTE": 0}
        settings = {**own, "GUEST_CONFIG": True, **overrides}
        app = create_app(settings)
        app.cli = Commands(app.name)
        app.config["WTF_CSRF_ENABLED"] = False  # tests/integration/test_pages.py turns it on where it matters
        if not apps:
            if not database_url:
                copy_new_sqlite(home)
            _bring_up(app)
        apps.append(app)
        return app

    yield make
    for app in apps:
        with app.app_context():
            form_writes.close()
            db.engine.dispose()


@pytest.fixture
def app(make_app: Callable[..., Flask]) -> Iterator[Flask]:
    """An app without a reading delay, inside its context."""
    app = make_app()
    with app.app_context():
        yield app


@pytest.fixture
def engine(app: Flask) -> Engine:
    return db.engine


@pytest.fixture
def enqueued_jobs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The jobs, by kind and number, that workers were told of in place of being told."""
    found: list[tuple[str, int]] = []
    monkeypatch.setattr(JobKind, "enqueue", lambda kind, _url, number, **_queue: found.append((kind.name, number)))
    return found


@pytest.fixture
def flask(shell: Shell, app: Flask) -> Callable[..., Finished]:
    """Runs a command with the settings of `app`, in a process of its own: `flask("export", "matches")`."""
    env = {name: str(value) for name, value in app.config["SETTINGS"]}
    return lambda *line, **more: shell.flask(line, env=env, **more)


@pytest.fixture(autouse=True)
def _forked_trainings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings, benchmarks, looks at checkpoints and what sends to the hub need not load torch and the hub's library
    each.
    """
    for each in (process, checkpoint_check, runner):
        monkeypatch.setattr(each, "subprocess", ForkingSubprocess())


def _read_here(module: str, *arguments: str, given: Any, **_options: Any) -> bytes:
    """What reads studies and recipes answers, without a process: to load one takes half a second."""
    of_recipes = {each.__name__: each.answer for each in (recipe_command, yaml_command)}
    passed = json.loads(json.dumps(given))
    if module in of_recipes:
        return json.dumps(of_recipes[module](passed)).encode()
    action, path = arguments
    return json.dumps(design_command.answer(action, Path(path), passed)).encode()


@pytest.fixture(autouse=True)
def _designs_without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of studies and recipes are read here; the web process of whole Parlors starts a process for them."""
    monkeypatch.setattr(reading_process, "run_module", _read_here)


@pytest.fixture
def vendor_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the vendor's library reads from the environment: KEY, and nothing that a developer has set."""
    for name in ("OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS", "API_HOSTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def stub() -> Iterator[StubServer]:
    """A server that answers as tests tell it."""
    with StubServer() as server:
        yield server


@pytest.fixture(scope="module")
def parlor() -> Iterator[Stack]:
    """A running Parlor on SQLite, one for all tests of a file. Guests start as many matches there as they like."""
    with running_parlor(GUEST_MATCHES_PER_MINUTE="0", **TURNS_ALONE) as running:
        yield running


@pytest.fixture
def desk(app: Flask, engine: Engine) -> Iterator[Callable[..., WorkerContext]]:
    """Desks as workers have them, each under its own name; what they tell the web is in `desk.told`."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    told: list[tuple[str, Typing]] = []

    def make(owner: str = "worker", **changes: Any) -> WorkerContext:
        settings = app.config["SETTINGS"].model_copy(update=changes)
        return WorkerContext(
            engine, settings, owner, loop=loop, notify=lambda match, typing: told.append((match, typing))
        )

    make.told = told  # type: ignore[attr-defined]
    yield make
    loop.call_soon_threadsafe(loop.stop)
    thread.join(PATIENCE)


@pytest.fixture
def known(app: Flask, tmp_path: Path) -> KnownWave:
    """A wave of two-models at Prolific."""
    with writing() as session:
        version = load_example(session, tmp_path)
        return KnownWave(open_wave(session, version).id, version.id)
