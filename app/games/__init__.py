"""The games, by name."""

from collections.abc import Mapping
from typing import Any

from app.errors import NotFound, either
from app.games.base import Game
from app.games.metrics import COMMON, GameMetrics
from app.games.negotiation.rules import NEGOTIATION
from app.games.taboo.rules import TABOO

GAMES: dict[str, Game[Any]] = {game.name: game for game in (NEGOTIATION, TABOO)}


def titles() -> dict[str, str]:
    """What people call the games, by name."""
    return {name: game.title for name, game in GAMES.items()}


def find_game(name: str) -> Game[Any]:
    """The game of that name. Raises NotFound."""
    try:
        return GAMES[name]
    except KeyError:
        raise NotFound("game", expected=either(GAMES), got=name) from None


def metrics_of(name: str) -> GameMetrics:
    """The metrics of the game of that name; the common ones of a game that defines none, or is not there any more."""
    return GAMES[name].metrics if name in GAMES else COMMON


def partner_weight(name: str, config: Mapping[str, Any]) -> float | None:
    """λ of a config: how much the partner's points count in a score. None in a game that knows none."""
    weight = getattr(find_game(name).config(config), "lam", None)
    return None if weight is None else float(weight)
