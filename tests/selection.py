"""Which tests `make test` leaves to `make test-long`: long forms, and one of two databases where either tells as much.

Where people or workers write at the same time, or where SQL is written for each database, tests meet both. Each of the
others takes one of the two, by its name, so that every page, command and service still meets both in some test; where
no PostgreSQL is named, all take SQLite. A test that is named by hand always runs as it is. What only PostgreSQL can
show, such as two transactions that write at once, is never run on SQLite.
"""

import zlib
from collections.abc import Sequence

import pytest

LONG = "long"  # the marker of long forms: more kills, larger exports, a second campaign
ON_EITHER = "either_database"  # the marker of single tests in one of these files that take one database all the same
ON_POSTGRESQL = "postgresql_alone"  # the marker of tests of what only PostgreSQL does
_ON_BOTH = (
    "test_api_races.py",
    "test_backup.py",
    "test_clocks.py",
    "test_consent.py",
    "test_export.py",
    "test_idle.py",
    "test_jobs.py",
    "test_lists.py",
    "test_live.py",
    "test_locked.py",
    "test_migrations.py",
    "test_payment_races.py",
    "test_races.py",
    "test_rooms.py",
    "test_rounds.py",
    "test_search.py",
    "test_societies.py",
    "test_spend_races.py",
    "test_study_races.py",
    "test_transcripts.py",
    "test_turns.py",
    "test_upgrade_of_version_0_1.py",
)
_DATABASES = ("sqlite", "postgresql")


def fitting(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Those whose database can show what they are about, and the others."""
    chosen: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        alone = item.get_closest_marker(ON_POSTGRESQL) is not None
        (left if alone and _database(item) == "sqlite" else chosen).append(item)
    return chosen, left


def shortened(items: Sequence[pytest.Item], *, postgres: bool) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Those that `make test` runs, and those that it leaves out. `postgres`: whether there is one to test with."""
    chosen: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        is_long = item.get_closest_marker(LONG) is not None
        (left if is_long or _is_second(item, postgres=postgres) else chosen).append(item)
    return chosen, left


def _is_second(item: pytest.Item, *, postgres: bool) -> bool:
    """Whether the test is one of two that differ in their database alone, and the other one was chosen."""
    if item.path.name in _ON_BOTH and item.get_closest_marker(ON_EITHER) is None:
        return False
    database = _database(item)
    if database is None or item.get_closest_marker(ON_POSTGRESQL) is not None:
        return False
    name = f"{item.path.name} {getattr(item, 'originalname', '')}"
    return database != _DATABASES[zlib.crc32(name.encode()) % 2 if postgres else 0]


def _database(item: pytest.Item) -> str | None:
    """The database that a test was made for, if there is one of it for each."""
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return next((value for value in parameters.values() if value in _DATABASES), None)
