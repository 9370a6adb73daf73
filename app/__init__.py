"""Parlor: people and language models play language games, and their matches train the next models."""

import atexit
import gc

# By default the garbage collector runs so often that it takes a fifth of a process's start, although almost nothing
# here leaves reference cycles.
gc.set_threshold(50_000, 20, 20)
# A last collection at the end, over all that was loaded, would take another fifth.
atexit.register(gc.freeze)

__version__ = "0.2.0"
