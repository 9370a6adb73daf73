"""The mean of a round as it went on."""

import pytest

from app.analysis.drawing import draw
from app.analysis.figure_files import SVG
from app.analysis.running_mean import mean_chart, means_of


def test_the_mean_has_the_normal_interval_from_ten_matches_on() -> None:
    means = means_of([*range(1, 13)])
    assert [each.matches for each in means] == [*range(1, 13)]
    assert [each.mean for each in means[:3]] == [1, 1.5, 2]
    assert means[8].low is None
    # 1 to 12: sample variance 13, so 1.96 times the root of 13/12 beside 6.5
    assert means[-1].low == pytest.approx(6.5 - 1.959964 * (13 / 12) ** 0.5)
    assert means[-1].high == pytest.approx(6.5 + 1.959964 * (13 / 12) ** 0.5)


def test_a_long_round_keeps_its_last_mean_and_one_match_has_no_chart() -> None:
    means = means_of([1.0, 3.0] * 5_000)
    assert len(means) <= 300
    assert (means[-1].matches, means[-1].mean) == (10_000, pytest.approx(2))
    chart = mean_chart("running-mean-1", means)
    assert chart is not None
    assert b"<svg" in draw(chart, SVG)[:5]
    assert mean_chart("running-mean-1", means_of([2.0])) is None
