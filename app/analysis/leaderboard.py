"""Leaderboards: ratings of a game's players in one role or both, with how much they play and how well. Pure.

Source: Chalamalasetti et al. 2023, clembench, arXiv 2305.13455, whose score is the share of games that were played to
their end times the quality of these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from app.analysis.ratings import POINTS, WINS, By, Neighbours, Ratings, rate, to_json
from app.analysis.results import Results
from app.core.errors import Invalid, either
from app.games import find_game

MOST_PLAYERS = 40
BOTH = "both"
_BEGINS, _FOLLOWS = "first", "second"  # for games whose seats share a role


class Standing(NamedTuple):
    """How a player does in its seats; a match against itself counts both.

    `played` is the share of seats whose match it did not end by a fault, `quality` the mean of its scores in matches
    played to their end, from 0, the least that a seat can get, to 100, the most. `score` is the product of the two.
    """

    seats: int
    played: float
    points: float | None
    quality: float | None
    score: float


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Players of one game and one weight of the partner's points. `left_out` counts those with too few matches.

    `prices` are US dollars per match and seat, by player, where known.
    """

    game: str
    partner_weight: float | None
    role: str  # one of `roles_of`, or BOTH
    matches: int
    ratings: Ratings
    standings: Mapping[str, Standing]
    left_out: int
    prices: Mapping[str, float]

    @property
    def key(self) -> str:
        """Its game and weight, for addresses."""
        return key_of(self.game, self.partner_weight)

    @property
    def names(self) -> list[str]:
        """The players: those with a rating, the best first, then the others."""
        return list(dict.fromkeys([*(each.player for each in self.ratings.ratings), *self.standings]))

    def matches_of(self, player: str) -> int:
        """The number of a player's matches that were played to their end; one against itself counts once."""
        return sum(cell.matches for cell in self.ratings.cells if cell.row == player)

    def cost_to_settle(self, order: Neighbours) -> float | None:
        """US dollars, to two figures, for the further matches of two neighbours, half of them each; None: unknown.

        The cost of their partners is not included.
        """
        ahead, behind = self.prices.get(order.ahead), self.prices.get(order.behind)
        if order.more_matches is None or ahead is None or behind is None:
            return None
        return float(f"{order.more_matches * (ahead + behind) / 2:.2g}")

    def to_json(self) -> dict[str, Any]:
        """The leaderboard under the names of docs/analysis.md."""
        return {
            "game": self.game,
            "lambda": self.partner_weight,
            "role": self.role,
            "matches": self.matches,
            **to_json(self.ratings),
            "standings": {name: each._asdict() for name, each in self.standings.items()},
            "left_out": self.left_out,
            "prices": {name: self.prices[name] for name in self.names if name in self.prices},
        }


def key_of(game: str, partner_weight: float | None) -> str:
    """A game and a weight as one word."""
    return game if partner_weight is None else f"{game}:{partner_weight:g}"


def roles_of(game: str) -> tuple[str, str]:
    """The names of a match's two places: the roles or, where both have the same one, who begins."""
    first, second = find_game(game).roles
    return (_BEGINS, _FOLLOWS) if first == second else (first, second)


def by_of(partner_weight: float | None) -> By:
    """What ratings measure: wins where one's gain is the other's loss, or where there are no points to share."""
    return WINS if partner_weight is None or partner_weight == -1 else POINTS


def leaderboard(
    game: str,
    partner_weight: float | None,
    results: Results,
    faults: Mapping[str, tuple[int, int]],
    bounds: tuple[float, float],
    prices: Mapping[str, float],
    role: str = BOTH,
) -> Leaderboard:
    """The leaderboard of the players with most matches; `bounds` are a seat's lowest and highest scores.

    Ratings cover the matches among these players, standings all their matches. Raises Invalid for the role.
    """
    roles = roles_of(game)
    if role not in (BOTH, *roles):
        raise Invalid("role", expected=either([BOTH, *roles]), got=role)
    place = None if role == BOTH else roles.index(role)
    names = [*results.players, *(name for name in faults if name not in results.players)]
    counts = np.bincount(results.player.ravel(), np.repeat(results.matches, 2), minlength=len(names))
    is_cut = len(names) > MOST_PLAYERS
    shown = [names[at] for at in np.argsort(-counts, kind="stable")[:MOST_PLAYERS]] if is_cut else names
    kept = results.of_players([name for name in shown if name in results.players]) if is_cut else results
    standings = _standings(results, faults, bounds, [0, 1] if place is None else [place])
    return Leaderboard(
        game,
        partner_weight,
        role,
        int(kept.matches.sum()),
        rate(kept, by_of(partner_weight), place),
        {name: standings[name] for name in shown if name in standings},
        len(names) - len(shown),
        prices,
    )


def _standings(
    results: Results, faults: Mapping[str, tuple[int, int]], bounds: tuple[float, float], places: Sequence[int]
) -> dict[str, Standing]:
    low, high = bounds
    count = len(results.players)
    seats = sum(
        (np.bincount(results.player[:, at], results.matches, minlength=count) for at in places), np.zeros(count)
    )
    points = sum(
        (np.bincount(results.player[:, at], results.points[:, at], minlength=count) for at in places), np.zeros(count)
    )
    found = {}
    others = [name for name in faults if name not in results.players]  # players without a finished match
    for place, name in enumerate([*results.players, *others]):
        broken = sum(faults.get(name, (0, 0))[at] for at in places)
        finished = int(seats[place]) if place < count else 0
        if not finished + broken:
            continue
        played = finished / (finished + broken)
        mean = float(points[place]) / finished if finished else None
        quality = None if mean is None else 100 * (mean - low) / (high - low)
        score = 0.0 if quality is None else played * quality
        found[name] = Standing(finished + broken, played, mean, quality, score)
    return found
