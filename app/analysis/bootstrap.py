"""Figures with their 95 % intervals. Pure, and the same for the same matches.

A share has a Wilson interval. Any other figure has a percentile interval by resampling what was drawn independently:
matches, or the seeds of a round in which each seed is played twice. Of fewer than `LEAST` of these there is no
interval, because resampling so few says little; the figure then names the reason.

Matches that agree in everything that a statistic tells apart make up a *cell*. A resample then is, for each cell, the
sums of its matches' columns, each match counted as often as it was drawn; every statistic is a function of those sums.

Source: Efron & Tibshirani 1993, An Introduction to the Bootstrap, chapter 13 (the percentile interval); Wilson 1927,
Probable inference, the law of succession, and statistical inference (the interval of a share).
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

RESAMPLES = 1_000
LEVEL = 0.95
LEAST = 10  # of fewer matches, seeds or contexts a bootstrap is not to be trusted
FEW_MATCHES, FEW_SEEDS, FEW_CONTEXTS = "fewer than 10 matches", "fewer than 10 seeds", "fewer than 10 contexts"
NEAR_ZERO = "a base that hardly scored"
NORMAL = 1.959963984540054  # standard deviations of a normal distribution, within which LEVEL of it lies
_SEED = 240_618_872
_AT_ONCE = 100_000  # drawn matches, and cells of resamples, in memory


class Figure(NamedTuple):
    """A number, its 95 % interval, and of how many matches it is taken.

    All None and 0 where there is nothing to take it of. `no_interval` says why a number has none.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    no_interval: str | None = None


class Statistic(NamedTuple):
    """A number of each of r resamples, NaN where one is not defined, and of how many matches it is taken.

    Only a share has `effective`: how many matches of equal weight would tell as much.
    """

    values: Floats  # (r,)
    matches: Floats  # (r,)
    effective: Floats | None = None  # (r,)


Statistics = Callable[[Floats], Mapping[str, Statistic]]


def figures(
    statistics: Statistics, cells: Integers, columns: Floats, units: Integers | None = None
) -> dict[str, Figure]:
    """Every statistic of the matches, with its interval.

    `cells` (n,) has the cell of each match, numbered from 0 without gaps; `columns` (c, n) what is summed; `units` (n,)
    what is resampled where it is not each match by itself, numbered likewise. `statistics` takes such sums,
    (r, cells, c), and gives r numbers a name.
    """
    order = np.argsort(cells, kind="stable")
    columns, units = columns[:, order], None if units is None else units[order]
    starts = np.flatnonzero(np.diff(cells[order], prepend=-1))
    exact = statistics(np.add.reduceat(columns, starts, axis=1).T[None])
    few = _few(len(cells), units)
    drawn: dict[str, list[Floats]] = {name: [] for name in exact}
    if few is None:
        for sums in _resamples(columns, starts, units):
            for name, found in statistics(sums).items():
                drawn[name].append(found.values)
    return {name: _with_interval(found, drawn[name], few) for name, found in exact.items()}


def mean_figure(values: Floats, units: Integers | None = None, reason: str = FEW_MATCHES) -> Figure:
    """The mean of one number a match, with its interval; `units` (n,) is what is resampled, if not each match.

    `reason` is why there is none where there are too few values.
    """
    if not len(values):
        return Figure(None)
    few = (reason if len(values) < LEAST else None) if units is None else _few(len(values), units)
    mean, number = float(values.mean()), len(values)
    if few is not None:
        return Figure(mean, n=number, no_interval=few)
    units = np.arange(number) if units is None else np.unique(units, return_inverse=True)[1].reshape(-1)
    sums = np.stack([np.bincount(units, values), np.bincount(units)], axis=1)
    distinct, counts = np.unique(sums, axis=0, return_counts=True)
    often = np.random.default_rng(_SEED).multinomial(len(sums), counts / len(sums), size=RESAMPLES)
    total, matches = (often @ distinct).T
    return Figure(mean, *_ends(total / matches), number)


def ratio_figure(over: Floats, under: Floats, units: Integers | None = None) -> Figure:
    """The mean of `over` divided by the mean of `under`, with its interval; (n,) each, of the same n matches in order.

    Both are drawn together, match by match (or by `units` (n,), as in `mean_figure`): two models that were evaluated on
    the same contexts with the same seeds found the same ones hard. Where the mean of `under` is not above 0 there is no
    ratio, and no interval where that happens in a resample. Raises ValueError for matches that are not the same.
    """
    if len(over) != len(under):
        raise ValueError(f"expected the same matches of both, got {len(over)} and {len(under)}")
    number = len(over)
    if not number or under.mean() <= 0:
        return Figure(None)
    value, few = float(over.mean() / under.mean()), _few(number, units)
    if few is not None:
        return Figure(value, n=number, no_interval=few)
    units = np.arange(number) if units is None else np.unique(units, return_inverse=True)[1].reshape(-1)
    sums = np.stack([np.bincount(units, over), np.bincount(units, under)], axis=1)
    distinct, counts = np.unique(sums, axis=0, return_counts=True)
    often = np.random.default_rng(_SEED).multinomial(len(sums), counts / len(sums), size=RESAMPLES)
    mine, base = (often @ distinct).T
    if (base <= 0).any():
        return Figure(value, n=number, no_interval=NEAR_ZERO)
    return Figure(value, *_ends(mine / base), number)


def wilson(share: float, n: float) -> tuple[float, float]:
    """The ends of the 95 % interval of a share of n. Source: Wilson 1927; Brown, Cai & DasGupta 2001, section 3."""
    middle = (share + NORMAL**2 / (2 * n)) / (1 + NORMAL**2 / n)
    half = NORMAL / (1 + NORMAL**2 / n) * math.sqrt(share * (1 - share) / n + NORMAL**2 / (4 * n**2))
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def _few(matches: int, units: Integers | None) -> str | None:
    """Why a bootstrap of so many matches is not to be trusted, if it is not."""
    if units is not None:
        return FEW_SEEDS if len(np.unique(units)) < LEAST else None
    return FEW_MATCHES if matches < LEAST else None


def _resamples(columns: Floats, starts: Integers, units: Integers | None) -> Iterator[Floats]:
    """The sums of `RESAMPLES` resamples, as many at a time as are worth a call of the statistics: (r, cells, c)."""
    number, matches = columns.shape
    size = matches if units is None else int(units.max()) + 1
    generator = np.random.default_rng(_SEED)
    for first in range(0, RESAMPLES, step := max(1, _AT_ONCE // len(starts))):
        sums = np.empty((min(step, RESAMPLES - first), len(starts), number))
        for start in range(0, len(sums), some := max(1, _AT_ONCE // matches)):
            part = sums[start : start + some]
            draws = generator.integers(size, size=(len(part), size))
            draws += np.arange(len(part))[:, None] * size
            often = np.bincount(draws.ravel(), minlength=draws.size).reshape(draws.shape).astype(np.float64)
            if units is not None:
                often = often[:, units]
            for place, column in enumerate(columns):
                part[:, :, place] = np.add.reduceat(often * column, starts, axis=1)
        yield sums


def _with_interval(exact: Statistic, drawn: list[Floats], few: str | None) -> Figure:
    value, number = float(exact.values[0]), round(float(exact.matches[0]))
    if np.isnan(value):
        return Figure(None)
    if exact.effective is not None:
        return Figure(value, *wilson(value, float(exact.effective[0])), number)
    if few is None and number < LEAST:
        few = FEW_MATCHES
    if few is not None:
        return Figure(value, n=number, no_interval=few)
    return Figure(value, *_ends(np.concatenate(drawn)), number)


def _ends(values: Any) -> tuple[float, float]:
    low, high = np.nanquantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
