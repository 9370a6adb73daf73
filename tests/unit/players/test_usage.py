"""What a server counts of a call, and what it says that it costs."""

import json
import math
from typing import Any

import pytest

from app.players.api.answers import Usage, read_usage


def read(**usage: Any) -> Usage:
    return read_usage({"usage": usage})


def test_parts_of_the_prompt_and_of_the_answer_are_read_where_openai_puts_them() -> None:
    found = read(
        prompt_tokens=2000, completion_tokens=500, total_tokens=2500,
        prompt_tokens_details={"cached_tokens": 1024, "cache_write_tokens": 512},
        completion_tokens_details={"reasoning_tokens": 400},
    )  # fmt: skip
    assert found == Usage(2000, 500, 1024, 512, 400, None)


def test_reasoning_beside_the_completion_is_added_to_it_as_the_total_tells() -> None:
    found = read(
        prompt_tokens=32, completion_tokens=9, total_tokens=135, completion_tokens_details={"reasoning_tokens": 94}
    )
    assert (found.completion_tokens, found.reasoning_tokens) == (103, 94)
    nothing_written = read(
        prompt_tokens=21, completion_tokens=0, total_tokens=81, completion_tokens_details={"reasoning_tokens": 60}
    )
    assert (nothing_written.completion_tokens, nothing_written.reasoning_tokens) == (60, 60)


def test_what_a_server_does_not_count_is_unknown_and_not_nothing() -> None:
    assert read() == Usage() == read_usage({})
    assert read(prompt_tokens=5, completion_tokens=2) == Usage(5, 2)
    assert read(prompt_tokens=5, prompt_tokens_details={"cached_tokens": 0}).cached_tokens == 0


@pytest.mark.parametrize("odd", [-1, "12", True, 1.5, 10**12, math.nan, math.inf, None, [], {}])
def test_an_odd_count_does_not_enter(odd: Any) -> None:
    found = read(
        prompt_tokens=odd, completion_tokens=odd, reasoning_tokens=odd, prompt_cache_hit_tokens=odd, total_tokens=odd,
        prompt_tokens_details={"cached_tokens": odd, "cache_write_tokens": odd},
        completion_tokens_details={"reasoning_tokens": odd},
    )  # fmt: skip
    assert found == Usage()


@pytest.mark.parametrize("odd", ["-0.1", '"0.2"', "true", "1e9", "NaN", "Infinity", "-Infinity", "null", "[1]", "{}"])
def test_an_odd_cost_does_not_enter(odd: str) -> None:
    assert read_usage(json.loads(f'{{"usage": {{"cost": {odd}}}}}')).cost is None


def test_a_part_that_is_larger_than_its_whole_is_unknown() -> None:
    found = read(
        prompt_tokens=100, completion_tokens=10,
        prompt_tokens_details={"cached_tokens": 80, "cache_write_tokens": 40},
        completion_tokens_details={"reasoning_tokens": 11},
    )  # fmt: skip
    assert (found.cached_tokens, found.cache_write_tokens, found.reasoning_tokens) == (80, None, None)


def test_a_call_with_a_key_of_ones_own_costs_the_vendors_bill_as_well() -> None:
    assert read(cost=0.25, cost_details={"upstream_inference_cost": 0.25}).cost == 0.25
    assert read(cost=0.05, is_byok=True, cost_details={"upstream_inference_cost": 1}).cost == pytest.approx(1.05)
    assert read(cost=0, is_byok=True).cost is None  # the vendor's bill is unknown
