"""Paired differences between two models. Pure; docs/analysis.md defines a pair.

Where a round swaps seats, a pair is a seed: the same game from either side, so that neither the deal nor the seat
favours a model. Otherwise, a pair is a match, in which both sat: the deal is the same, the seats are not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.analysis.bootstrap import FEW_MATCHES, FEW_SEEDS, Figure, Floats, mean_figure
from app.games.match_table import MatchTable
from app.games.metrics import MODEL_SCORE, GameMetrics, Metric, Use

SEEDS, MATCHES = "seeds", "matches"


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """`first` minus `second`. The `n` of each figure counts pairs, or matches where a pair may lack the figure."""

    first: str
    second: str
    pairing: str  # seeds | matches
    always_first: str | None  # the player in the first seat of every match, if any
    columns: Mapping[str, Figure]
    differences: Floats  # (pairs,) of scores

    @property
    def pairs(self) -> int:
        return len(self.differences)

    @property
    def leader(self) -> str | None:
        """Who is ahead, if the interval excludes 0; None otherwise."""
        score = self.columns[MODEL_SCORE.name]
        if score.low is None or score.high is None or score.low <= 0 <= score.high:
            return None
        return self.first if score.low > 0 else self.second

    def ahead(self) -> tuple[int, int, int]:
        """The numbers of pairs in which the first was ahead, the second was, and neither was."""
        return tuple(int((np.sign(self.differences) == sign).sum()) for sign in (1, -1, 0))  # type: ignore[return-value]

    def turned(self) -> "PairedDifference":
        """The same as `second` minus `first`."""
        columns = {name: turned(figure) for name, figure in self.columns.items()}
        return PairedDifference(self.second, self.first, self.pairing, self.always_first, columns, -self.differences)

    def to_json(self) -> dict[str, Any]:
        """The difference under the names of docs/analysis.md."""
        return {
            "first": self.first,
            "second": self.second,
            "pairing": self.pairing,
            "pairs": self.pairs,
            "always_in_first_seat": self.always_first,
            "columns": {name: figure._asdict() for name, figure in self.columns.items()},
        }


def turned(figure: Figure) -> Figure:
    """A difference from the other side."""
    value, low, high = (None if each is None else 0.0 - each for each in (figure.value, figure.high, figure.low))
    return figure._replace(value=value, low=low, high=high)


def paired(matches: MatchTable, players: Sequence[str], defined: GameMetrics) -> PairedDifference | None:
    """The lead of the first of two players over the second; None unless these two sat in every match."""
    if len(players) != 2 or not len(matches) or set(matches.players) != set(players):
        return None
    if (matches.player[:, 0] == matches.player[:, 1]).any():
        return None
    sign = np.where(matches.player[:, 0] == matches.players.index(players[0]), 1.0, -1.0)  # makes it first minus second
    seeds = matches.pair is not None
    reason = FEW_SEEDS if seeds else FEW_MATCHES
    columns = {}
    for metric in defined.shown_of_models(Use.DIFFERENCE):
        difference = sign * _of_seats(metric, matches)
        if metric.among is None:
            columns[metric.name] = mean_figure(_by_pair(matches, difference), reason=reason)
        else:  # only one match of a pair may have the metric
            these = metric.among(matches)
            pairs = None if matches.pair is None else matches.pair[these]
            columns[metric.name] = mean_figure(difference[these], pairs)
    differences = _by_pair(matches, sign * (matches.utility[:, 0] - matches.utility[:, 1]))
    always = (players[0] if sign[0] > 0 else players[1]) if (sign == sign[0]).all() else None
    return PairedDifference(players[0], players[1], SEEDS if seeds else MATCHES, always, columns, differences)


def _of_seats(metric: Metric, matches: MatchTable) -> Floats:
    """The first seat's value minus the second's: (n,)."""
    if metric.value is None or not metric.by_seat:
        raise ValueError(f"expected a metric by seat, got {metric.name}")
    values = metric.value(matches).astype(np.float64)
    difference: Floats = values[:, 0] - values[:, 1]
    return difference


def _by_pair(matches: MatchTable, differences: Floats) -> Floats:
    """One number for each pair: that of the match, or the mean of a seed's two matches once both are over."""
    if matches.pair is None:
        return differences
    number = np.bincount(matches.pair)
    means: Floats = np.bincount(matches.pair, differences)[number == 2] / 2
    return means
