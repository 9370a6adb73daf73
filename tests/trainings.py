"""`python -m training` and `python -m training.benchmarks` for tests, forked from a process that has loaded torch: that
takes four seconds of processor time.

A training holds the job's lock, writes into the job's log, and can be signalled, as ever.
"""

import gc
import os
import subprocess
from collections.abc import Sequence
from importlib import import_module
from tempfile import TemporaryFile
from typing import Any

from tests.fork_server import ForkServer, serve


class ForkingSubprocess:
    """What runs trainings and looks at checkpoints needs of `subprocess`: `programs` are forked, all else is started as
    usual.

    A program is the beginning of a command, the last part of which is the name of its module.
    """

    DEVNULL, STDOUT, TimeoutExpired = subprocess.DEVNULL, subprocess.STDOUT, subprocess.TimeoutExpired

    def __init__(self, server: ForkServer, *programs: tuple[str, ...]) -> None:
        self._server = server
        self._programs = programs

    def Popen(self, command: Sequence[str], **options: Any) -> Any:  # noqa: N802 - the library's name
        arguments = self._forked(command)
        if arguments is None:
            return subprocess.Popen(command, **options)
        files = (options["stdout"].fileno(), *options["pass_fds"])
        return self._server.fork(arguments, options["env"] or os.environ, files, options["umask"])

    def run(self, command: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[str]":
        arguments = self._forked(command)
        if arguments is None:
            return subprocess.run(command, **options)
        with TemporaryFile("w+", encoding="utf-8") as output, TemporaryFile("w+", encoding="utf-8") as errors:
            files = (output.fileno(), errors.fileno())
            code = self._server.fork(arguments, os.environ, files, errors_apart=True).wait()
            for file in (output, errors):
                file.seek(0)
            return subprocess.CompletedProcess(command, code, output.read(), errors.read())

    def _forked(self, command: Sequence[str]) -> tuple[str, ...] | None:
        """The arguments of a fork; nothing where the command is none of the programs."""
        program = next((each for each in self._programs if tuple(command[: len(each)]) == each), None)
        return None if program is None else (program[-1], *command[len(program) :])


def _train(arguments: list[str]) -> int | None:
    module, *arguments = arguments
    if "--parent" in arguments:
        arguments[arguments.index("--parent") + 1] = str(os.getppid())
    code: int | None = import_module(f"{module}.__main__").main(arguments)
    return code


if __name__ == "__main__":
    import_module("training.__main__").prepare_libraries()
    import_module("training.recipe")
    import_module("training.benchmarks.run")
    gc.freeze()  # a fork that looks through what it shares has to copy it
    serve(_train)
