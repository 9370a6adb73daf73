"""The games, by name: each package here is one game, whose `Game` is named `GAME`."""

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from app.core.errors import Invalid, NotFound, Phrase, Verbatim, either
from app.games.base import Game
from app.games.metrics import COMMON, GameMetrics
from app.games.permutations import Permutations
from app.games.rewards import RewardFormula


def _find_games() -> dict[str, Game[Any]]:
    """The `GAME` of each package, by its name. Raises ValueError for one not named like its package."""
    packages = sorted(each.name for each in pkgutil.iter_modules(__path__) if each.ispkg)
    games: dict[str, Game[Any]] = {name: import_module(f"{__name__}.{name}").GAME for name in packages}
    for name, game in games.items():
        if game.name != name:
            raise ValueError(f"app/games/{name}: expected a game of that name, got {game.name}")
    return games


GAMES = _find_games()


def titles() -> dict[str, str]:
    """The games' titles, by name."""
    return {name: game.title for name, game in GAMES.items()}


def roles_of_seat(*seats: int) -> list[str]:
    """The roles of these seats in all games, without duplicates."""
    return list(dict.fromkeys(game.roles[seat] for game in GAMES.values() for seat in seats))


def find_game(name: str) -> Game[Any]:
    """The game of that name. Raises NotFound."""
    try:
        return GAMES[name]
    except KeyError:
        raise NotFound("game", expected=either(GAMES), got=name) from None


def formula_of(game: str) -> RewardFormula:
    """The reward formula of a game. Raises Invalid for a game that has none."""
    found = find_game(game).rewards
    if found is None:
        raise Invalid(
            "rewards",
            expected=Phrase("matches of %(games)s", games=either(name for name, each in GAMES.items() if each.rewards)),
            got=Phrase("some of %(game)s, which gives its moves no rewards", game=Verbatim(game)),
        )
    return found


def permutations_of(game: str) -> Permutations:
    """The orders of a game's item types. Raises Invalid for a game that has none."""
    found = find_game(game).permutations
    if found is None:
        known = either(name for name, each in GAMES.items() if each.permutations)
        raise Invalid(
            "permutations",
            expected=Phrase("matches of %(games)s", games=known),
            got=Phrase("some of %(game)s, which has no item types to exchange", game=Verbatim(game)),
        )
    return found


def metrics_of(name: str) -> GameMetrics:
    """The metrics of the game of that name; the common ones if it defines none or no longer exists."""
    return GAMES[name].metrics if name in GAMES else COMMON


def partner_weight_of(name: str, config: Mapping[str, Any]) -> float | None:
    """The weight of the partner's points in a score under a config; None in a game without such a weight."""
    weight = find_game(name).partner_weight(config)
    return None if weight is None else float(weight)
