"""Finished matches of a tournament as counts: who played whom on which context, and with what result. Pure.

Matches with the same players, context and winner are one line with a count, so a line may be one match or many. Seats
are ordered by who begins: place 0 of a line moves first.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from app.analysis.bootstrap import Floats, Integers

FIRST, SECOND, TIE = 0, 1, 2  # who got more


class ResultLine(NamedTuple):
    """Matches that are alike. In each pair of places, the one that begins comes first.

    `context` is what the match was played on, and is drawn as one when contexts are resampled; `sides` is what each
    place had there: the same side promises the same, and belongs to one context only.
    """

    players: tuple[str, str]
    context: Hashable
    sides: tuple[Hashable, Hashable]
    more: int  # FIRST, SECOND or TIE
    matches: int
    points: tuple[float, float]  # sums


@dataclass(frozen=True, slots=True)
class Results:
    """n lines of matches that were played to their end."""

    player: Integers  # (n, 2) places in `players`
    context: Integers  # (n,) numbered from 0 without gaps
    side: Integers  # (n, 2) the side of the context that each place had, numbered from 0 without gaps
    more: Integers  # (n,)
    matches: Integers  # (n,)
    points: Floats  # (n, 2)
    players: tuple[str, ...]

    @property
    def contexts(self) -> int:
        """The number of different contexts played."""
        return int(self.context.max()) + 1 if len(self.context) else 0

    def of_players(self, kept: Sequence[str]) -> "Results":
        """The matches that these players played among themselves, with the players in this order."""
        place = np.array([kept.index(name) if name in kept else -1 for name in self.players], np.int64)
        player = place[self.player] if len(self.players) else self.player
        return replace(self, player=player, players=tuple(kept)).of_lines(np.flatnonzero((player >= 0).all(1)))

    def of_lines(self, lines: Integers) -> "Results":
        """Only the matches of these lines, by their places."""
        return replace(
            self,
            player=self.player[lines],
            context=_renumbered(self.context[lines]),
            side=_renumbered(self.side[lines]),
            more=self.more[lines],
            matches=self.matches[lines],
            points=self.points[lines],
        )


def results_of(lines: Iterable[ResultLine]) -> Results:
    """These lines as columns; players in the order of their first line."""
    players: dict[str, int] = {}
    contexts: dict[Hashable, int] = {}
    seen: dict[Hashable, int] = {}
    rows = []
    for line in lines:
        first, second = (players.setdefault(name, len(players)) for name in line.players)
        context = contexts.setdefault(line.context, len(contexts))
        sides = [seen.setdefault(side, len(seen)) for side in line.sides]
        rows.append((first, second, context, *sides, line.more, line.matches, *line.points))
    table = np.array(rows, np.float64).reshape(-1, 9)
    whole = table[:, :7].astype(np.int64)
    return Results(
        player=whole[:, :2],
        context=whole[:, 2],
        side=whole[:, 3:5],
        more=whole[:, 5],
        matches=whole[:, 6],
        points=table[:, 7:],
        players=tuple(players),
    )


def _renumbered(values: Integers) -> Integers:
    return np.unique(values, return_inverse=True)[1].reshape(values.shape).astype(np.int64)
