"""How far a round is, and at what pace it goes."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from app.jobs.call_costs import Prices
from app.rounds.progress import RecentPace, figures, mean_pace

BEGAN = datetime(2026, 1, 31, 12, tzinfo=UTC)


def row(**values: Any) -> Any:
    base = {
        "id": 7, "matches": 100, "finished": 25, "aborted": 1, "moves": 200, "violations": 3, "lenient_moves": 0,
        "calls": 40, "failed_calls": 0, "prompt_tokens": 3_000_000, "completion_tokens": 1_000_000, "error": None,
        "cost": 0.0, "unpriced_calls": 0, "estimated_tokens": 0,
        "started_at": BEGAN, "ended_at": None,
    }  # fmt: skip
    return SimpleNamespace(**base | values)


def test_a_pace_is_of_the_last_quarter_of_a_minute() -> None:
    pace = RecentPace()
    assert pace.see(0, 0, 0) is None
    assert pace.see(0.5, 5, 20) is None
    assert pace.see(2, 20, 80) == (10, 40)
    for second in range(3, 40):
        latest = pace.see(second, 20 + second, 80)
    assert latest == pytest.approx((1, 0))


def test_what_is_left_follows_from_the_pace_while_the_round_runs() -> None:
    found = figures(row(), "running", (0.5, 4), None)
    assert (found["percent"], found["left"], found["matches_a_second"], found["moves_a_second"]) == (25, 150, 0.5, 4)
    for state, pace in (("done", (0.5, 4)), ("running", None)):
        stands = figures(row(), state, pace, None)
        assert stands["left"] is stands["matches_a_second"] is None
    assert figures(row(), "running", (0, 0), None)["left"] is None


def test_a_round_costs_what_its_calls_did_where_that_was_stored_of_all() -> None:
    assert figures(row(cost=1.25), "running", None, None)["cost"] == 1.25
    assert figures(row(cost=1.25), "running", None, Prices(1.5, 6))["cost"] == 1.25
    assert figures(row(), "running", None, None)["cost"] is None


def test_else_its_tokens_cost_what_their_prices_say() -> None:
    for unpriced in (None, 3):  # of an earlier release, and with some calls whose cost is unknown
        assert figures(row(unpriced_calls=unpriced), "running", None, Prices(1.5, 6))["cost"] == 10.5
        assert figures(row(unpriced_calls=unpriced, cost=1.25), "running", None, None)["cost"] is None


def test_the_mean_pace_is_over_the_time_that_a_round_was_played() -> None:
    assert mean_pace(row(started_at=None), BEGAN) is None
    assert mean_pace(row(), BEGAN) is None
    assert mean_pace(row(), BEGAN + timedelta(seconds=50)) == (0.5, 4)
    assert mean_pace(row(ended_at=BEGAN + timedelta(seconds=25)), BEGAN + timedelta(hours=9)) == (1, 8)
