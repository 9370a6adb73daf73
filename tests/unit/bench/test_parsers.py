"""What the cost of each parser grows with, for the worst that the bench knows to send it."""

import pytest

from bench.parsers import MOST_GROWTH, PARSERS, Parser, growth

_SIZES = {"text of a study (Markdown)": 6_000, "file of a study (YAML)": 8_000, "archive of a study (zip)": 40_000}


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_four_times_the_input_costs_no_more_than_twice_doubled(parser: Parser) -> None:
    size = min(parser.most, _SIZES.get(parser.name, 60_000))
    most = MOST_GROWTH**2
    found = {name: growth(parser, shape, size, 4, most=most) for name, shape in parser.shapes.items()}
    assert {name: round(times, 1) for name, times in found.items() if times > most} == {}
