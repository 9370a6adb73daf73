"""The processes of `pytest -n`, forked from one that has loaded the libraries which tests import: six that load them
each take a minute of processor time.
"""

import atexit
import gc
import os
import sys
import warnings
from importlib import import_module
from typing import Any

from execnet import XSpec, gateway_io
from execnet.gateway_base import ExecModel, Popen2IO
from setproctitle import getproctitle, setproctitle

from tests.fork_server import Forked, ForkServer, run_of_tests, serve

_workers = ForkServer("tests.forked_workers")
_processes: list[Forked] = []
LOADED = (
    "app.factory",
    "openai.resources",
    "peft",
    "playwright.sync_api",
    "schemathesis",
    "sklearn.linear_model",
    "tinker",
    "training.trainer",
)


class _ForkedIO(Popen2IO):
    """How xdist talks to a process, and ends it."""

    def __init__(self, execmodel: ExecModel) -> None:
        theirs, ours = os.pipe(), os.pipe()
        self._process = _workers.fork((), os.environ, (ours[1], 2, theirs[0]), errors_apart=True, reads_last=True)
        _processes.append(self._process)
        os.close(theirs[0])
        os.close(ours[1])
        super().__init__(os.fdopen(theirs[1], "wb"), os.fdopen(ours[0], "rb"), execmodel=execmodel)

    def wait(self) -> int:
        return self._process.wait()

    def kill(self) -> None:
        self._process.kill()


def install() -> None:
    """Have xdist fork the processes that it starts from now on."""
    run_of_tests()  # which is then theirs, too
    gateway_io.create_io = _create_io


def interrupt() -> None:
    """Hand Ctrl-C on, which reaches the session of a terminal alone."""
    for process in _processes:
        process.interrupt()


def _create_io(_spec: XSpec, execmodel: ExecModel) -> Any:
    return _ForkedIO(execmodel)


def _work(_arguments: list[str]) -> int:
    exec(eval(sys.stdin.readline()), {})  # noqa: S102, S307 - what execnet has its own processes do
    atexit._run_exitfuncs()
    return 0


if __name__ == "__main__":
    setproctitle(getproctitle())  # titles are written where the first environment lies, as long as it is there
    warnings.filterwarnings("error", category=DeprecationWarning, module="app|workers|training")  # as pytest does
    for each in LOADED:
        import_module(each)
    gc.freeze()  # a fork that looks through what it shares has to copy it
    serve(_work)
