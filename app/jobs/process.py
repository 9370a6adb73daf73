"""A child process that does the work of a job: started, asked to stop, and never two for one job.

It leads a session, so that Ctrl-C in a terminal reaches only the worker. While it lives it holds the job's lock:
whoever gets the lock knows that it has ended. It is expected to end when its worker is gone, and to report events as
JSON lines in a file, which the worker reads with `FileTail`.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from app.core.config import ROOT
from app.core.errors import Conflict, Verbatim

GRACE = 30.0  # seconds that a process has to end before it is killed
INTERRUPTED = 130  # the exit code of a process that somebody stopped
_LOOK = 0.1


class JobProcess:
    """The process of a job. Raises Conflict when an earlier process of the job cannot be ended.

    It holds a lock on the file `lock` and prints into the file `log`; `name` is its name in errors, and `waiting` is
    called while an earlier process of the same job is ending.
    """

    def __init__(
        self,
        command: Sequence[str],
        lock: Path,
        log: Path,
        waiting: Callable[[], object],
        *,
        name: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        with lock.open("a+", encoding="utf-8") as held, log.open("ab") as printed:
            _wait_for_lock(held, lock, waiting, name)
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0o077,
                pass_fds=(held.fileno(),),
            )
            held.truncate(0)
            held.write(str(self._process.pid))

    def poll(self, seconds: float) -> int | None:
        """Its exit code once it has ended; None if it is still running after `seconds`."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def cancel(self) -> None:
        """Ask it to save its state and exit."""
        self._process.terminate()

    def kill(self) -> None:
        """Kill it and all its child processes, if it is still running."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class FileTail:
    """Reads the complete lines of a file while another process writes it."""

    def __init__(self, path: Path, *, whole: bool) -> None:
        """`whole`: read from the file's beginning, else only what is written from now on. Ends a line that was cut
        off.
        """
        self._path = path
        self._begun = b""
        with path.open("ab+") as file:
            self._place = 0 if whole else file.tell()
            if file.tell():
                file.seek(-1, 2)
                if file.read(1) != b"\n":
                    file.write(b"\n")

    def lines(self) -> list[str]:
        """The lines completed since the last call."""
        with self._path.open("rb") as file:
            file.seek(self._place)
            new = file.read()
        self._place += len(new)
        *lines, self._begun = (self._begun + new).split(b"\n")
        return [line.decode(errors="replace") for line in lines]


def _wait_for_lock(lock: IO[str], path: Path, waiting: Callable[[], object], name: str) -> None:
    """Wait for an earlier worker's child, which may still be saving; it is killed when that takes too long."""
    deadline = time.monotonic() + GRACE
    killed = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline + GRACE:
                raise Conflict(
                    None,
                    expected=f"an earlier {name} to end",
                    got=Verbatim("one that holds it"),
                    remedy="end it",
                    subject=path,
                ) from None
        if not killed and time.monotonic() > deadline:
            killed = True
            lock.seek(0)
            with contextlib.suppress(ValueError, ProcessLookupError, PermissionError):
                os.killpg(int(lock.read()), signal.SIGKILL)
        waiting()
        time.sleep(_LOOK)
