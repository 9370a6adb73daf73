"""What a campaign has come to: the figures of each iteration's model on the same held-out matches."""

from collections.abc import Mapping
from typing import Any

from app.analysis.bootstrap import Figure
from app.analysis.columns import NEGOTIATION, TABOO, TIMES, ColumnMetric, beside, number

_OF_NEGOTIATION = (
    "score_mean",
    "agreement_rate",
    "agreed_score_mean",
    "agreed_pareto_rate",
    "pareto_rate",
    "messages_mean",
    "unspoken_rate",
)
_OF_TABOO = (
    "attacker_wins_rate",
    "defender_wins_rate",
    "tied_rate",
    "rules_broken_rate",
    "turns_mean",
    "attacker_score_mean",
    "defender_score_mean",
)
COLUMNS: Mapping[str, Mapping[str, ColumnMetric]] = {
    "negotiation": {
        **{name: NEGOTIATION[name] for name in _OF_NEGOTIATION},
        "score_ratio": ColumnMetric("mean score ÷ base's", TIMES),
    },
    "taboo": {name: TABOO[name] for name in _OF_TABOO},
}


def in_words(figure: Mapping[str, Any] | None, unit: str) -> str:
    """A figure as people read it: "5.42 (5.20 to 5.63, n = 500)"; a dash where there is none."""
    if figure is None:
        return "–"
    found = Figure(**figure)
    more = beside(found, unit)
    return number(found.value, unit) + (f" ({more})" if more else "")
