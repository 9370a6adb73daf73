"""What the cost of each parser grows with, for the worst that the bench knows to send it."""

import pytest

from bench.parsers import CHEAP, MOST_GROWTH, PARSERS, Parser, growth, seconds

_TRIES = 8  # the best of which counts: what grows faster than its input does so each time


@pytest.mark.parametrize("longest", [0.1, pytest.param(1.0, marks=pytest.mark.long)], ids=["short", "long"])
@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_twice_the_input_costs_no_more_than_that_and_a_little(parser: Parser, longest: float) -> None:
    """For the largest input that is accepted, or that takes so many seconds."""
    found = {}
    for name, shape in parser.shapes.items():
        size = parser.most
        while seconds(parser, shape, size) > longest:
            size //= 2
        whole, ratio = growth(parser, shape, size, _TRIES, MOST_GROWTH)
        if whole >= CHEAP and ratio > MOST_GROWTH:
            found[name] = round(ratio, 1)
    assert found == {}
