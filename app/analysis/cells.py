"""Matches in cells, and what can be said of the sums of many resamples at once. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.analysis.bootstrap import Floats, Integers, Statistic
from app.games.match_table import Booleans, MatchTable


@dataclass(frozen=True, slots=True)
class Cells:
    """What the matches of each of k cells have in common."""

    utility: Floats  # (k, 2) by seat
    player: Integers  # (k, 2) by seat
    winner: Integers  # (k,)
    reason: Integers  # (k,)
    agreed: Booleans  # (k,)
    pareto: Booleans  # (k,)


@dataclass(frozen=True, slots=True)
class Sums:
    """r resamples: how many matches of each cell were drawn, and the sums of what was measured of them.

    `counted` is of how many matches a measure was taken.
    """

    cells: Cells
    matches: Floats  # (r, k)
    total: Mapping[str, Floats]  # (r, k) by measure
    counted: Mapping[str, Floats]  # (r, k) by measure

    def share(self, flag: Booleans, weight: Floats | Booleans | int = 1) -> Statistic:
        """Of the matches, each counted `weight` times, the share in cells with the flag.

        `effective` is Kish's size of a weighted sample. Source: Kish 1965, Survey Sampling, section 11.7.
        """
        weighed = self.matches * weight
        effective = ratio(weighed.sum(1) ** 2, (weighed * weight).sum(1))
        return Statistic(ratio(weighed @ flag, weighed.sum(1)), self._counted(weight), effective)

    def mean(self, measure: str, weight: Floats | int = 1) -> Statistic:
        """The mean of a measure over the matches that have it, each counted `weight` times."""
        counted = self.counted[measure]
        values = ratio((self.total[measure] * weight).sum(1), (counted * weight).sum(1))
        return Statistic(values, (counted * (np.asarray(weight) > 0)).sum(1))

    def rate(self, measure: str) -> Statistic:
        """The share of the matches that have a measure of 1, of those that have it at all."""
        found = self.mean(measure)
        return found._replace(effective=found.matches)

    def score_mean(self, seats: Booleans) -> Statistic:
        """The mean utility over those seats; `seats` (r, k, 2), or (1, k, 2) for the same in all resamples."""
        weight = self.matches[:, :, None] * seats
        values = ratio((weight * self.cells.utility).sum((1, 2)), weight.sum((1, 2)))
        return Statistic(values, self._counted(seats.any(2)))

    def score_median(self, seats: Booleans) -> Statistic:
        """The median utility over those seats."""
        order = self.cells.utility.ravel().argsort()
        values = self.cells.utility.ravel()[order]
        weight = self.matches[:, :, None] * seats
        return Statistic(_median(values, weight.reshape(len(weight), -1)[:, order]), self._counted(seats.any(2)))

    def _counted(self, weight: Floats | Booleans | np.bool_ | int) -> Floats:
        """How many matches have a weight: (r,)."""
        counted: Floats = (self.matches * (np.asarray(weight) > 0)).sum(1)
        return counted


def gather(matches: MatchTable, measures: Sequence[str]) -> tuple[Integers, Floats, Callable[[Floats], Sums]]:
    """The cell of each match (n,), the columns to sum (c, n), and how to read such sums (r, k, c).

    `measures` are the columns of `MatchTable` of which means are wanted.
    """
    kept = [
        _codes(matches.utility[:, 0]),
        _codes(matches.utility[:, 1]),
        matches.player[:, 0],
        matches.player[:, 1],
        matches.reason,
        matches.winner + 1,
        matches.agreed.astype(np.int64),
        matches.pareto.astype(np.int64),
    ]
    number = np.zeros(len(matches), np.int64)
    for codes in kept:  # numbered anew each time, so that the product stays small
        number = _codes(number * (codes.max() + 1) + codes)
    _, first = np.unique(number, return_index=True)
    cells = Cells(
        matches.utility[first],
        matches.player[first],
        matches.winner[first],
        matches.reason[first],
        matches.agreed[first],
        matches.pareto[first],
    )
    stack = [np.ones(len(matches))]
    places: dict[str, tuple[int, int]] = {}
    for name in measures:
        values: Floats = getattr(matches, name)
        missing = np.isnan(values)
        stack.append(np.where(missing, 0, values))
        places[name] = (len(stack) - 1, len(stack) if missing.any() else 0)
        if missing.any():
            stack.append((~missing).astype(np.float64))

    def read(sums: Floats) -> Sums:
        total = {name: sums[:, :, total] for name, (total, _) in places.items()}
        counted = {name: sums[:, :, counted] for name, (_, counted) in places.items()}
        return Sums(cells, sums[:, :, 0], total, counted)

    return number, np.array(stack), read


def ratio(over: Floats, under: Floats) -> Floats:
    """Element by element, NaN where there is nothing to divide by."""
    found: Floats = np.divide(over, under, out=np.full(np.shape(over), np.nan), where=under > 0)
    return found


def _codes(values: Floats | Integers) -> Integers:
    return np.unique(values, return_inverse=True)[1].astype(np.int64).reshape(-1)


def _median(values: Floats, weights: Floats) -> Floats:
    """The median of `values` (v,), ascending, each counted as often as a row of `weights` (r, v) says: (r,)."""
    reached = weights.cumsum(1)
    total = reached[:, -1:]
    lower = values[(2 * reached >= total).argmax(1)]
    upper = values[(2 * reached > total).argmax(1)]
    median: Floats = np.where(total[:, 0] > 0, (lower + upper) / 2, np.nan)
    return median
