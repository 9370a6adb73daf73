"""An app on a real database: SQLite always, PostgreSQL where one is named."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine

from app.extensions import db
from app.factory import create_app
from app.matches.turns import Desk
from app.schema import upgrade


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty database of each kind."""
    return "" if request.param == "sqlite" else str(request.getfixturevalue("service_database"))


@pytest.fixture
def make_app(home: Path, database_url: str) -> Iterator[Callable[..., Flask]]:
    """Builds apps on the same migrated database, with settings of the test's own."""
    apps: list[Flask] = []

    def make(**overrides: Any) -> Flask:
        settings = {"PARLOR_HOME": home, "DATABASE_URL": database_url, "READING_WORDS_PER_MINUTE": 0, **overrides}
        app = create_app(settings)
        app.config["WTF_CSRF_ENABLED"] = False  # tests/integration/test_pages.py turns it on where it matters
        if not apps:
            upgrade(app)
        apps.append(app)
        return app

    yield make
    for app in apps:
        with app.app_context():
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
def desk(app: Flask, engine: Engine) -> Iterator[Callable[..., Desk]]:
    """Desks as workers have them, each under its own name; what they tell the web is in `desk.told`."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    told: list[tuple[str, bool]] = []

    def make(owner: str = "worker", **changes: Any) -> Desk:
        settings = app.config["SETTINGS"].model_copy(update=changes)
        return Desk(engine, settings, loop, lambda match, typing: told.append((match, typing)), owner)

    make.told = told  # type: ignore[attr-defined]
    yield make
    loop.call_soon_threadsafe(loop.stop)
    thread.join(5)
