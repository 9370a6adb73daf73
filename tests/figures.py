"""The figures of matches by game, for tests that make matches up."""

from app.analysis.metrics import Metrics, measure
from app.games import find_game, metrics_of
from app.games.match_table import MatchTable
from app.games.metrics import GameMetrics

NEGOTIATION, TABOO = metrics_of("negotiation"), metrics_of("taboo")


def negotiation(matches: MatchTable, lam: float) -> Metrics:
    """The figures of negotiations with this λ."""
    return measure(matches, NEGOTIATION, find_game("negotiation").roles, lam)


def taboo(matches: MatchTable, defined: GameMetrics = TABOO) -> Metrics:
    """The figures of games of taboo, or others than its own of them."""
    return measure(matches, defined, find_game("taboo").roles)
