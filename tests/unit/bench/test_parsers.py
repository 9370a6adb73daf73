"""What the cost of each parser grows with, for the worst that the bench knows to send it."""

import time
from collections.abc import Sequence

import pytest

from bench.parsers import CHEAP, MOST_GROWTH, PARSERS, Parser, Shape, growth, repeated, seconds

_NOISE = 0.5  # what a busy machine may add; what grows with the square of its input costs four times as much
_LEAST = 4096  # bytes of an input that is tried first
_LONG_ENOUGH = 0.001  # seconds that are measured at a time at first; a suspicion is looked into by ten times that
_TRIES = 8  # the best of which counts: what grows faster than its input does so each time
_PAUSES = (0.0, 0.5, 1.0, 2.0)  # seconds before a suspicion is looked into again, so that a busy spell may pass


@pytest.mark.parametrize("longest", [0.03, pytest.param(1.0, marks=pytest.mark.long)], ids=["short", "long"])
@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_twice_the_input_costs_no_more_than_that_and_a_little(parser: Parser, longest: float) -> None:
    """For the largest input that is accepted, or that takes so many seconds."""
    found = {}
    for name, shape in parser.shapes.items():
        size, least = _LEAST, seconds(parser, shape, _LEAST)
        while 2 * size <= parser.most and seconds(parser, shape, size) < max(longest / 2, 2 * least):
            size *= 2
        if ratio := _too_much(parser, shape, size):
            found[name] = round(ratio, 1)
    assert found == {}


def _too_much(parser: Parser, shape: Shape, size: int, pauses: Sequence[float] = _PAUSES) -> float:
    """How many times as much twice an input costs, where that is too much each time it is measured, else 0."""
    ratio = 0.0
    for at, pause in enumerate(pauses):
        time.sleep(pause)
        whole, ratio = growth(parser, shape, size, _TRIES, MOST_GROWTH, _LONG_ENOUGH * (10 if at else 1))
        if whole < CHEAP or ratio <= MOST_GROWTH + _NOISE:
            return 0.0
    return ratio


def test_what_looks_at_each_pair_of_letters_is_found() -> None:
    def pairs(text: str) -> None:
        sum(one < other for one in text for other in text)

    parser = Parser("pairs", 1_000, "a test", pairs, {})
    assert _too_much(parser, repeated("a"), 1_000, (0.0, 0.0)) > MOST_GROWTH + _NOISE
