"""A training as a process of its own: started, asked to stop, and never two of one job.

It leads a session, so that Ctrl-C in a terminal reaches the worker alone, and ends by itself, with a checkpoint, when
its worker is gone. As long as it lives it holds the job's lock: whoever gets the lock knows that it is over.
"""

import contextlib
import fcntl
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from app.config import ROOT
from app.errors import Conflict, NotFound, Verbatim
from app.finetuning.backends import GRACE
from app.finetuning.files import JobFiles

PROGRAM = (sys.executable, "-m", "training")
_LOOK = 0.1


class TrainingProcess:
    """The process that trains. Raises Conflict when another one of the job cannot be ended."""

    def __init__(self, method: str, files: JobFiles, waiting: Callable[[], object]) -> None:
        """Start it, once an earlier one of the same job is over; `waiting` is called meanwhile."""
        command = [*PROGRAM, method, "--config", str(files.config), "--progress", str(files.progress)]
        with files.lock.open("a+") as lock, files.log.open("ab") as log:
            _wait_for_lock(lock, files.lock, waiting)
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [*command, "--parent", str(os.getpid())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0o077,
                pass_fds=(lock.fileno(),),
            )
            lock.truncate(0)
            lock.write(str(self._process.pid))

    def poll(self, seconds: float) -> int | None:
        """Its exit code as soon as it is over; None if it still runs after so many seconds."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def cancel(self) -> None:
        """Have it end its step, save a checkpoint, and go."""
        self._process.terminate()

    def kill(self) -> None:
        """End it and all that it has started, if it still runs."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class LocalBackend:
    """Trains on this machine, in a child process of the worker, which writes the checkpoint itself."""

    def check(self) -> None:
        """Raises NotFound where the packages are missing that a training needs; none of them is loaded."""
        for name in ("torch", "transformers"):
            if importlib.util.find_spec(name) is None:
                raise NotFound(
                    name,
                    expected="it to be installed where the job runs",
                    got=Verbatim("none"),
                    remedy="pip install -c constraints.txt -e '.[training]'",
                )

    def start(self, method: str, files: JobFiles, waiting: Callable[[], object]) -> TrainingProcess:
        """Raises Conflict when another process of the job cannot be ended."""
        return TrainingProcess(method, files, waiting)

    def collect(self, files: JobFiles) -> bool:
        """Whether the process has written the checkpoint."""
        return files.output.exists()


BACKEND = LocalBackend()


def _wait_for_lock(lock: IO[str], path: Path, waiting: Callable[[], object]) -> None:
    """An earlier worker's child may still be saving; it is killed when that takes too long."""
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
                    expected="an earlier training to end",
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
