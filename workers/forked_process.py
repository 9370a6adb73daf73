"""A process forked from this one rather than started from scratch: it shares the memory of everything loaded here.

It behaves like a new process: it leads a session, inherits this process's signal settings but none of its handlers,
ends when this process dies, and keeps only the files it was given. `ps` shows the command that would start the same
program by hand.
"""

import atexit
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

from setproctitle import setproctitle, setthreadtitle

from app.core.config import ROOT
from workers.parent_death import end_with


@dataclass(frozen=True)
class Entry:
    """The entry point of a Python program: `module:function`, and its arguments. `nice` is added to its niceness."""

    function: str
    arguments: tuple[str, ...] = ()
    nice: int = 0

    @property
    def command(self) -> list[str]:
        """The command that starts the same program by hand, without its niceness."""
        module = self.function.partition(":")[0].removesuffix(".__main__")
        return [sys.executable, "-m", module, *self.arguments]

    def load(self) -> Callable[[], object]:
        """The function, after setting `sys.argv` as if the program were started by hand."""
        name, _, function = self.function.partition(":")
        module = import_module(name)
        sys.argv = [str(module.__file__), *self.arguments]
        found: Callable[[], object] = getattr(module, function)
        return found


class ForkedProcess:
    """A fork of this process that runs a program: the counterpart of subprocess.Popen for forks.

    Only for a process with one thread: a lock held by another thread would stay locked forever in the fork.
    """

    def __init__(
        self, entry: Entry, environment: Mapping[str, str], output: int, errors: int, kept: Collection[int] = ()
    ) -> None:
        """Fork. The fork gets the file descriptors `output`, `errors` and `kept`, the last under the same numbers."""
        parent = os.getpid()
        # A signal arriving before the fork has dropped this process's handlers would be lost in them.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self.pid = os.fork()
            if self.pid == 0:
                _run_entry(entry, parent, environment, (output, errors), kept, mask)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def wait(self) -> int:
        """Wait for it to end; returns the exit code, or minus the number of the signal that killed it."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def terminate(self) -> None:
        """Ask it to end. Do not call this after `wait`, when its process number may belong to another process."""
        os.kill(self.pid, signal.SIGTERM)


def _run_entry(
    entry: Entry,
    parent: int,
    environment: Mapping[str, str],
    outputs: tuple[int, int],
    kept: Collection[int],
    mask: Collection[int],
) -> NoReturn:
    """The fork's whole life. It must never return into its parent's code."""
    code = 1
    try:
        os.setsid()
        end_with(parent)()
        _keep_files(outputs, kept)
        _forget_handlers()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        setproctitle(" ".join(entry.command))
        setthreadtitle(Path(sys.executable).name)
        os.environ.update(environment)
        os.chdir(ROOT)
        os.nice(entry.nice)
        code = _exit_code(entry)
        # In the interpreter's order at exit: first threads, then registered functions.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _exit_code(entry: Entry) -> int:
    try:
        result = entry.load()()
    except SystemExit as end:
        result = end.code
    if result is None or isinstance(result, int):
        return (result or 0) & 0xFF
    print(result, file=sys.stderr)
    return 1


def _keep_files(outputs: tuple[int, int], kept: Collection[int]) -> None:
    """Set an empty input and `outputs` as the outputs, and close all other files except those to be kept."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, output in zip((1, 2), outputs, strict=True):
        os.dup2(output, number)
    for low, high in pairwise((2, *sorted(kept), os.sysconf("SC_OPEN_MAX"))):
        os.closerange(low + 1, high)
    for number in kept:
        os.set_inheritable(number, True)
    # Not the parent's, which may hold something unwritten, or write each line at once to a terminal.
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - a file descriptor, open to the end
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, errors="backslashreplace", buffering=1)  # noqa: SIM115


def _forget_handlers() -> None:
    """Reset signal handlers; ignored signals stay ignored, as in a process that is started from scratch."""
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
