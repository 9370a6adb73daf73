"""Brings a database to the state that this code expects: its tables, and the models of every installation."""

from pathlib import Path
from typing import TYPE_CHECKING

from flask import Flask
from sqlalchemy import inspect

from app import models  # noqa: F401  (migrations need every table known)
from app.core.config import ROOT, Settings
from app.core.errors import Invalid, Verbatim
from app.core.extensions import ENGINE_OPTIONS, db, writing
from app.core.files import private_file
from app.registry import ensure_baselines

if TYPE_CHECKING:  # Alembic takes as long to load as the rest of a command, and few commands need it
    from alembic.script import ScriptDirectory

MIGRATIONS = ROOT / "migrations"


def bare_app(settings: Settings) -> Flask:
    """An app with a database but no pages, which is all that a database upgrade needs.

    Raises Invalid when PARLOR_HOME cannot be made.
    """
    app = Flask("parlor", root_path=str(ROOT), instance_path=str(settings.home))
    app.config["SETTINGS"] = settings
    bind(app, settings)
    return app


def bind(app: Flask, settings: Settings) -> None:
    """Give an app its database, and the folder that it may be in. Raises Invalid when PARLOR_HOME cannot be made."""
    try:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not settings.DATABASE_URL:
            _keep_private(settings.home / "parlor.db")
    except OSError as error:
        raise Invalid("PARLOR_HOME", expected="a folder that can be made and written", got=Verbatim(error)) from None
    # Detects a restarted database server before an old connection to it is used.
    engine = {**ENGINE_OPTIONS, "pool_pre_ping": not settings.database_url.startswith("sqlite")}
    app.config.update(SQLALCHEMY_DATABASE_URI=settings.database_url, SQLALCHEMY_ENGINE_OPTIONS=engine)
    db.init_app(app)


def _keep_private(database: Path) -> None:
    """Make SQLite's files readable only by their owner, including those made by an earlier version."""
    private_file(database)  # the others get its mode when SQLite creates them
    for suffix in ("-wal", "-shm"):
        if (beside := database.with_name(database.name + suffix)).exists():
            beside.chmod(0o600)


def newest_revision() -> str:
    """The schema revision that this code expects."""
    head = migrations().get_current_head()
    if head is None:
        raise RuntimeError("expected migrations, got none")
    return head


def known_revisions() -> frozenset[str]:
    """All schema revisions from which this code can upgrade."""
    return frozenset(each.revision for each in migrations().walk_revisions())


def migrations() -> "ScriptDirectory":
    """The migrations from one schema revision to the next."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(MIGRATIONS))


def allow_migrations(app: Flask) -> None:
    """Set up Flask-Migrate in an app, as the migration environment requires it."""
    from flask_migrate import Migrate

    Migrate(app, db, directory=str(MIGRATIONS), render_as_batch=True)


def upgrade(app: Flask) -> None:
    """Create or migrate the database. Safe to repeat. Raises Invalid for the database of a newer version."""
    from alembic import command
    from alembic.config import Config
    from alembic.migration import MigrationContext

    settings: Settings = app.config["SETTINGS"]
    allow_migrations(app)
    # Unlike `flask db`, which ends the process without a reason and takes a % in a path for its own.
    config = Config(str(MIGRATIONS / "alembic.ini"))
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with app.app_context():
        with db.engine.connect() as connection:
            there = set(MigrationContext.configure(connection).get_current_heads())
        if unknown := there - known_revisions():
            raise Invalid(
                settings.database_setting,
                expected=f"a database of this version of Parlor or of an earlier one (up to {newest_revision()})",
                got=Verbatim(", ".join(sorted(unknown))),
                remedy="start the newer version that has made it, or name another database",
            )
        command.upgrade(config, "head")
    add_shipped_models(app)


def add_shipped_models(app: Flask) -> None:
    """Add the models that every installation has to a database with the current schema."""
    from alembic.migration import MigrationContext

    with app.app_context(), writing() as session:
        if MigrationContext.configure(session.connection()).get_current_heads() == (newest_revision(),):
            ensure_baselines(session, small_models=app.config["SETTINGS"].SMALL_MODELS)


def ensure(app: Flask) -> None:
    """Create the database of an empty PARLOR_HOME, for a command that is the first to touch it."""
    with app.app_context():
        fresh = not inspect(db.engine).has_table("match")
    if fresh:
        upgrade(app)
