"""Percentile intervals by resampling matches. Pure, and the same for the same matches.

Matches that agree in everything that a statistic tells apart make up a *cell*. A resample then is, for each cell, the
sums of its matches' columns, each match counted as often as it was drawn; every statistic is a function of those sums.

Source: Efron & Tibshirani 1993, An Introduction to the Bootstrap, chapter 13 (the percentile interval).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RESAMPLES = 1_000
LEVEL = 0.95
_SEED = 240_618_872
_AT_ONCE = 100_000  # drawn matches, and cells of resamples, in memory


class Figure(NamedTuple):
    """A number and its 95 % interval. All None where there is nothing to take it of; no interval of a single match."""

    value: float | None
    low: float | None = None
    high: float | None = None


Statistics = Callable[[Floats], Mapping[str, Floats]]


def figures(statistics: Statistics, cells: Integers, columns: Floats) -> dict[str, Figure]:
    """Every statistic of the matches, with its interval.

    `cells` (n,) has the cell of each match, numbered from 0 without gaps; `columns` (c, n) what is summed. `statistics`
    takes such sums, (r, cells, c), and gives r numbers a name, NaN where one is not defined.
    """
    order = np.argsort(cells, kind="stable")
    columns = columns[:, order]
    starts = np.flatnonzero(np.diff(cells[order], prepend=-1))
    exact = statistics(np.add.reduceat(columns, starts, axis=1).T[None])
    drawn: dict[str, list[Floats]] = {name: [] for name in exact}
    if len(cells) > 1:
        for sums in _resamples(columns, starts):
            for name, values in statistics(sums).items():
                drawn[name].append(values)
    return {name: _figure(float(value[0]), drawn[name]) for name, value in exact.items()}


def mean_figure(values: Floats) -> Figure:
    """The mean of one number a match, with its interval."""
    if not len(values):
        return Figure(None)
    distinct, counts = np.unique(values, return_counts=True)
    generator = np.random.default_rng(_SEED)
    often = generator.multinomial(len(values), counts / len(values), size=RESAMPLES)
    return _figure(float(values.mean()), [often @ distinct / len(values)] if len(values) > 1 else [])


def _resamples(columns: Floats, starts: Integers) -> Iterator[Floats]:
    """The sums of `RESAMPLES` resamples, as many at a time as are worth a call of the statistics: (r, cells, c)."""
    number, size = columns.shape
    generator = np.random.default_rng(_SEED)
    for first in range(0, RESAMPLES, step := max(1, _AT_ONCE // len(starts))):
        sums = np.empty((min(step, RESAMPLES - first), len(starts), number))
        for start in range(0, len(sums), some := max(1, _AT_ONCE // size)):
            part = sums[start : start + some]
            draws = generator.integers(size, size=(len(part), size))
            draws += np.arange(len(part))[:, None] * size
            often = np.bincount(draws.ravel(), minlength=draws.size).reshape(draws.shape).astype(np.float64)
            for place, column in enumerate(columns):
                part[:, :, place] = np.add.reduceat(often * column, starts, axis=1)
        yield sums


def _figure(value: float, drawn: list[Floats]) -> Figure:
    if np.isnan(value):
        return Figure(None)
    values: Any = np.concatenate(drawn) if drawn else np.empty(0)
    values = values[~np.isnan(values)]
    if not len(values):
        return Figure(value)
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Figure(value, float(low), float(high))
