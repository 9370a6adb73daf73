"""One of Parlor's modules run as a separate process for the web process, because it takes long or loads what that
process must not.

The module reads a line of JSON from its input, and what it prints is its answer.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from tempfile import TemporaryFile
from typing import IO, Any

from app.core.config import ROOT

_GRACE = 10.0  # seconds that a process whose input has ended may take to tidy up


class BrokeOffError(Exception):
    """The process ended with an error; the text is the last line of its error output."""


class ModuleProcess:
    """The process of a module, started with these arguments.

    Its input stays open until `let_go`: a module that calls `end_with_input` then ends, as it does when the process
    that started it is gone.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self._errors = TemporaryFile()  # noqa: SIM115 - it is gone with this
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=ROOT,
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("expected a process with pipes")
        self._input = self._process.stdin
        self.output: IO[bytes] = self._process.stdout

    def give(self, given: Any) -> None:
        """Write `given` to its input as a line of JSON; if that is longer than a pipe holds, wait until it has been
        read.
        """
        with contextlib.suppress(BrokenPipeError):  # it has ended, and `check` says why
            self._input.write(json.dumps(given).encode() + b"\n")
            self._input.flush()

    def let_go(self) -> None:
        """Close its input."""
        with contextlib.suppress(BrokenPipeError):
            self._input.close()

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()

    def check(self) -> None:
        """Wait for its end. Raises BrokeOffError if it ended with an error."""
        if self._process.wait() != 0:
            self._errors.seek(0)
            last = self._errors.read().decode(errors="replace").strip().splitlines()[-1:]
            raise BrokeOffError("".join(last))


def run_module(module: str, *arguments: str, given: Any, seconds: float) -> bytes:
    """The output of a module for this input. Raises BrokeOffError, and TimeoutError after `seconds`."""
    process, late = ModuleProcess(module, *arguments), threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(seconds, end)
    timer.start()  # before writing input that it may never read
    try:
        process.give(given)
        process.let_go()
        answer = process.output.read()
        process.check()
    except BrokeOffError:
        if late.is_set():
            raise TimeoutError from None
        raise
    except BaseException:  # its caller, such as a request, was ended
        process.kill()
        raise
    finally:
        timer.cancel()
    return answer


def end_with_input() -> None:
    """From now on, end this process when its input ends: as if by SIGTERM, and shortly afterwards in any case."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # running work cleans up
    threading.Thread(target=_end_with_input, daemon=True).start()


def end_by_itself() -> None:
    """From now on, let this process finish when its input ends, which may take only a moment: its work is done."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def wait_for_end_of_input() -> None:
    """Wait until the process that started this one closes our input, or ends. Must be called in a thread of its own."""
    while os.read(0, 65536):  # not sys.stdin: Python aborts at exit if a thread is in a buffered read
        pass


def _end_with_input() -> None:
    wait_for_end_of_input()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os._exit(1)
