"""The result at the top of a round's page: each model with its interval, and the difference between two models."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from app.analysis.bootstrap import Figure
from app.analysis.matches import MatchAnalysis
from app.analysis.paired import PairedDifference
from app.games.metrics import ABORTED, MODEL_SCORE

_SCORE = MODEL_SCORE.name
_LEFT, _RIGHT = 6, 234  # pixels between which intervals are drawn
_FLAT, _AHEAD, _EVEN = "flat", "ahead", "even"


class IntervalBar(NamedTuple):
    """An interval in pixels of a line from `_LEFT` to `_RIGHT`; `zero` is where two models are even."""

    value: float
    low: float | None
    high: float | None
    zero: float | None = None


@dataclass(frozen=True, slots=True)
class ModelResult:
    """A model with its figures by name, in its role if roles differ."""

    player: str
    role: str | None
    colour: int  # as in the charts: 0 and 1 are the players' colours
    matches: int
    figures: dict[str, Figure]
    drawn: IntervalBar | None


@dataclass(frozen=True, slots=True)
class RoundResult:
    """The top of a round's page. `difference` is the first model minus the second, in the round's order."""

    rows: Sequence[ModelResult]
    axis: tuple[float, float] | None
    difference: PairedDifference | None
    drawn: IntervalBar | None
    widest: float  # the axis of the difference goes from minus this to this
    all_aborted: bool

    @property
    def verdict(self) -> str:
        """Whether one of two models is ahead, the interval shows no difference, or there is no verdict."""
        if self.difference is None or self.difference.columns[_SCORE].low is None:
            return _FLAT
        return _EVEN if self.difference.leader is None else _AHEAD

    @property
    def lead(self) -> PairedDifference | None:
        """The difference, turned so that it is not below 0, for a sentence that says who scores how much more."""
        if self.difference is None or (self.difference.columns[_SCORE].value or 0) >= 0:
            return self.difference
        return self.difference.turned()


def result_of(analysis: MatchAnalysis) -> RoundResult:
    """The result of a round so far."""
    parts = analysis.metrics.parts if len({part.player for part in analysis.metrics.parts}) > 1 else ()
    scores = [part.columns[_SCORE] for part in parts]
    axis = _score_axis_limits(scores)
    rows = [
        ModelResult(
            part.player,
            part.role,
            analysis.players.index(part.player),
            part.matches,
            dict(part.columns),
            None if axis is None else drawn_interval(part.columns[_SCORE], *axis),
        )
        for part in parts
    ]
    rows.sort(key=lambda row: -(row.figures[_SCORE].value or 0))
    versus = analysis.paired
    widest, drawn = 1.0, None
    if versus is not None and (score := versus.columns[_SCORE]).value is not None:
        widest = float(math.ceil(2 * max(abs(each) for each in score[:3] if each is not None)) / 2) or 1.0
        drawn = drawn_interval(score, -widest, widest)
    aborted = sum(each.matches for each in analysis.metrics.outcomes if each.reason == ABORTED)
    return RoundResult(rows, axis, versus, drawn, widest, 0 < analysis.matches == aborted)


def _score_axis_limits(figures: Sequence[Figure]) -> tuple[float, float] | None:
    """Whole points that enclose all figures and their intervals; None without figures."""
    ends: list[Any] = [each for figure in figures for each in figure[:3] if each is not None]
    if not ends:
        return None
    low, high = math.floor(min(ends)), math.ceil(max(ends))
    return float(low), float(high if high > low else low + 1)


def drawn_interval(figure: Figure, low: float, high: float) -> IntervalBar | None:
    """A figure with its interval on an axis; None where there is nothing to draw."""
    if figure.value is None:
        return None

    def place(value: float) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * (value - low) / (high - low), 1)

    left, right = (None if each is None else place(each) for each in (figure.low, figure.high))
    return IntervalBar(place(figure.value), left, right, place(0) if low < 0 < high else None)
