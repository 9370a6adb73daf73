"""How figures are written."""

from app.analysis.bootstrap import Figure
from app.analysis.wording import interval, number
from app.games.metrics import POINTS, SHARE


def test_figures_are_written_as_people_read_them() -> None:
    assert number(None, POINTS) == "–"
    assert number(-1.25, POINTS) == "−1.25"
    assert number(0.1234, SHARE) == "12.3 %"
    assert interval(Figure(0.5, 0.25, 0.75), SHARE) == "25.0 to 75.0 %"
    assert interval(Figure(1), POINTS) == ""
