"""How often each number occurred: the data of histograms. Pure."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from app.analysis.bootstrap import Floats
from app.analysis.paired import SEEDS, PairedDifference
from app.games.match_table import MatchTable
from app.games.metrics import GameMetrics, Metric

_MOST_BINS = 30
_MOST_DIFFERENCES = 45  # bins, enough for every half point where scores are from 0 to 10


class Bin(NamedTuple):
    """The count of numbers from `low` up to, but excluding, `high`; of one model where there are several."""

    low: float
    high: float
    number: int
    player: str | None = None


def distributions(
    matches: MatchTable, defined: GameMetrics, versus: PairedDifference | None = None
) -> Mapping[str, Sequence[Bin]]:
    """How often the values of metrics with a histogram occurred, by its name; for metrics of seats, by player.

    Also the differences of two models, by who is ahead.
    """
    if not len(matches):
        return {}
    return {
        **{name: _distribution(matches, metric) for name, metric in defined.histograms.items()},
        **({} if versus is None else {"paired_difference": differences(versus)}),
    }


def _distribution(matches: MatchTable, metric: Metric) -> list[Bin]:
    if metric.value is None or metric.histogram is None:
        return []
    values = metric.value(matches).astype(np.float64)
    if metric.among is not None:
        values = np.where(metric.among(matches).reshape(-1, *[1] * (values.ndim - 1)), values, np.nan)
    if not metric.by_seat or len(matches.players) == 1:
        return _bins(values.ravel(), metric.histogram.most)
    return [
        each._replace(player=name)
        for code, name in enumerate(matches.players)
        for each in _bins(values[matches.player == code], metric.histogram.most)
    ]


def differences(versus: PairedDifference) -> list[Bin]:
    """How often each difference occurred, in bins around middles; `player` is who is ahead, None if neither."""
    spread = float(np.ptp(versus.differences)) if versus.pairs else 0.0
    width = 0.5 if versus.pairing == SEEDS else 1.0
    width = width if spread / width < _MOST_DIFFERENCES else _round_up(spread / _MOST_DIFFERENCES)
    middles, counts = np.unique(np.round(versus.differences / width) * width, return_counts=True)
    return [
        Bin(
            float(middle - width / 2),
            float(middle + width / 2),
            int(count),
            versus.first if middle > 0 else versus.second if middle < 0 else None,
        )
        for middle, count in zip(middles, counts, strict=True)
    ]


def bins_of(counted: Mapping[float, int], player: str | None = None) -> list[Bin]:
    """Bins of numbers, from the count of each."""
    values = np.repeat(np.array(list(counted), np.float64), list(counted.values()))
    return [each._replace(player=player) for each in _bins(values, _MOST_BINS)]


def _bins(values: Floats, most: int | None = None) -> list[Bin]:
    """Bins of width 1, or of the first of 2, 5, 10, 20 … that gives at most `most`; empty ones are left out."""
    values = values[~np.isnan(values)]
    if not len(values):
        return []
    spread = float(values.max() - values.min()) + 1
    width = 1 if most is None or spread <= most else _round_up(spread / most)
    places, counts = np.unique(np.floor(values / width + 1e-9), return_counts=True)
    return [
        Bin(float(place) * width, float(place + 1) * width, int(count))
        for place, count in zip(places, counts, strict=True)
    ]


def _round_up(width: float) -> int:
    """The smallest of 1, 2, 5, 10, 20 … that is at least `width`."""
    power = 10 ** math.floor(math.log10(width))
    return int(next(step * power for step in (1, 2, 5, 10) if step * power >= width))
