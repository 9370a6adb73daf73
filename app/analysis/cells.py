"""Matches grouped into cells, and statistics computed from the sums of many resamples at once. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.analysis.bootstrap import Floats, Integers, Statistic
from app.games.match_table import Booleans, MatchTable
from app.games.metrics import ABOVE, FIRST, MEDIAN, PART, SECOND, Condition, Metric, Value
from app.rounds.above_average import above as strictly_above

_IN_SEAT = {FIRST: np.array([True, False]), SECOND: np.array([False, True])}


@dataclass(frozen=True, slots=True)
class Cells:
    """k cells of matches that are alike in everything that is not summed.

    `matches` has one match of each cell, `values` the metrics' values for it: truths (k,), and numbers or truths by
    seat (k, 2); `among` the matches for which conditions hold: (k,).
    """

    matches: MatchTable
    values: Mapping[Value, Floats | Booleans]
    among: Mapping[Condition, Booleans]


@dataclass(frozen=True, slots=True)
class Sums:
    """r resamples: how many matches of each cell were drawn, and the sums of their measures.

    `counted` is the number of matches that a measure was taken of.
    """

    cells: Cells
    matches: Floats  # (r, k)
    total: Mapping[Value, Floats]  # (r, k) by measure
    counted: Mapping[Value, Floats]  # (r, k) by measure
    partner_weight: float
    _chosen: dict[tuple[int, str, Condition | None, Value | None], tuple[Booleans, Floats, Booleans]] = field(
        default_factory=dict
    )

    def of(self, metric: Metric, seats: Booleans) -> Statistic:
        """A metric of those seats; `seats` (1, k, 2). Metrics of matches count a match once for each of its seats."""
        chosen, weight = self._choose(metric, seats)
        if metric.value is None:
            whole = (self.matches[:, :, None] * seats).sum((1, 2))
            number = self._n_matches(_any(seats))
            # A match's two transcripts carry as much information as one.
            return Statistic(ratio((self.matches[:, :, None] * chosen).sum((1, 2)), whole), number, number)
        if metric.value in self.total:
            found = self._weighted_mean(metric.value, weight)
        elif metric.aggregate == MEDIAN:
            found = self._seat_median(self.cells.values[metric.value], chosen)
        elif metric.by_seat:
            found = self._seat_mean(self.cells.values[metric.value], chosen)
        else:
            weighed = self.matches * weight
            found = Statistic(ratio(weighed @ self.cells.values[metric.value], weighed.sum(1)), self._n_matches(weight))
        return found._replace(effective=self._effective(metric, weight)) if metric.aggregate == PART else found

    def share(self, flag: Booleans) -> Statistic:
        """The share of matches in cells with the flag."""
        number = self.matches.sum(1)
        return Statistic(ratio(self.matches @ flag, number), number, number)

    def _choose(self, metric: Metric, seats: Booleans) -> tuple[Booleans, Floats]:
        """The seats that a metric covers, (r or 1, k, 2), and how many of each match those are, (r or 1, k)."""
        key = id(seats), metric.seats, metric.among, metric.value if metric.by_seat else None
        if key not in self._chosen:
            chosen = seats
            if metric.seats in _IN_SEAT:
                chosen = seats & _IN_SEAT[metric.seats]
            elif metric.seats == ABOVE:
                chosen = seats & self._above()
            if metric.among is not None:
                chosen = chosen & self.cells.among[metric.among][:, None]
            if metric.by_seat and metric.value is not None:
                chosen = chosen & ~np.isnan(self.cells.values[metric.value])  # values that a seat lacks
            # Keep the seats, too, so that no other array reuses their id.
            self._chosen[key] = chosen, chosen.sum(2).astype(np.float64), seats
        return self._chosen[key][:2]

    def _above(self) -> Booleans:
        """Which transcripts score above the mean of their resample: (r, k, 2)."""
        matches = self.cells.matches
        every = np.ones((1, len(matches), 2), bool)
        bounds = self._seat_mean(matches.utility, every).values
        return strictly_above(matches.utility, matches.agreed, bounds, self.partner_weight)

    def _weighted_mean(self, measure: Value, weight: Floats) -> Statistic:
        """The mean of a measure over the matches that have it, each counted `weight` times."""
        counted = self.counted[measure]
        values = ratio((self.total[measure] * weight).sum(1), (counted * weight).sum(1))
        return Statistic(values, (counted * (weight > 0)).sum(1))

    def _seat_mean(self, values: Floats | Booleans, seats: Booleans) -> Statistic:
        """The mean over those seats; `values` (k, 2), `seats` (r, k, 2), or (1, k, 2) for the same in all resamples."""
        weight = self.matches[:, :, None] * seats
        return Statistic(
            ratio((weight * np.nan_to_num(values)).sum((1, 2)), weight.sum((1, 2))), self._n_matches(_any(seats))
        )

    def _seat_median(self, values: Floats | Booleans, seats: Booleans) -> Statistic:
        """The median over those seats; arguments as in `_seat_mean`."""
        order = values.ravel().argsort()
        weight = self.matches[:, :, None] * seats
        medians = _median(values.ravel()[order], weight.reshape(len(weight), -1)[:, order])
        return Statistic(medians, self._n_matches(_any(seats)))

    def _effective(self, metric: Metric, weight: Floats) -> Floats:
        """How many matches of equal weight would be as informative: (r,).

        Source: Kish 1965, Survey Sampling, section 11.7.
        """
        measured = self.counted.get(metric.value, self.matches) if metric.value else self.matches
        weighed = measured * weight
        return ratio(weighed.sum(1) ** 2, (weighed * weight).sum(1))

    def _n_matches(self, weight: Floats | Booleans) -> Floats:
        """The number of matches with a weight: (r,)."""
        counted: Floats = (self.matches * (weight > 0)).sum(1)
        return counted


def gather(
    matches: MatchTable, metrics: Sequence[Metric], partner_weight: float
) -> tuple[Integers, Floats, Callable[[Floats], Sums]]:
    """The cell of each match (n,), the columns to sum (c, n), and a function that reads such sums (r, k, c).

    A metric that yields a number for each match is summed; truths and values of seats define the cells.
    """
    values = {each.value: each.value(matches) for each in metrics if each.value is not None}
    measures = {value: found for value, found in values.items() if found.ndim == 1 and found.dtype != np.bool_}
    by_value = {value: found for value, found in values.items() if value not in measures}
    among = {each.among: each.among(matches) for each in metrics if each.among is not None}
    alike = [
        matches.utility,
        matches.player,
        matches.reason,
        matches.winner,
        *by_value.values(),
        *among.values(),
    ]
    number = np.zeros(len(matches), np.int64)
    for column in (column for each in alike for column in each.reshape(len(matches), -1).T):
        codes = _codes(column)
        number = _codes(number * (codes.max() + 1) + codes)  # renumbered each time, so that the product stays small
    _, first = np.unique(number, return_index=True)
    cells = Cells(
        matches.take(first),
        {value: found[first] for value, found in by_value.items()},
        {condition: found[first] for condition, found in among.items()},
    )
    stack = [np.ones(len(matches))]
    places: dict[Value, tuple[int, int]] = {}
    for value, found in measures.items():
        missing = np.isnan(found)
        stack.append(np.where(missing, 0, found))
        places[value] = (len(stack) - 1, len(stack) if missing.any() else 0)
        if missing.any():
            stack.append((~missing).astype(np.float64))

    def read(sums: Floats) -> Sums:
        total = {value: sums[:, :, total] for value, (total, _) in places.items()}
        counted = {value: sums[:, :, counted] for value, (_, counted) in places.items()}
        return Sums(cells, sums[:, :, 0], total, counted, partner_weight)

    return number, np.array(stack), read


def ratio(over: Floats, under: Floats) -> Floats:
    """Divide element by element; NaN where the divisor is not above 0."""
    found: Floats = np.divide(over, under, out=np.full(np.shape(over), np.nan), where=under > 0)
    return found


def _any(seats: Booleans) -> Booleans:
    """Which matches have one of those seats."""
    found: Booleans = seats[..., 0] | seats[..., 1]
    return found


def _codes(values: Floats | Integers | Booleans) -> Integers:
    return np.unique(values, return_inverse=True)[1].astype(np.int64).reshape(-1)


def _median(values: Floats | Booleans, weights: Floats) -> Floats:
    """The median of `values` (v,), in ascending order, weighted by each row of `weights` (r, v): (r,)."""
    reached = weights.cumsum(1)
    total = reached[:, -1:]
    lower = values[(2 * reached >= total).argmax(1)]
    upper = values[(2 * reached > total).argmax(1)]
    median: Floats = np.where(total[:, 0] > 0, (lower + upper) / 2, np.nan)
    return median
