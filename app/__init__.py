"""Parlor: people and language models play language games, and their matches train the next models."""

import atexit
import gc

# Python looks for garbage so often that it is a fifth of what the start of a process takes, and next to nothing here
# leaves any in cycles.
gc.set_threshold(50_000, 20, 20)
# Nor is it to look once more among all that was loaded when it ends, which takes another fifth.
atexit.register(gc.freeze)

__version__ = "0.2.0"
