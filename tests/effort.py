"""How the effort of a computation grows with its input, which a slow or busy machine answers as a fast one does."""

import gc
import sys
import time
from collections.abc import Callable
from types import FrameType

LEAST = 0.002  # seconds of CPU; what takes less is not told apart from noise


def growth(work: Callable[[int], object], small: int, large: int) -> float:
    """How many times as much CPU time `work(large)` takes as `work(small)`: about large / small when it is linear.

    Of each the best of six runs counts, in turn, after one that is not timed, so that what is loaded once is there.
    Garbage is not looked for meanwhile: that takes as long as there is much in the process, which is the other tests'.
    """
    work(small)
    gc.disable()
    try:
        runs = [(_seconds(work, large), _seconds(work, small)) for _ in range(6)]
    finally:
        gc.enable()
    return max(min(of_large for of_large, _ in runs), LEAST) / max(min(of_small for _, of_small in runs), LEAST)


def _seconds(work: Callable[[int], object], size: int) -> float:
    began = time.process_time()
    work(size)
    return time.process_time() - began


def calls(work: Callable[[], object]) -> int:
    """How many functions `work` calls, those of C included: the same on every machine."""
    counted = 0

    def count(_frame: FrameType, what: str, _about: object) -> None:
        nonlocal counted
        counted += what in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted
