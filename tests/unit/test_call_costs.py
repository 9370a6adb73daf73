"""What a call costs: the server's word, or else tokens by prices."""

from dataclasses import replace

import pytest

from app.jobs.call_costs import Prices, TokenCounts, cost_of
from app.players.base import Generation, priced

CALL = Generation([], "hi", "m", {}, 1000, 200, 0.5, 0, cached_tokens=600, cache_write_tokens=100, reasoning_tokens=150)
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


def test_a_cost_is_unknown_without_prices_and_without_counts() -> None:
    uncounted = replace(CALL, prompt_tokens=None, completion_tokens=None, cached_tokens=None, reasoning_tokens=None)
    for call in (priced(CALL, None), priced(uncounted, PLAIN)):
        assert (call.cost, call.cost_source) == (None, None)


def test_a_part_without_a_whole_makes_no_cost_negative() -> None:
    odd = replace(CALL, prompt_tokens=None)
    assert priced(odd, PLAIN).cost == pytest.approx(200 * 40 / 1e6)
