"""What a round will take, from what is known of its models."""

from dataclasses import replace

import pytest

from app.games.negotiation.rules import NEGOTIATION
from app.games.taboo.rules import TABOO
from app.jobs import call_costs
from app.rounds.estimate import CallStatistics, ModelCapacity, estimate, typical

SCRIPTED = ModelCapacity(True, 1, None, call_costs.FREE)
FREE = ModelCapacity(False, 10, None, None)
PRICED = ModelCapacity(False, 10, None, call_costs.Prices(2.0, 8.0))
HABIT = CallStatistics(calls=4, prompt_tokens=1000, completion_tokens=100, latency=0.5, matches=30)


def test_a_model_that_plays_both_seats_is_called_for_both() -> None:
    found = estimate([("m", "m")], 50, {"m": HABIT}, {"m": PRICED})
    assert (found.matches, found.calls, found.prompt_tokens, found.completion_tokens) == (50, 400, 100_000, 10_000)
    assert found.cost == pytest.approx(0.2 + 0.08)
    assert found.seconds == pytest.approx(400 * 0.5 / 10)
    assert found.basis == {"m": 30}


def test_a_scripted_player_costs_nothing_and_is_not_called() -> None:
    found = estimate([("s", "s")], 1000, {"s": HABIT}, {"s": SCRIPTED})
    assert (found.calls, found.cost, found.basis) == (0, None, {})
    assert found.seconds > 0
    mixed = estimate([("s", "m")], 10, {"s": HABIT, "m": HABIT}, {"s": SCRIPTED, "m": PRICED})
    assert mixed.calls == 40
    assert mixed.cost == pytest.approx((10_000 * 2 + 1000 * 8) / 1e6)


def test_without_the_price_of_one_model_no_cost_is_named() -> None:
    habits, channels = {"a": HABIT, "b": HABIT}, {"a": PRICED, "b": FREE}
    assert estimate([("a", "b")], 10, habits, channels).cost is None


def test_what_is_cached_and_reasoned_has_prices_of_its_own() -> None:
    habit = replace(HABIT, cached_tokens=400, cache_write_tokens=100, reasoning_tokens=50)
    priced = ModelCapacity(False, 10, None, call_costs.Prices(2.0, 8.0, cached=0.2, cache_write=2.5, reasoning=4.0))
    found = estimate([("m", "m")], 50, {"m": habit}, {"m": priced})
    assert found.cost == pytest.approx(100 * (500 * 2 + 400 * 0.2 + 100 * 2.5 + 50 * 8 + 50 * 4) / 1e6)


def test_what_the_server_said_of_past_matches_comes_before_prices() -> None:
    habit = replace(HABIT, cost=0.03)
    for channel in (PRICED, FREE):
        assert estimate([("m", "m")], 50, {"m": habit}, {"m": channel}).cost == pytest.approx(3)


def test_one_match_takes_as_long_as_its_calls_one_after_the_other() -> None:
    assert estimate([("m", "m")], 1, {"m": HABIT}, {"m": FREE}).seconds == pytest.approx(8 * 0.5)


def test_tokens_a_minute_hold_a_round_back() -> None:
    slow = ModelCapacity(False, 1000, 11_000, None)
    assert estimate([("m", "m")], 50, {"m": HABIT}, {"m": slow}).seconds == pytest.approx(600)


def test_a_cross_play_is_all_of_its_pairs() -> None:
    pairs = [("a", "a"), ("a", "b"), ("b", "b")]
    found = estimate(pairs, 10, {"a": HABIT, "b": HABIT}, {"a": FREE, "b": FREE})
    assert (found.rounds, found.matches, found.calls) == (3, 30, 240)


def test_typical_games_of_taboo_grow_with_their_turns() -> None:
    usual, long = typical("taboo", {"max_turns": 5}), typical("taboo", {"max_turns": 10})
    assert usual == CallStatistics(*TABOO.typical)
    assert long.calls == 2 * usual.calls
    assert long.prompt_tokens > 2 * usual.prompt_tokens
    assert typical("negotiation", {"limit": 9}) == CallStatistics(*NEGOTIATION.typical)
