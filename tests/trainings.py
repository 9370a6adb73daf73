"""`python -m training`, `python -m training.benchmarks` and what sends to the hub for tests, forked from a process that
has loaded torch: that takes four seconds of processor time.

A training holds the job's lock, writes into the job's log, and can be signalled, as ever.
"""

import gc
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from tempfile import TemporaryFile
from typing import Any, Self

from tests.fork_server import ForkServer, serve

_SENDS = "app.publication.sending"
_MODULES = ("training", "training.tinker", "training.benchmarks", _SENDS)
trainings = ForkServer("tests.trainings")


class ForkingSubprocess:
    """What runs trainings, looks at checkpoints and sends needs of `subprocess`: our own modules are run by forks, all
    else is started as usual.
    """

    DEVNULL, PIPE, STDOUT = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
    TimeoutExpired = subprocess.TimeoutExpired

    def Popen(self, command: Sequence[str], **options: Any) -> Any:  # noqa: N802 - the library's name
        arguments = _forked(command)
        if arguments is None:
            return subprocess.Popen(command, **options)
        env = options["env"] or os.environ
        if options["stdin"] == subprocess.PIPE:
            return _PipedFork(arguments, env)
        files = (options["stdout"].fileno(), *options["pass_fds"])
        return trainings.fork(arguments, env, files, options["umask"])

    def run(self, command: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[str]":
        arguments = _forked(command)
        if arguments is None:
            return subprocess.run(command, **options)
        with TemporaryFile("w+", encoding="utf-8") as output, TemporaryFile("w+", encoding="utf-8") as errors:
            files = (output.fileno(), errors.fileno())
            code = trainings.fork(arguments, os.environ, files, errors_apart=True).wait()
            for file in (output, errors):
                file.seek(0)
            return subprocess.CompletedProcess(command, code, output.read(), errors.read())


def _forked(command: Sequence[str]) -> list[str] | None:
    """The arguments of a fork; nothing where the command is none of our modules."""
    started_by = [sys.executable, "-m"]
    return [*command[2:]] if [*command[:2]] == started_by and command[2] in _MODULES else None


class _PipedFork:
    """A fork whose input is written, and whose output is read, by whoever started it."""

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        reads, written = os.pipe()
        read, output = os.pipe()
        with open(os.devnull, "wb") as errors:  # noqa: PTH123 - not a path of the project
            files = (output, errors.fileno(), reads)
            self._process = trainings.fork(arguments, env, files, errors_apart=True, reads_last=True)
        for file in (reads, output):
            os.close(file)
        self.stdin, self.stdout = os.fdopen(written, "wb"), os.fdopen(read, "rb")
        self.poll, self.kill = self._process.poll, self._process.kill

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdin.close()
        self.stdout.close()
        self._process.wait()


def _run(arguments: list[str]) -> int | None:
    module, *arguments = arguments
    if module == _SENDS:
        constants = import_module("huggingface_hub.constants")
        vars(constants)["HF_HUB_OFFLINE"] = "HF_HUB_OFFLINE" in os.environ  # read when the library was loaded
        import_module(module).main()
        return 0
    if "--parent" in arguments:
        arguments[arguments.index("--parent") + 1] = str(os.getppid())
    code: int | None = import_module(f"{module}.__main__").main(arguments)
    return code


if __name__ == "__main__":
    import_module("training.__main__").prepare_libraries()
    import_module("training.recipe")
    import_module("training.benchmarks.run")
    import_module(_SENDS)
    gc.freeze()  # a fork that looks through what it shares has to copy it
    serve(_run)
