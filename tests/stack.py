"""Parlor as it really runs, for tests: the supervisor in a process of its own, on a free port."""

import contextlib
import itertools
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from sqlalchemy import Engine, text

from tests.fork_server import ROOT, Forked, ForkServer
from tests.new_sqlite import copy_new_sqlite

READY = "Ctrl-C stops everything."
# How long a test waits before it calls something hung. No test passes or fails by how fast the machine is below that.
PATIENCE = 300.0  # seconds; pytest ends a test after 600
# For rounds and jobs that only look as if somebody was at them.
LONG_LEASES = {"ROUND_LEASE": "7200", "TRAIN_LEASE": "7200"}


def new_home() -> Path:
    """A PARLOR_HOME with a path that is short enough for a unix socket in it."""
    return Path(tempfile.mkdtemp(prefix="parlor-", dir="/tmp"))


def worker() -> int:
    """The number of this process among those that `pytest -n` runs tests in; 0 when there is only this one."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


# Below the ports that the kernel gives to outgoing connections, a thousand for each worker: between being handed out
# and being listened on, a port could otherwise become somebody else's.
PORTS = range(12_000 + worker() % 20 * 1000, 13_000 + worker() % 20 * 1000)
_ports = itertools.islice(itertools.cycle(PORTS), os.getpid() % len(PORTS), None)  # two runs seldom begin at the same


def free_port() -> int:
    """A port on which nothing listens, and which was not handed out lately."""
    for port in itertools.islice(_ports, len(PORTS)):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError(f"expected a free port between {PORTS[0]} and {PORTS[-1]}")


def wait_until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Look again and again until `condition` holds; fails the test when it does not in time."""
    deadline = time.monotonic() + seconds
    pause = 0.02
    while not condition():
        assert time.monotonic() < deadline, f"expected within {seconds} s: {what}"
        time.sleep(pause)
        pause = min(1.1 * pause, 0.1)  # what takes longer is to have the processor for itself


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


# In their command lines.
_SIGNS = {"broker": "redis-server", "web": "gunicorn", "models": "workers.models", "upkeep": "workers.upkeep"}


def _is_child(pid: int, name: str) -> bool:
    """Whether a process is the supervisor's child of that name, by its command line."""
    try:
        return _SIGNS.get(name, f"{name}@%h") in Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def readable_by_others(home: Path) -> list[Path]:
    """What other users of the machine could read in a PARLOR_HOME that they may look into."""
    found = []
    for path in sorted(home.iterdir()):
        if path.stat().st_mode & 0o077 and path.name != "supervisor.out":
            found += [path, *(readable_by_others(path) if path.is_dir() else [])]
    return found


supervisors = ForkServer("tests.supervisors")

TURNS_ALONE = {"WORKER_QUEUES": "turns"}  # for what plays no rounds and trains nothing: a worker takes 1.4 s to load


class Stack:
    """A supervisor and its children. `env` is laid over the environment, which names no services."""

    def __init__(
        self, home: Path, env: Mapping[str, str] | None = None, *, python: str = sys.executable, anew: bool = False
    ) -> None:
        """`python`: of the environment that it runs in. `anew`: as `make run` starts it; else it is forked from a
        process that has loaded it.
        """
        port = str(free_port())
        own = {"PARLOR_HOME": str(home), "PORT": port, "READING_WORDS_PER_MINUTE": "0", "SMALL_MODELS": "false"}
        own["WORK_NICENESS"] = "0"  # beside other tests a training that gives way would hardly go on
        own["GUEST_CONFIG"] = "true"  # matches in which nothing is left to chance
        self.env = {**os.environ, "DATABASE_URL": "", "REDIS_URL": "", **own, **(env or {})}
        self.home = home
        self.url = f"http://127.0.0.1:{self.env['PORT']}"
        self._output_path = home / "supervisor.out"
        with self._output_path.open("ab") as output:
            self._from = output.tell()
            self.process: subprocess.Popen[bytes] | Forked
            if python == sys.executable and not anew:
                self.process = supervisors.fork((), self.env, (output.fileno(),))
                return
            self.process = subprocess.Popen(
                [python, "-m", "workers.supervisor"],
                cwd=ROOT,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # the group that a terminal would give it
            )

    def output(self) -> str:
        """What the supervisor has printed since this start."""
        return self._output_path.read_bytes()[self._from :].decode()

    def wait_until_ready(self) -> None:
        """Wait for the greeting; fails with the output when the supervisor ends instead."""
        wait_until(lambda: READY in self.output() or self.process.poll() is not None, "the supervisor's greeting")
        assert READY in self.output(), f"the supervisor ended with {self.process.returncode}:\n{self.output()}"

    def pid(self, name: str) -> int:
        """The process number of a child, such as web or turns. Its file is there a moment before the number."""
        path = self.home / "run" / f"{name}.pid"
        number = ""  # of one look: the next may be at the file of another life

        def is_there() -> bool:
            nonlocal number
            number = path.read_text()
            return bool(number)

        wait_until(is_there, f"the process number of {name}")
        return int(number)

    def send(self, name: str, number: int = signal.SIGKILL) -> int:
        """Signal a child, also one whose number a full disk has not taken; returns its process number."""
        pid = next(pid for pid in self.family()[1:] if _is_child(pid, name))
        os.kill(pid, number)
        return pid

    def kill(self, name: str) -> int:
        """SIGKILL a child, wait until another is in its place, and return the new one's process number."""
        old = self.pid(name)
        os.kill(old, signal.SIGKILL)

        def replaced() -> bool:
            try:
                return self.pid(name) != old
            except FileNotFoundError:  # between two lives
                return False

        wait_until(replaced, f"a new {name}")
        return self.pid(name)

    def healthy(self) -> bool:
        """Whether the web process says that it is well; waits for one that is being replaced."""
        return self.get("/healthz").strip() == "ok"

    def get(self, path: str, timeout: float = PATIENCE) -> str:
        """The body of a page, which must answer 200."""
        with urllib.request.urlopen(self.url + path, timeout=timeout) as response:  # noqa: S310 - our own address
            return str(response.read().decode())

    def family(self) -> list[int]:
        """The supervisor's process number and those of all that it started, down to the last."""
        parents = {}
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
        found = [self.process.pid]
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        return found

    def stop(self, number: int = signal.SIGINT) -> int:
        """Signal the supervisor's whole group, as Ctrl-C does; returns its exit code."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """Stop, by force if need be, and show what was printed, for the report of a test that failed."""
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            for pid in self.family():
                os.kill(pid, signal.SIGKILL)
            raise
        finally:
            print(self.output())


@contextlib.contextmanager
def running_parlor(*, anew: bool = False, **env: str) -> Iterator[Stack]:
    """A Parlor in a folder of its own, until the end of the block. `env` is laid over the environment.

    `anew`: as `make run` starts it, and without a database; else the database is there and up to date.
    """
    home = new_home()
    try:
        if not (anew or env.get("DATABASE_URL")):
            copy_new_sqlite(home)
        parlor = Stack(home, env, anew=anew)
        try:
            parlor.wait_until_ready()
            yield parlor
        finally:
            parlor.close()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def put_to_sleep(engine: Engine, group: int) -> None:
    """SIGSTOP a group of processes while none of them is within a transaction, which would hold up everybody else."""

    def asleep() -> bool:
        os.killpg(group, signal.SIGSTOP)
        wait_until(lambda: _threads_stopped(group), "threads that have all stopped")
        if _nobody_holds(engine):
            return True
        os.killpg(group, signal.SIGCONT)
        return False

    wait_until(asleep, "processes that are not within a transaction")


def _threads_stopped(group: int) -> bool:
    """Whether every thread of a group of processes stands still: on a busy machine some run on after the signal."""
    for stat in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            state, _parent, its_group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state not in "TtZX":
                return False
    return True


def _nobody_holds(engine: Engine) -> bool:
    """Whether transactions that have begun by now end within a second."""
    if engine.dialect.name == "sqlite":
        with contextlib.closing(sqlite3.connect(str(engine.url.database), timeout=1)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            return True
    open_since = text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < :at"
    )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        at = connection.scalar(text("SELECT now()"))
        for _ in range(10):
            if connection.scalar(open_since, {"at": at}) == 0:
                return True
            time.sleep(0.1)
    return False


@contextlib.contextmanager
def another_worker(parlor: Stack, queue: str) -> "Iterator[subprocess.Popen[bytes]]":
    """A second worker for turns, rounds (batch) or trainings (train) beside the supervisor's, as on another machine."""
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "workers.celery_app", "worker", "-n", "second@%h"]
    command += ["-Q", queue, "-P", "threads", "-c", {"turns": "4", "batch": "2", "train": "1"}[queue]]
    command += ["--without-gossip", "--without-mingle", "--loglevel", "error"]
    with (parlor.home / "second.log").open("ab") as log:
        started = subprocess.Popen(command, cwd=ROOT, env=parlor.env, stdout=log, stderr=log, start_new_session=True)
    try:
        yield started
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait(PATIENCE)
