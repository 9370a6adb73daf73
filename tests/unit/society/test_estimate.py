"""What a society is expected to take, in calls, tokens, money and time."""

import pytest

from app.jobs.call_costs import Prices
from app.rounds.estimate import ModelCapacity
from app.society.config import SocietyConfig
from app.society.estimate import ChatStatistics, calls_by_model, estimate

CONFIG = SocietyConfig(size=4, iterations=10, critics=3)
PAID = ModelCapacity(scripted=False, at_once=8, tokens_a_minute=None, prices=Prices(1.0, 2.0))
USUAL = ChatStatistics(prompt_tokens=100, completion_tokens=50, latency=2.0, calls=7)


def test_calls_are_those_of_drafts_critiques_revisions_and_observers() -> None:
    calls = calls_by_model(CONFIG, [("a", 3.0), ("b", 1.0)], ["b"])
    interactions = 16 * 10
    assert calls["a"] == pytest.approx(0.75 * interactions * 5)
    assert calls["b"] == pytest.approx(0.25 * interactions * 5 + interactions * 4)


def test_money_is_tokens_by_price_and_unknown_where_a_price_is() -> None:
    calls = {"a": 1000.0, "b": 500.0}
    found = estimate(CONFIG, calls, {"a": USUAL, "b": USUAL}, {"a": PAID, "b": PAID})
    assert found.cost == pytest.approx(1500 * (100 * 1.0 + 50 * 2.0) / 1e6)
    assert (found.calls, found.prompt_tokens, found.completion_tokens) == (1500, 150_000, 75_000)
    unpriced = ModelCapacity(scripted=False, at_once=8, tokens_a_minute=None, prices=None)
    assert estimate(CONFIG, calls, {"a": USUAL, "b": USUAL}, {"a": PAID, "b": unpriced}).cost is None


@pytest.mark.parametrize(
    ("capacity", "seconds"),
    [
        (PAID, 1600 * 2.0 / 8),  # requests at once
        (ModelCapacity(False, 1000, None, None), 10 * 4 * 2.0),  # steps that follow each other in each iteration
        (ModelCapacity(False, 1000, 60_000, None), 1600 * 150 / 1000),  # tokens a minute
    ],
)
def test_time_is_the_longest_of_what_has_to_happen(capacity: ModelCapacity, seconds: float) -> None:
    assert estimate(CONFIG, {"a": 1600.0}, {"a": USUAL}, {"a": capacity}).seconds == pytest.approx(seconds)
