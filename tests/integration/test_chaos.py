"""Fifty matches at once while processes are killed at random; `make chaos` does it for longer.

The seed is printed at the end of the run; in the environment as CHAOS_SEED it repeats what is drawn.
"""

from collections.abc import Callable

import pytest

from tests.chaos.storm import VICTIMS, Report, storm
from tests.conftest import CHAOS_SEED
from tests.stack import TURNS_ALONE, Stack

SECONDS = 12.0
MOVES = 30
TURN_CLOCK = 7.0


def check(report: Report, victims: tuple[str, ...]) -> None:
    print(report.summary)
    assert report.problems == []
    assert report.matches >= 50
    assert report.moves >= MOVES
    assert set(report.blows) == set(victims)


@pytest.mark.long
def test_fifty_matches_outlive_what_is_killed_at_random(stack: Callable[..., Stack]) -> None:
    parlor = lambda env: stack({**env, **TURNS_ALONE})  # noqa: E731
    check(storm(parlor, SECONDS, CHAOS_SEED, moves=MOVES, turn_clock=TURN_CLOCK), (*VICTIMS, "broker"))


def test_on_postgresql_and_redis_they_outlive_it_too(
    stack: Callable[..., Stack], service_database: str, service_redis: str
) -> None:
    services = {"DATABASE_URL": service_database, "REDIS_URL": service_redis}
    parlor = lambda env: stack({**env, **services, **TURNS_ALONE})  # noqa: E731
    check(storm(parlor, SECONDS, CHAOS_SEED, moves=MOVES, turn_clock=TURN_CLOCK), VICTIMS)
