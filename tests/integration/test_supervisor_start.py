"""Children that are killed while they start, and starts that no retry can mend."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stack import PATIENCE, ROOT, Stack, wait_until

NAMELESS = "a fork that has no name yet"  # for a moment, in which it may not be seen
# How each child is told from the others, by its command line.
SIGNS = {
    NAMELESS: "workers.supervisor",
    "broker": "redis-server",
    "web": "gunicorn",
    "preparation": "workers.prepare",
    "turns": "turns@%h",
    "batch": "batch@%h",
    "train": "train@%h",
    "models": "workers.models",
    "upkeep": "workers.upkeep",
}


class Killer:
    """Kills each child as soon as it is seen, or so many seconds later, until it has done so `times` times."""

    def __init__(self, parlor: Stack, signals: dict[str, list[int]], after: float = 0.0) -> None:
        self.left = signals
        self._parlor = parlor
        self._after = after
        self._seen: dict[int, float] = {}
        self._killed: set[int] = set()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()

    def _go_on(self) -> None:
        while any(self.left.values()) and self._parlor.process.poll() is None:
            for pid in self._parlor.family()[1:]:
                self._look_at(pid)
            time.sleep(0.01)

    def _look_at(self, pid: int) -> None:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            line = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
            name = next((name for name, sign in SIGNS.items() if sign in line), None)
            first = self._seen.setdefault(pid, time.monotonic())
            if name and self.left.get(name) and pid not in self._killed and time.monotonic() - first >= self._after:
                os.kill(pid, self.left[name][0])
                self._killed.add(pid)
                self.left[name].pop(0)

    def wait(self) -> None:
        left = [signals for name, signals in self.left.items() if name != NAMELESS]
        wait_until(lambda: not any(left), f"children that are killed: {self.left}")


def refused(parlor: Stack) -> str:
    """The one line with which a start that cannot go on ends, with exit code 2."""
    assert parlor.process.wait(PATIENCE) == 2, parlor.output()
    assert parlor.output().count("\n") == 1, parlor.output()
    return parlor.output()


def test_a_start_goes_on_though_every_child_is_killed_at_its_start_more_than_once(
    stack: Callable[..., Stack],
) -> None:
    parlor = stack(wait=False)
    killer = Killer(parlor, {name: [signal.SIGKILL, signal.SIGSEGV] for name in SIGNS})
    parlor.wait_until_ready()
    killer.wait()
    assert parlor.healthy()
    assert "the preparation of the database was killed by SIGKILL; it starts again in " in parlor.output()
    assert "the preparation of the database was killed by SIGSEGV; it starts again in " in parlor.output()
    assert parlor.process.poll() is None


@pytest.mark.long
@pytest.mark.parametrize("after", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_start_goes_on_though_children_are_killed_in_the_midst_of_it(
    stack: Callable[..., Stack], after: float, number: int
) -> None:
    parlor = stack(wait=False)
    lasting = [name for name in SIGNS if name not in ("preparation", NAMELESS)]
    killer = Killer(parlor, {name: [number] * 3 for name in lasting}, after)
    parlor.wait_until_ready()
    killer.wait()
    assert parlor.healthy()
    assert parlor.stop() == 0


def test_the_database_of_a_newer_version_is_refused_in_one_line(stack: Callable[..., Stack], home: Path) -> None:
    _make_database(home)
    with contextlib.closing(sqlite3.connect(home / "parlor.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    line = refused(stack(wait=False))
    assert line.startswith("error: PARLOR_HOME: expected a database of this version of Parlor or of an earlier one")
    assert "got 9999; start the newer version" in line


def test_a_migration_that_fails_is_refused_in_one_line_and_the_reason_is_kept(
    stack: Callable[..., Stack], home: Path
) -> None:
    _make_database(home)
    with contextlib.closing(sqlite3.connect(home / "parlor.db")) as connection:  # whose tables are there already
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
        connection.commit()
    line = refused(stack(wait=False))
    assert line.startswith("error: PARLOR_HOME: expected a database that can be used")
    assert "already exists" in line or "duplicate column" in line


def _make_database(home: Path) -> None:
    subprocess.run([sys.executable, "-m", "workers.prepare"], cwd=ROOT, check=True, timeout=PATIENCE)
    assert (home / "parlor.db").exists()


@pytest.mark.long
def test_a_web_process_that_ends_by_itself_again_and_again_ends_the_start_with_its_last_words(
    stack: Callable[..., Stack],
) -> None:
    parlor = stack({"GUNICORN_CMD_ARGS": "--no-such-option"}, wait=False)
    assert parlor.process.wait(PATIENCE) == 1
    last = parlor.output().splitlines()[-1]
    assert last.startswith("error: web ended by itself 5 times while Parlor was starting (")
    assert str(parlor.home / "logs" / "web.log") in last
