"""The games, by name."""

from typing import Any

from app.errors import NotFound, either
from app.games.base import Game
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
