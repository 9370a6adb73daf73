"""Parlor: people and language models play language games, and what was played makes the next model."""

import gc

# Python looks for garbage so often that it is a fifth of what the start of a process takes, and next to nothing here
# leaves any in cycles.
gc.set_threshold(50_000, 20, 20)

__version__ = "0.1.0"
