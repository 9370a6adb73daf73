"""Processes for tests that are forked from one that has loaded what they need, which takes seconds of processor time.

Each is a process of its own as ever. What loads and forks is a module that is run as `python -m MODULE FD PID` and
calls `serve`: it listens at that socket, for all processes of a run of tests, until process PID is over, with which the
run has begun. Requests come with the files that the process is to have.
"""

import atexit
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from workers.parent_death import end_with

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 1 << 17  # bytes of a request, which is one packet
RUN = "TEST_RUN"  # in the environment: the process number of the run, and the folder in which its servers listen
_MOST_FILES = 4
Main = Callable[[list[str]], int | None]  # what a process runs; it returns the exit code


class ForkServer:
    """Forks processes. With the first of a run what they need is loaded."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None  # kept: it outlives this object

    def fork(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str],
        files: Sequence[int],
        umask: int = -1,
        errors_apart: bool = False,
        reads_last: bool = False,
    ) -> "Forked":
        """Start a process with these arguments and these variables alone. `files`: its output, and others to have, of
        which the first is for its errors when these are to be `errors_apart`, and the last is what it reads from if it
        `reads_last`.
        """
        status, end = os.pipe()
        apart = {"errors_apart": errors_apart, "reads_last": reads_last}
        request = {"arguments": [*arguments], "env": {**env}, "umask": umask, **apart}
        try:
            with self._lock:
                connection = self._socket or self._open()
                socket.send_fds(connection, [json.dumps(request).encode()], (end, *files))
                return Forked(int(connection.recv(LARGEST)), status)
        finally:
            os.close(end)

    def _open(self) -> socket.socket:
        run, folder = run_of_tests()
        path = folder / self._module
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with once(folder):
            try:
                self._socket.connect(str(path))
            except (FileNotFoundError, ConnectionRefusedError):
                path.unlink(missing_ok=True)
                self._start(run, path)
                self._socket.connect(str(path))
        return self._socket

    def _start(self, run: int, path: Path) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(str(path))
            listening.listen()
            command = [sys.executable, "-m", self._module, str(listening.fileno()), str(run)]
            self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=(listening.fileno(),), start_new_session=True)


@contextlib.contextmanager
def once(folder: Path) -> Iterator[None]:
    """What one process of a run of tests does at a time."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run_of_tests() -> tuple[int, Path]:
    """The process with which this run of tests has begun, and the folder of the run, which goes with it."""
    if RUN not in os.environ:
        folder = tempfile.mkdtemp(prefix="parlor-", dir="/tmp")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ[RUN] = f"{os.getpid()} {folder}"
    run, folder = os.environ[RUN].split()
    return int(run), Path(folder)


class Forked:
    """A process that was forked, as far as `subprocess.Popen` is asked for by those who start one."""

    def __init__(self, pid: int, status: int) -> None:
        """`status`: the end of a pipe that the exit code comes from."""
        self.pid = pid
        self.returncode: int | None = None
        self._status = status
        self._reading = threading.Lock()
        weakref.finalize(self, os.close, status)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises subprocess.TimeoutExpired when it still runs after so many seconds."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            with self._reading:  # a second thread may have waited for it, too
                if self.returncode is None:
                    self.returncode = int(os.read(self._status, 16))
        return self.returncode

    def poll(self) -> int | None:
        """Its exit code, or nothing while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


# ---- The process that is forked ---------------------------------------------


def serve(main: Main) -> None:
    """For each request have a fork call `main` with the arguments, until the run of tests is over. What was forked for
    a process that is over before is told to end.
    """
    listening, run, server = socket.socket(fileno=int(sys.argv[1])), os.pidfd_open(int(sys.argv[2])), os.getpid()
    while run not in select.select([listening.fileno(), run], [], [])[0]:
        connection, _ = listening.accept()
        _reap()
        if os.fork() == 0:
            try:
                listening.close()
                os.close(run)
                end_with(server)()
                _serve_one(connection, main)
            finally:
                os._exit(0)
        connection.close()


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve_one(connection: socket.socket, main: Main) -> None:
    """Do what one process asks for, until it is over."""
    while True:
        packet, files, *_ = socket.recv_fds(connection, LARGEST, _MOST_FILES)
        _reap()
        if not packet:
            return
        if os.fork() == 0:
            try:
                _keep(connection, main, json.loads(packet), *files)
            finally:
                os._exit(1)
        for file in files:
            os.close(file)


def _keep(
    connection: socket.socket,
    main: Main,
    request: Mapping[str, Any],
    end: int,
    *files: int,
) -> None:
    """Start a process, tell its number once it leads a session, and write its exit code when it is over.

    It is told to end with this process, which goes with the server.
    """
    end_with(os.getppid())()
    keeper = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(end)
        connection.close()
        _run(main, keeper, files, **request)
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None and os.getsid(pid) != pid:
        time.sleep(0.001)
    connection.send(str(pid).encode())
    connection.close()
    for file in files:  # a lock, say, which the process alone holds
        os.close(file)
    os.write(end, str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    os._exit(0)


def _run(
    main: Main,
    keeper: int,
    files: Sequence[int],
    arguments: list[str],
    env: Mapping[str, str],
    umask: int,
    errors_apart: bool,
    reads_last: bool,
) -> NoReturn:
    code = 1
    try:
        os.setsid()
        end_with(keeper)()
        if umask >= 0:
            os.umask(umask)
        standard = files[-1] if reads_last else os.open(os.devnull, os.O_RDONLY), files[0], files[int(errors_apart)]
        for number, file in enumerate(standard):
            os.dup2(file, number)
        for file in {*standard}:
            os.close(file)
        os.environ.clear()
        os.environ.update(env)
        code = main(arguments) or 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
