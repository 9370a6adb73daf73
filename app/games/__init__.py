"""The games, by name."""

from typing import Any

from app.errors import NotFound, shown
from app.games.base import Game
from app.games.negotiation import NEGOTIATION
from app.games.taboo import TABOO
from app.games.words import judge

GAMES: dict[str, Game[Any]] = {game.name: game for game in (NEGOTIATION, TABOO)}


def titles() -> dict[str, str]:
    """What people call the games, by name."""
    return {name: game.title for name, game in GAMES.items()}


def warm_up() -> None:
    """Load the inflection libraries now: their first use takes most of a second, which no move should wait for."""
    judge("strict", "mouse", "mice")


def find_game(name: str) -> Game[Any]:
    """The game of that name. Raises NotFound."""
    try:
        return GAMES[name]
    except KeyError:
        raise NotFound(f"game: expected {' or '.join(GAMES)}, got {shown(name)}") from None
