"""Every column has a title, a unit and a line in the documentation, under the name that the figures have."""

import re

from app.analysis import columns, metrics
from app.analysis.bootstrap import Figure
from app.analysis.columns import interval, number
from app.config import ROOT
from app.games.match_table import FinishedMatch, of_rows
from app.games.taboo.outcomes import ROLES

DOCUMENTED = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "analysis.md").read_text()))
TWO = of_rows(
    [
        FinishedMatch((7, 4), ("a", "b"), "deal", 6, agreed=True),
        FinishedMatch((1, -1), ("a", "b"), "attacker wins", 4, winner=0),
    ]
)


def test_what_is_worked_out_is_what_is_titled_and_documented() -> None:
    for found, titled in (
        (metrics.negotiation(TWO, 0), columns.NEGOTIATION),
        (metrics.taboo(TWO, ROLES), columns.TABOO),
    ):
        assert list(found.columns) == list(titled)
        assert set(titled) - DOCUMENTED == set()
        for part in found.parts:
            assert set(part.columns) - set(columns.MODEL) == set()
    assert set(columns.MODEL) - DOCUMENTED == set()


def test_figures_are_written_as_people_read_them() -> None:
    assert number(None, columns.POINTS) == "–"
    assert number(-1.25, columns.POINTS) == "−1.25"
    assert number(0.1234, columns.SHARE) == "12.3 %"
    assert interval(Figure(0.5, 0.25, 0.75), columns.SHARE) == "25.0 to 75.0 %"
    assert interval(Figure(1), columns.POINTS) == ""
