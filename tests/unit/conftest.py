"""Unit tests: no database, no network, no process."""

from hypothesis import HealthCheck, settings

# The machine may be busy: a slow example is no failure. Examples are derived from the test, so that a run repeats.
SLOW = [HealthCheck.too_slow]
settings.register_profile("parlor", deadline=None, derandomize=True, database=None, suppress_health_check=SLOW)
settings.load_profile("parlor")
