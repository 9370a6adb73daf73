"""One process that is kept alive: it is started, its log shown, restarted when it dies, and ended.

A child leads a session of its own, so that Ctrl-C in the terminal reaches only the supervisor, and so that the child
and everything it started, its family, can be killed together. Every member of the family holds the lock on the child's
pid file: whoever gets that lock knows that the family is gone, without trusting a process number that may by now belong
to another process.
"""

import contextlib
import errno
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from app.core.config import ROOT
from app.core.errors import Conflict, Verbatim
from workers import heartbeat
from workers.forked_process import Entry, ForkedProcess
from workers.heartbeat import Heartbeat
from workers.log_file import LogFile
from workers.parent_death import end_with

YOUNG = 5.0  # seconds; a process that ends sooner waits longer to restart
FIRST_DELAY = 0.5
LONGEST_DELAY = 10.0
LEFTOVER_PATIENCE = 3.0  # seconds that a family from an earlier run has to end by itself
START_PATIENCE = 300.0  # seconds that a process may take to its first heartbeat
# Errors of a system short of resources; the next try may succeed.
_PASSING = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


class Pauses:
    """How long to wait before retrying something that failed: longer each time."""

    def __init__(self) -> None:
        self._last = 0.0

    def next(self) -> float:
        """The next pause in seconds: 0.5 at first, then doubled each time, up to 10."""
        self._last = min(max(2 * self._last, FIRST_DELAY), LONGEST_DELAY)
        return self._last

    def begin_anew(self) -> None:
        """Forget the failures, after a while without any."""
        self._last = 0.0


@dataclass(frozen=True)
class Program:
    """What to run: a command, or a part of Parlor in a fork of this process. `fds` are passed on to a command.

    `echo` shows its output as well as logging it.
    `answers` checks whether a program is alive, if it sends no heartbeats (`workers.heartbeat`).
    """

    name: str
    runs: list[str] | Entry
    fds: tuple[int, ...] = ()
    echo: bool = True
    answers: Callable[[], bool] | None = None


class ManagedProcess:
    """A program and the process that currently runs it, if any. For the main thread only.

    Linux notifies a child of the death of the thread that started it, not of the process.
    """

    def __init__(
        self, program: Program, run: Path, logs: Path, environment: Mapping[str, str], most_bytes: int
    ) -> None:
        """`most_bytes` is the size after which its log is restarted."""
        self.name = program.name
        self.log_path = logs / f"{program.name}.log"
        self.start_at: float | None = None  # when to start it again, once it has died
        self._program = program
        self._pid_path = run / f"{program.name}.pid"
        self._environment = environment
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self._started_at = 0.0
        self._pauses = Pauses()
        self.failed_starts = 0  # how often in a row it ended by itself, with an error, before it sent a heartbeat
        self._heartbeat = Heartbeat()
        self._alive_at = 0.0  # when it last sent a heartbeat
        self._was_alive = False  # whether it has given one since it was started
        self._unwritten: IO[str] | None = None  # the pid file, until its number could be written
        self._log = LogFile(self.log_path, most_bytes)

    @property
    def alive(self) -> bool:
        """Whether it was running when `died` last checked."""
        return self._process is not None

    def start(self) -> None:
        """Start the program in a session of its own, with its family's lock.

        If the system refuses, `start_at` says when to retry. Raises OSError only on the first start, and only where a
        retry cannot help.
        """
        first = self._started_at == 0.0
        self.start_at = None
        self._started_at = self._alive_at = time.monotonic()
        self._was_alive = False
        try:
            self._unwritten = self._pid_path.open("w", encoding="utf-8")
            fcntl.flock(self._unwritten, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._process = self._launch(self._unwritten.fileno())
        except OSError as error:
            self._close_pid_file()
            if first and error.errno not in _PASSING:
                raise
            self._wait_longer()
            return
        self._write_pid()

    def _launch(self, lock: int) -> "subprocess.Popen[bytes] | ForkedProcess":
        environment = {**self._environment, heartbeat.VARIABLE: str(self._heartbeat.fd)}
        output, kept = self._log.fileno(), (lock, self._heartbeat.fd)
        if isinstance(self._program.runs, Entry):
            return ForkedProcess(self._program.runs, environment, output, output, kept)
        return subprocess.Popen(  # noqa: S603 - the supervisor's own commands
            self._program.runs,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(*self._program.fds, *kept),
            preexec_fn=end_with(os.getpid()),
        )

    def _write_pid(self) -> None:
        """Write the process number; if the disk is full, this is retried at each check of the child."""
        if self._unwritten is None or self._process is None:
            return
        try:
            os.pwrite(self._unwritten.fileno(), f"{self._process.pid}\n".encode(), 0)
        except OSError:
            return
        self._close_pid_file()

    def _close_pid_file(self) -> None:
        if self._unwritten is not None:
            self._unwritten.close()
            self._unwritten = None

    def _wait_longer(self) -> None:
        """Set when to restart, after a longer pause each time."""
        self.start_at = time.monotonic() + self._pauses.next()

    def silent_for(self) -> float:
        """Seconds without a heartbeat; negative while it is allowed time to start."""
        if self._process is None:
            return 0.0
        now = time.monotonic()
        ask = self._program.answers or self._heartbeat.heard
        if ask():
            self._alive_at, self._was_alive = now, True
        return now - self._alive_at - (0 if self._was_alive else START_PATIENCE)

    def forgive(self) -> None:
        """Restart the count of its silence, because the supervisor itself was stopped."""
        self._alive_at = time.monotonic()

    def died(self) -> str | None:
        """How the process ended, reported once, after killing the rest of its family. None if it is alive."""
        if self._process is None:
            return None
        self._write_pid()
        # WNOWAIT: until the process is reaped, its number names this family and no other.
        if os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        self.kill()
        code = self._process.wait()
        self._process = None
        self._close_pid_file()
        self._pid_path.unlink(missing_ok=True)
        if time.monotonic() - self._started_at >= YOUNG:
            self._pauses.begin_anew()
            self.start_at = time.monotonic()
        else:
            self._wait_longer()
        self._count_failures(code)
        return ending(code)

    def _count_failures(self, code: int) -> None:
        """Count an exit by which the program itself reports that it cannot start; a signal does not count."""
        if self._was_alive:
            self.failed_starts = 0
        elif code > 0:
            self.failed_starts += 1

    def terminate(self) -> None:
        """Ask the process to end itself and its family cleanly."""
        if self._process is not None:
            # Not Popen.terminate, which reaps a process that has just ended: `died` still needs its number.
            os.kill(self._process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the whole family."""
        if self._process is not None:
            # macOS raises PermissionError for a group of dead processes only.
            with contextlib.suppress(PermissionError):
                try:
                    os.killpg(self._process.pid, signal.SIGKILL)
                except ProcessLookupError:  # a fork that does not lead a session yet
                    os.kill(self._process.pid, signal.SIGKILL)

    def last_lines(self) -> list[str]:
        """The last lines of its log, without empty ones."""
        return self._log.last_lines()

    def new_lines(self) -> list[str]:
        """The complete lines that the program has written since the last call, if they are to be shown."""
        lines = self._log.new_lines()
        return lines if self._program.echo else []


def ending(code: int) -> str:
    """How a process ended, given its exit code, or minus the number of the signal that killed it."""
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def end_leftover(pid_path: Path) -> None:
    """End the family of an earlier run whose supervisor was killed, if it is still there. Raises Conflict."""
    with pid_path.open("r+", encoding="utf-8") as pid_file:
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                # The number is missing if the disk was full; Linux has told that family to end.
                with contextlib.suppress(ProcessLookupError, ValueError):
                    os.killpg(int(pid_file.readline()), number)
                pid_file.seek(0)
            deadline = time.monotonic() + (0 if number is None else LEFTOVER_PATIENCE)
            if _lock_until(pid_file, deadline):
                pid_path.unlink()
                return
    raise Conflict(
        None,
        expected="nothing left of an earlier run",
        got=Verbatim(f"a process that holds {pid_path}"),
        remedy="end it by hand",
    )


def _lock_until(file: IO[str], deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        else:
            return True
