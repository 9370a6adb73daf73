"""Heartbeats of the supervisor's children: each writes a byte into a pipe once a second.

A process that is stopped, or whose event loop is stuck, writes none and is replaced. A pipe depends neither on disk
space nor on a clock that may jump.
"""

import asyncio
import contextlib
import os

VARIABLE = "PARLOR_HEARTBEAT"  # names the file descriptor to write to; a process without it was not started by us
EVERY = 1.0  # seconds between two beats


class Heartbeat:
    """The supervisor's end of one child's pipe."""

    def __init__(self) -> None:
        self._reader, self.fd = os.pipe()
        for end in (self._reader, self.fd):
            os.set_blocking(end, False)

    def heard(self) -> bool:
        """Whether the child has written since the last call."""
        found = False
        with contextlib.suppress(BlockingIOError):
            while os.read(self._reader, 4096):
                found = True
        return found


def beat() -> None:
    """Send a heartbeat, if the supervisor expects one."""
    if (number := os.environ.get(VARIABLE)) is not None:
        with contextlib.suppress(OSError):  # a supervisor that does not read for an hour has a full pipe
            os.write(int(number), b".")


def beat_on(loop: asyncio.AbstractEventLoop) -> None:
    """Send a heartbeat once a second for as long as the loop runs."""
    beat()
    loop.call_later(EVERY, beat_on, loop)
