"""What a campaign has come to: the figures of each iteration's model on the same held-out matches."""

from collections.abc import Mapping
from typing import Any

from app.analysis.columns import NEGOTIATION, TABOO, Column, number

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
COLUMNS: Mapping[str, Mapping[str, Column]] = {
    "negotiation": {name: NEGOTIATION[name] for name in _OF_NEGOTIATION},
    "taboo": {name: TABOO[name] for name in _OF_TABOO},
}


def in_words(figure: Mapping[str, Any] | None, unit: str) -> str:
    """A figure with its interval, as people read it: "5.42 (5.20 to 5.63)"; an ellipsis while there is none."""
    if figure is None:
        return "…"
    value = number(figure["value"], unit)
    if figure["low"] is None:
        return value
    return f"{value} ({number(figure['low'], unit)} to {number(figure['high'], unit)})"
