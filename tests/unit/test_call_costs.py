"""What a call costs: the server's word, or else tokens by prices."""

from dataclasses import replace

import pytest

from app.jobs.call_costs import Prices, TokenCounts, cost_of
from app.players.base import Generation, priced

CALL = Generation([], "hi", "m", {}, 1000, 200, 0.5, 0, cached_tokens=600, cache_write_tokens=100, reasoning_tokens=150)
_SENT: list[dict[str, str]] = [{"role": "system", "content": "a" * 150}, {"role": "user", "content": "ü" * 100}]
UNCOUNTED = Generation(_SENT, "b" * 40, "m", {}, None, None, 0.5, 0, reasoning="c" * 30, outcome="move")
PLAIN = Prices(10, 40)


def test_each_kind_of_tokens_has_its_price() -> None:
    prices = Prices(10, 40, cached=1, cache_write=12.5, reasoning=20)
    assert cost_of(prices, TokenCounts(1000, 200, 600, 100, 150)) == pytest.approx(
        (300 * 10 + 600 * 1 + 100 * 12.5 + 50 * 40 + 150 * 20) / 1e6
    )


def test_without_prices_of_their_own_parts_cost_what_the_whole_does() -> None:
    assert cost_of(PLAIN, TokenCounts(1000, 200, 600, 100, 150)) == pytest.approx((1000 * 10 + 200 * 40) / 1e6)


def test_the_cost_that_the_server_says_comes_first_and_is_marked_as_such() -> None:
    for prices in (PLAIN, None):
        call = priced(CALL, prices, 0.0)
        assert (call.cost, call.cost_source) == (0.0, "server")


def test_tokens_by_prices_are_the_cost_where_the_server_says_none() -> None:
    call = priced(CALL, PLAIN)
    assert (call.cost, call.cost_source) == (pytest.approx(0.018), "prices")


def test_a_cost_is_unknown_without_prices_and_of_an_answer_that_is_none_without_counts() -> None:
    refused = replace(UNCOUNTED, text=None, outcome="busy")
    for call in (priced(CALL, None), priced(UNCOUNTED, None), priced(refused, PLAIN)):
        assert (call.cost, call.cost_source) == (None, None)


def test_tokens_that_the_server_does_not_count_are_estimated_by_the_texts() -> None:
    """350 bytes sent are 100 tokens, and 70 that came are 20, reasoning included."""
    call = priced(UNCOUNTED, PLAIN)
    assert (call.cost, call.cost_source) == (pytest.approx((100 * 10 + 20 * 40) / 1e6), "estimate")
    assert (call.prompt_tokens, call.completion_tokens) == (None, None)
    half = priced(replace(UNCOUNTED, prompt_tokens=1000), PLAIN)
    assert (half.cost, half.cost_source) == (pytest.approx((1000 * 10 + 20 * 40) / 1e6), "estimate")


def test_a_part_without_a_whole_makes_no_cost_negative() -> None:
    odd = replace(CALL, completion_tokens=0)
    assert priced(odd, Prices(0, 40)).cost == 0
