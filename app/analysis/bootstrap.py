"""Figures with their 95 % intervals. Pure, and the same for the same matches.

A share has a Wilson interval. Any other figure has a percentile interval from resampling independent units: matches, or
the seeds of a round in which each seed is played twice. With fewer than `LEAST` units there is no interval, because
resampling so few says little; the figure then names the reason.

With more than `MOST_RESAMPLED` units, a fixed sample of them is resampled: each resample has the size of the whole, and
the interval is shifted to the value of all matches. It is as wide as one from all units, at a constant cost. The sample
has at least `_LEAST_OF_STRATUM` units of each stratum (who sat where), or all of them if there are fewer.

Matches that agree in everything that a statistic distinguishes make up a *cell*. A resample then is, for each cell, the
sums of its matches' columns, each match counted as often as it was drawn; every statistic is a function of those sums.

Source: Efron & Tibshirani 1993, An Introduction to the Bootstrap, chapter 13 (the percentile interval); Wilson 1927,
Probable inference, the law of succession, and statistical inference (the interval of a share); Kleiner, Talwalkar,
Sarkar & Jordan 2014, A scalable bootstrap for massive data, J. R. Stat. Soc. B 76 (a part that stands for all).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

RESAMPLES = 1_000
MOST_RESAMPLED = 10_000  # most matches or seeds resampled in full
LEVEL = 0.95
LEAST = 10  # with fewer matches, seeds or contexts, a bootstrap is unreliable
FEW_MATCHES, FEW_SEEDS, FEW_CONTEXTS = "fewer than 10 matches", "fewer than 10 seeds", "fewer than 10 contexts"
FEW_PEOPLE, FEW_DYADS = "fewer than 10 people", "fewer than 10 pairs of people"
NEAR_ZERO = "a base score close to 0"
SAME_IN_ALL = "shares that never vary across resamples"
NORMAL = 1.959963984540054  # LEVEL of a normal distribution lies within this many standard deviations
SEED_OF_DRAWS = 240_618_872
_PART = 2_500  # matches or seeds sampled from more than MOST_RESAMPLED
_LEAST_OF_STRATUM = 200
_AT_ONCE = 100_000  # drawn matches, and cells of resamples, in memory


class Figure(NamedTuple):
    """A number, its 95 % interval, and the number of matches it is computed from.

    All None and 0 where there are no data. `no_interval` says why a number has no interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    no_interval: str | None = None


class Statistic(NamedTuple):
    """A value for each of r resamples, NaN where undefined, and the number of matches it is computed from.

    Only a share has `effective`: how many matches of equal weight would be as informative.
    """

    values: Floats  # (r,)
    matches: Floats  # (r,)
    effective: Floats | None = None  # (r,)


Statistics = Callable[[Floats], Mapping[str, Statistic]]


def figures(
    statistics: Statistics,
    cells: Integers,
    columns: Floats,
    units: Integers | None = None,
    strata: Integers | None = None,
) -> dict[str, Figure]:
    """Every statistic of the matches, with its interval.

    `cells` (n,) has the cell of each match, numbered from 0 without gaps; `columns` (c, n) the values to sum; `units`
    (n,) the resampled units, numbered likewise, if they are not single matches; `strata` (n,) the strata that a sample
    keeps enough of. `statistics` turns such sums, (r, cells, c), into r values for each name.
    """
    return resample(statistics, cells, columns, units, strata).figures


@dataclass(frozen=True, slots=True)
class Resampled:
    """Figures, and the values of each in the resamples: (RESAMPLES,), or empty where there are none."""

    figures: dict[str, Figure]
    draws: Mapping[str, Floats]


def resample(
    statistics: Statistics,
    cells: Integers,
    columns: Floats,
    units: Integers | None = None,
    strata: Integers | None = None,
) -> Resampled:
    """The same as `figures`, with the resamples, which are centred on the values of all matches."""
    order = np.argsort(cells, kind="stable")
    columns, units = columns[:, order], None if units is None else units[order]
    starts = np.flatnonzero(np.diff(cells[order], prepend=-1))
    exact = statistics(np.add.reduceat(columns, starts, axis=1).T[None])
    few = _few(len(cells), units)
    drawn: dict[str, list[Floats]] = {name: [] for name in exact}
    part: Mapping[str, Statistic] = {}  # the figures of the sample that stands for all
    if few is None:
        size = len(cells) if units is None else int(units.max()) + 1
        if size > MOST_RESAMPLED:
            resamples = _resamples_of_part(
                columns, cells[order], units, None if strata is None else strata[order], size
            )
            part = statistics(next(resamples))
        else:
            resamples = _resamples(columns, starts, units)
        for sums in resamples:
            for name, found in statistics(sums).items():
                drawn[name].append(found.values)
    draws = {name: np.concatenate(found) if found else np.empty(0) for name, found in drawn.items()}
    for name, of_part in part.items():
        draws[name] = draws[name] + (exact[name].values[0] - of_part.values[0])
    return Resampled(
        {name: _with_interval(found, draws[name], few, part.get(name)) for name, found in exact.items()}, draws
    )


def mean_figure(values: Floats, units: Integers | None = None, reason: str = FEW_MATCHES) -> Figure:
    """The mean of one number per match, with its interval; `units` (n,) are resampled if not single matches.

    `reason` is given for a missing interval when there are too few values.
    """
    if not len(values):
        return Figure(None)
    few = (reason if len(values) < LEAST else None) if units is None else _few(len(values), units)
    mean, number = float(values.mean()), len(values)
    if few is not None:
        return Figure(mean, n=number, no_interval=few)
    total, matches = resampled_sums([values, np.ones(number)], units).T
    return Figure(mean, *interval_ends(total / matches), number)


def ratio_figure(over: Floats, under: Floats, units: Integers | None = None) -> Figure:
    """The mean of `over` divided by the mean of `under`, with its interval.

    Both are (n,), for the same n matches in order, and drawn together, match by match (or by `units` (n,), as in
    `mean_figure`): two models evaluated on the same contexts with the same seeds find the same ones hard. If the mean
    of `under` is not above 0 there is no ratio; if that happens in a resample, no interval. Raises ValueError for
    different numbers of matches.
    """
    if len(over) != len(under):
        raise ValueError(f"expected the same matches of both, got {len(over)} and {len(under)}")
    number = len(over)
    if not number or under.mean() <= 0:
        return Figure(None)
    value, few = float(over.mean() / under.mean()), _few(number, units)
    if few is not None:
        return Figure(value, n=number, no_interval=few)
    mine, base = resampled_sums([over, under], units).T
    if (base <= 0).any():
        return Figure(value, n=number, no_interval=NEAR_ZERO)
    return Figure(value, *interval_ends(mine / base), number)


def resampled_sums(columns: Sequence[Floats], units: Integers | None = None) -> Floats:
    """The sum of each of c columns (n,) in resamples of its n matches, or of `units` (n,): (RESAMPLES, c)."""
    units = np.arange(len(columns[0])) if units is None else np.unique(units, return_inverse=True)[1].reshape(-1)
    sums = np.stack([np.bincount(units, each) for each in columns], axis=1)
    distinct, counts = np.unique(sums, axis=0, return_counts=True)
    often = np.random.default_rng(SEED_OF_DRAWS).multinomial(len(sums), counts / len(sums), size=RESAMPLES)
    found: Floats = (often @ distinct).astype(np.float64)
    return found


def wilson(share: float, n: float) -> tuple[float, float]:
    """The ends of the 95 % interval of a share of n. Source: Wilson 1927; Brown, Cai & DasGupta 2001, section 3."""
    middle = (share + NORMAL**2 / (2 * n)) / (1 + NORMAL**2 / n)
    half = NORMAL / (1 + NORMAL**2 / n) * math.sqrt(share * (1 - share) / n + NORMAL**2 / (4 * n**2))
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def newcombe(first: float, first_n: float, second: float, second_n: float) -> tuple[float, float]:
    """The ends of the 95 % interval of `first` minus `second`, shares of two groups, from the Wilson intervals.

    Source: Newcombe 1998, Interval estimation for the difference between independent proportions, Statistics in
    Medicine 17, method 10.
    """
    (low, high), (other_low, other_high) = wilson(first, first_n), wilson(second, second_n)
    apart = first - second
    return (
        apart - math.hypot(first - low, other_high - second),
        apart + math.hypot(high - first, second - other_low),
    )


def _few(matches: int, units: Integers | None) -> str | None:
    """Why there are too few matches or units for a reliable bootstrap; None if there are enough."""
    if units is not None:
        return FEW_SEEDS if len(np.unique(units)) < LEAST else None
    return FEW_MATCHES if matches < LEAST else None


def _resamples(columns: Floats, starts: Integers, units: Integers | None) -> Iterator[Floats]:
    """The sums of `RESAMPLES` resamples, in batches large enough for a call of the statistics: (r, cells, c)."""
    number, matches = columns.shape
    size = matches if units is None else int(units.max()) + 1
    generator = np.random.default_rng(SEED_OF_DRAWS)
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


def _resamples_of_part(
    columns: Floats, cells: Integers, units: Integers | None, strata: Integers | None, size: int
) -> Iterator[Floats]:
    """The sums of the part itself, scaled up to the full size, then those of resamples: (r, cells, c) each."""
    generator = np.random.default_rng(SEED_OF_DRAWS)
    chosen, weights = _draw_representative_units(generator, units, strata, size)
    if units is None:
        rows, of_chosen = chosen, np.arange(len(chosen))
    else:
        place = np.full(size, -1)
        place[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero(place[units] >= 0)
        of_chosen = place[units[rows]]
    order = np.argsort(cells[rows], kind="stable")
    rows, of_chosen = rows[order], of_chosen[order]
    starts = np.flatnonzero(np.diff(cells[rows], prepend=-1))
    present, values, number = cells[rows][starts], columns[:, rows], int(cells.max()) + 1

    def sums_of(often: Floats) -> Floats:
        sums = np.zeros((len(often), number, len(values)))
        for place, column in enumerate(values):
            sums[:, present, place] = np.add.reduceat(often[:, of_chosen] * column, starts, axis=1)
        return sums

    yield sums_of(weights[None])
    for first in range(0, RESAMPLES, step := max(1, _AT_ONCE // max(number, len(rows)))):
        often = generator.multinomial(size, weights / weights.sum(), size=min(step, RESAMPLES - first))
        yield sums_of(often.astype(np.float64))


def _draw_representative_units(
    generator: np.random.Generator, units: Integers | None, strata: Integers | None, size: int
) -> tuple[Integers, Floats]:
    """Units that represent all, in ascending order, and how many units each represents."""
    of_unit = np.zeros(size, np.int64)
    if strata is not None:
        of_unit[np.arange(size) if units is None else units] = strata
    shuffled = generator.permutation(size)
    chosen, weights = [], []
    for stratum in np.unique(of_unit):
        own = shuffled[of_unit[shuffled] == stratum]
        taken = own[: max(_LEAST_OF_STRATUM, _PART * len(own) // size)]
        chosen.append(taken)
        weights.append(np.full(len(taken), len(own) / len(taken)))
    together, weight = np.concatenate(chosen), np.concatenate(weights)
    order = np.argsort(together)
    return together[order], weight[order]


def _with_interval(exact: Statistic, drawn: Floats, few: str | None, part: Statistic | None = None) -> Figure:
    value, number = float(exact.values[0]), round(float(exact.matches[0]))
    if np.isnan(value):
        return Figure(None)
    if exact.effective is not None:
        return Figure(value, *wilson(value, float(exact.effective[0])), number)
    resampled = number if part is None else min(number, float(part.matches[0]))
    if few is None and resampled < LEAST:
        few = FEW_MATCHES
    if few is not None:
        return Figure(value, n=number, no_interval=few)
    return Figure(value, *interval_ends(drawn), number)


def interval_ends(values: Any) -> tuple[float, float]:
    low, high = np.nanquantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
