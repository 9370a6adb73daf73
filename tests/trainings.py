"""`python -m training` and `python -m training.benchmarks` for tests, forked from a process that has loaded torch: that
takes four seconds of processor time.

A training is a process of its own as ever: it leads a session, holds the job's lock, writes into the job's log, and can
be signalled. `python -m tests.trainings FD` is what it is forked from; requests come over that socket.
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import IO, Any, NoReturn

from tests.stack import PATIENCE, ROOT
from workers.parent_death import end_with

LARGEST = 1 << 17  # bytes of a request, which is one packet


class TrainingServer:
    """Forks trainings, and loads torch with the first. Close it in the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, request: Mapping[str, Any], fds: Sequence[int]) -> int:
        """The process number of a new training. `fds` are its log, its lock, and where its exit code is written."""
        with self._lock:
            connection = self._socket or self._open()
            socket.send_fds(connection, [json.dumps(request).encode()], fds)
            return int(connection.recv(LARGEST))

    def _open(self) -> socket.socket:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "tests.trainings", str(theirs.fileno())]
        self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=(theirs.fileno(),), start_new_session=True)
        theirs.close()
        return self._socket

    def close(self) -> None:
        if self._socket and self._process:
            self._socket.close()
            self._process.wait(PATIENCE)


class ForkedTraining:
    """A training that was forked, as far as `subprocess.Popen` is asked for by those who train."""

    def __init__(
        self,
        server: TrainingServer,
        module: str,
        arguments: Sequence[str],
        env: Mapping[str, str],
        log: IO[bytes],
        lock: int,
        umask: int,
    ) -> None:
        self.returncode: int | None = None
        self._status, end = os.pipe()
        try:
            request = {"module": module, "arguments": [*arguments], "env": {**env}, "umask": umask}
            self.pid = server.start(request, (log.fileno(), lock, end))
        finally:
            os.close(end)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises subprocess.TimeoutExpired when it still runs after so many seconds."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("training", timeout or 0)
            self.returncode = int(os.read(self._status, 16))
            os.close(self._status)
        return self.returncode

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def terminate(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)


class ForkingSubprocess:
    """What `app.jobs.process` needs of `subprocess`: `programs` are forked, all else is started as usual.

    A program is the beginning of a command, the last part of which is the name of its module.
    """

    DEVNULL, STDOUT, TimeoutExpired = subprocess.DEVNULL, subprocess.STDOUT, subprocess.TimeoutExpired

    def __init__(self, server: TrainingServer, *programs: tuple[str, ...]) -> None:
        self._server = server
        self._programs = programs

    def Popen(self, command: Sequence[str], **options: Any) -> Any:  # noqa: N802 - the library's name
        program = next((each for each in self._programs if tuple(command[: len(each)]) == each), None)
        if program is None:
            return subprocess.Popen(command, **options)
        arguments, (lock,) = command[len(program) :], options["pass_fds"]
        env = options["env"] or os.environ
        return ForkedTraining(self._server, program[-1], arguments, env, options["stdout"], lock, options["umask"])


# ---- The process that is forked ---------------------------------------------


def _serve(connection: socket.socket) -> None:
    training = import_module("training.__main__")
    training.prepare_libraries()
    import_module("training.recipe")
    import_module("training.benchmarks.run")
    while True:
        request, fds, *_ = socket.recv_fds(connection, LARGEST, 3)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not request:
            return
        if os.fork() == 0:
            _wait_for_training(connection, json.loads(request), *fds)
        for fd in fds:
            os.close(fd)


def _wait_for_training(
    connection: socket.socket, request: Mapping[str, Any], log: int, lock: int, end: int
) -> NoReturn:
    """Start a training, tell its process number, and write its exit code when it is over.

    A training stops when this process is gone, which goes with the server.
    """
    end_with(os.getppid())()
    pid = os.fork()
    if pid == 0:
        os.close(end)
        connection.close()
        _train(log, **request)
    connection.send(str(pid).encode())
    connection.close()
    os.close(lock)  # which the training alone holds
    os.write(end, str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    os._exit(0)


def _train(log: int, module: str, arguments: list[str], env: Mapping[str, str], umask: int) -> NoReturn:
    code = 1
    try:
        os.setsid()
        os.umask(umask)
        for number, fd in enumerate((os.open(os.devnull, os.O_RDONLY), log, log)):
            os.dup2(fd, number)
        os.environ.clear()
        os.environ.update(env)
        arguments[arguments.index("--parent") + 1] = str(os.getppid())
        code = import_module(f"{module}.__main__").main(arguments)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
