"""What a round will take, from what is known of its models."""

import pytest

from app.games.negotiation.rules import NEGOTIATION
from app.games.taboo.rules import TABOO
from app.rounds.estimate import CallStatistics, ModelCapacity, estimate, typical

SCRIPTED = ModelCapacity(True, 1, None, (0.0, 0.0))
FREE = ModelCapacity(False, 10, None, None)
PRICED = ModelCapacity(False, 10, None, (2.0, 8.0))
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
