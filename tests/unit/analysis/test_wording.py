"""How figures are written."""

from app.analysis.bootstrap import FEW_SEEDS, Figure
from app.analysis.wording import figure_in_words, interval, number, signed_in_words
from app.games.metrics import POINTS, SHARE


def test_figures_are_written_as_people_read_them() -> None:
    assert number(None, POINTS) == "–"
    assert number(-1.25, POINTS) == "−1.25"
    assert number(0.1234, SHARE) == "12.3 %"
    assert interval(Figure(0.5, 0.25, 0.75), SHARE) == "25.0 to 75.0 %"
    assert interval(Figure(1), POINTS) == ""


def test_a_figure_and_a_difference_are_written_with_what_is_beside_them() -> None:
    assert figure_in_words(Figure(5.421, 5.2, 5.634, 500), POINTS) == "5.42 (5.20 to 5.63, n = 500)"
    assert (
        figure_in_words(Figure(0.5, n=4, no_interval=FEW_SEEDS), SHARE)
        == "50.0 % (no interval for fewer than 10 seeds, n = 4)"
    )
    assert figure_in_words(Figure(3.0), POINTS) == "3.00"
    assert figure_in_words(None, POINTS) == figure_in_words(Figure(None), POINTS) == "–"
    assert signed_in_words(Figure(0.4, -0.1, 0.71, 12), POINTS) == "+0.40 (−0.10 to +0.71)"
    assert signed_in_words(Figure(0.04, 0.01, 0.07, 12), SHARE) == "+4.0 pp (+1.0 to +7.0 pp)"
    assert signed_in_words(Figure(None), POINTS) == "–"
