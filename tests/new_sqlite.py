"""The SQLite file that a first start makes, made once in a run of tests: that takes a second of processor time."""

import shutil
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

from app.core.config import load_settings
from app.core.extensions import db
from app.schema import bare_app, upgrade
from tests.fork_server import once, run_of_tests


@cache
def _new_sqlite() -> Path:
    _, folder = run_of_tests()
    with once(folder):
        path = folder / "parlor.db"
        if not path.exists():
            _make(folder / "new").rename(path)
    return path


def _make(home: Path) -> Path:
    home.mkdir(exist_ok=True)
    app = bare_app(load_settings({"PARLOR_HOME": home, "DATABASE_URL": "", "SMALL_MODELS": False}))
    upgrade(app)
    with app.app_context():
        db.engine.dispose()
    return home / "parlor.db"


def fill_new_sqlite(connection: sqlite3.Connection) -> None:
    """Give an empty database the tables and rows that a first start would make."""
    with closing(sqlite3.connect(_new_sqlite())) as source:
        source.backup(connection)


def copy_new_sqlite(home: Path) -> None:
    """Give a PARLOR_HOME the database that a first start there would make."""
    shutil.copy(_new_sqlite(), home / "parlor.db")
