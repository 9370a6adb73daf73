"""A metric is defined once: whatever shows metrics reads its game's definitions."""

from dataclasses import replace

import pytest

from app.analysis.charts import charts_of
from app.analysis.matches import MatchAnalysis, figures_of
from app.analysis.tables import analysis_columns, analysis_rows
from app.codebook import codebook
from app.games import GAMES
from app.games.match_table import FinishedMatch, of_rows
from app.games.metrics import MEDIAN, MOVES, PART, POINTS, SHARE, GameMetrics, Histogram, Metric, Use
from scripts.metric_tables import PAGE, tables, with_tables
from scripts.translations import extracted
from tests.figures import TABOO, negotiation, taboo

ROWS = of_rows(
    [
        FinishedMatch((7, 4), ("a", "b"), "deal", 6, agreed=True),
        FinishedMatch((1, -1), ("a", "b"), "attacker wins", 4, winner=0),
    ]
)
SHORT = Metric(
    "short_rate", "ends within four moves", SHARE, "matches of at most four moves", lambda matches: matches.ply <= 4,
    PART, rank=5, uses=Use.TILE,
)  # fmt: skip
SPARE = Metric(
    "spare_moves_mean", "moves that were left", MOVES, "accepted moves short of ten", lambda matches: 10 - matches.ply,
    histogram=Histogram("spare", "Moves left", "Moves short of ten"),
)  # fmt: skip


@pytest.fixture
def taboo_with_more(monkeypatch: pytest.MonkeyPatch) -> GameMetrics:
    """The metrics of taboo, and two more."""
    more = replace(TABOO, of_matches=(*TABOO.of_matches, SHORT, SPARE))
    monkeypatch.setattr(type(GAMES["taboo"]), "metrics", more)
    return more


def test_what_is_worked_out_is_what_is_defined_in_this_order() -> None:
    for found, game in ((negotiation(ROWS, 0), "negotiation"), (taboo(ROWS), "taboo")):
        defined = GAMES[game].metrics  # type: ignore[attr-defined]
        assert list(found.columns) == list(defined.columns)
        assert all(list(part.columns) == list(defined.models) for part in found.parts)


def test_the_tables_of_the_page_are_those_of_the_definitions() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text) == text, "`python -m scripts.metric_tables` writes them anew"


def test_one_more_metric_of_a_game_is_shown_wherever_metrics_are(taboo_with_more: GameMetrics) -> None:
    analysis = MatchAnalysis(name="a test", **figures_of(ROWS, "taboo", None))
    assert analysis.to_json()["columns"]["short_rate"] == analysis.metrics.columns["short_rate"]._asdict()
    assert analysis.metrics.columns["short_rate"][:1] == (0.5,)
    assert analysis.metrics.columns["spare_moves_mean"].value == 5
    assert "short_rate" in [column.name for column in analysis_columns(["taboo"])]
    assert next(iter(analysis_rows([analysis])))["short_rate"] == 0.5
    assert b"analysis,short_rate,number,Ends within four moves: matches of at most four moves." in b"".join(codebook())
    assert "Moves left" in [chart.title for chart in charts_of(analysis)]
    assert "| `short_rate` | ends within four moves | share, Wilson | matches of at most four moves |" in tables()
    assert "Ends within four moves" in extracted()
    assert taboo_with_more.shown(Use.TILE)[0] is SHORT


def test_a_game_says_what_says_most_of_its_matches_and_of_its_models() -> None:
    with pytest.raises(ValueError, match="one headline of these, got short_rate"):
        replace(TABOO, of_matches=(SHORT,))
    with pytest.raises(ValueError, match="expected score_mean of a model"):
        replace(TABOO, of_models=tuple(each for each in TABOO.of_models if each.name != "score_mean"))


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"name": "short_mean"}, "short_mean"),
        ({"unit": POINTS}, "short_rate"),
        ({"aggregate": "mean"}, "share"),
        ({"name": "score_middle", "unit": POINTS, "aggregate": MEDIAN}, "score_middle"),
    ],
)
def test_a_definition_that_contradicts_itself_is_refused(wrong: dict[str, str], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        replace(SHORT, **wrong)
