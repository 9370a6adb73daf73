"""Priority for writes to an SQLite database: people before jobs, among the processes of one machine.

SQLite lets one transaction write at a time. A process that finds the lock taken sleeps and looks again, less and less
often, so a job that starts its next transaction as soon as one has ended leaves hardly a gap for anybody else.
Therefore a process that waits to write for a person holds a shared lock on a file beside the database, and a process
that runs jobs looks at that file before each of its own transactions and lets the others go first. The system drops the
lock of a killed process.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator

LONGEST_WAIT = 3.0  # seconds that a job's transaction yields to others: jobs must progress beside a busy game, too
_LOOK = 0.005  # seconds between checks
_TRIES = 20  # attempts of a person's transaction to signal its wait; a checking job holds the file for microseconds

_gives_way = False


def give_way() -> None:
    """Mark this process as one that runs jobs: its transactions let those of people go first."""
    global _gives_way
    _gives_way = True


@contextlib.contextmanager
def waiting(database: str | None) -> Iterator[None]:
    """A context for the statement that waits for the write lock of a database file; None or empty means no file."""
    if not database or database == ":memory:":
        yield
    elif _gives_way:
        _let_people_first(f"{database}-waiting")
        yield
    else:
        with _said_to_jobs(f"{database}-waiting"):
            yield


@contextlib.contextmanager
def _said_to_jobs(path: str) -> Iterator[None]:
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # the disk is full or read-only: wait as SQLite does
        yield
        return
    try:
        for _ in range(_TRIES):
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                break
            except OSError:
                time.sleep(0.001)
        yield
    finally:
        os.close(file)  # and with it the lock


def _let_people_first(path: str) -> None:
    until = time.monotonic() + LONGEST_WAIT
    while _somebody_waits(path) and time.monotonic() < until:
        time.sleep(_LOOK)


def _somebody_waits(path: str) -> bool:
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # nobody has ever waited
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    else:
        return False
    finally:
        os.close(file)
