"""Ends a process when its parent dies, even by SIGKILL, where the system supports this."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def end_with(parent: int) -> Callable[[], None]:
    """The function that a child of process `parent` must call first, as `preexec_fn` or after a fork."""

    def prepare() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)

    return prepare
