"""Unit tests: no database, no network, no process."""

from hypothesis import settings

# The machine may be busy: a slow example is no failure. Examples are derived from the test, so that a run repeats.
settings.register_profile("parlor", deadline=None, derandomize=True, database=None)
settings.load_profile("parlor")
