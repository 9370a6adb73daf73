"""Ratings of players with their 95 % intervals, and the cross-play behind them. Pure.

Where one player's gain is the other's loss, ratings are those of a Bradley–Terry model with ties, on the usual scale of
400 points for odds of ten to one; otherwise they are points per match in an additive model. Intervals come from
resampling contexts, each with all of its matches.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from app.analysis.bootstrap import FEW_CONTEXTS, LEAST, NORMAL, RESAMPLES, Booleans, Floats, Integers
from app.analysis.rating_models import AdditivePoints, PairedWins, additive_points, as_rating, paired_wins
from app.analysis.results import FIRST, SECOND, TIE, Results

By = Literal["wins", "points"]
WINS: Final = "wins"
POINTS: Final = "points"
FEW = 60  # with fewer matches, a cell's figure is only a hint
_BLOCKS = 200  # more contexts are resampled in this many blocks
_AT_ONCE = 2_000_000  # numbers of resamples in memory
_SEED = 240_618_872


class Rating(NamedTuple):
    """A player's rating, its interval, and the range of its places in 95 % of the resamples; 1 is the best.

    `matches` is the number of matches behind it. Without an interval its ends are None, and both places are its own.
    """

    player: str
    value: float
    low: float | None
    high: float | None
    best_place: int
    worst_place: int
    matches: int


class CrossPlayCell(NamedTuple):
    """The result of `row` against `column`: points per match, or the share of matches won, a tie counting half.

    `residual` is its excess over what the ratings predict; None where either has no rating.
    """

    row: str
    column: str
    matches: int
    value: float
    residual: float | None


class Neighbours(NamedTuple):
    """Two adjacent players and the gap between them. `sure` is the share of resamples in this order.

    `more_matches` between them would settle the order if the gap stayed the same; 0: it is settled, None: unknown.
    """

    ahead: str
    behind: str
    gap: float
    low: float | None
    high: float | None
    sure: float | None
    more_matches: int | None


@dataclass(frozen=True, slots=True)
class Ratings:
    """The ratings, best first. `unlinked` are players whom matches do not link to the others.

    For a single role, players without a match in that role are not among them.
    """

    by: By
    role: int | None
    ratings: Sequence[Rating]
    cells: Sequence[CrossPlayCell]
    neighbours: Sequence[Neighbours]
    unlinked: Sequence[str]
    contexts: int
    no_interval: str | None


def rate(results: Results, by: By, role: int | None = None) -> Ratings:
    """The ratings of the largest group of players linked by matches; with a `role`, in that place alone.

    Ratings that separate players from partners are linked through both: whoever was only a partner, or is not linked as
    a player, has no rating, but its matches count. With fewer than two linked players there are no ratings.

    Contexts are drawn with replacement 1,000 times. Ends of intervals are percentiles slightly beyond the 2.5th and
    97.5th, because a resample of few contexts varies less than the contexts do. With fewer than 10 contexts there are
    no intervals. Source: Hesterberg 2015, What teachers should know about the bootstrap, section 3.3.
    """
    is_apart = by == POINTS or role is not None
    linked = _linked(results, apart=is_apart, role=role)
    matches_of = dict(zip(results.players, _matches_of(results, role), strict=True))
    kept = [name for name, is_linked in zip(results.players, linked, strict=True) if is_linked]
    unlinked = [name for name, number in matches_of.items() if number and (name not in kept or len(kept) < 2)]
    if len(kept) < 2:
        return Ratings(by, role, (), _cross_play_cells(results, by, role, None), (), unlinked, results.contexts, None)
    rated = _with_partners(results, linked, kept, role) if is_apart else results.of_players(kept)
    blocks = min(rated.contexts, _BLOCKS)
    block = np.random.default_rng(_SEED).permutation(rated.contexts)[rated.context] % blocks
    model: PairedWins | AdditivePoints
    if by == WINS:
        model = paired_wins(rated, block, blocks, role)
    else:
        model = additive_points(rated, block, blocks, role, len(kept))
    values = _rating_values(model, np.ones((1, blocks)), role)[0, : len(kept)]
    few = FEW_CONTEXTS if rated.contexts < LEAST else None
    drawn = np.empty((0, len(kept))) if few else _resampled(model, blocks, role)[:, : len(kept)]
    matches = _matches_of(rated, role)[: len(kept)]
    order = np.argsort(-values, kind="stable")
    return Ratings(
        by,
        role,
        _ratings_with_intervals(kept, values, drawn, _interval_percentiles(blocks), matches, order),
        _cross_play_cells(results, by, role, (rated, model)),
        _neighbours(kept, values, drawn, blocks, matches, order),
        unlinked,
        rated.contexts,
        few,
    )


def _rating_values(model: PairedWins | AdditivePoints, resampled: Floats, role: int | None) -> Floats:
    """(r, k) The ratings in each resample."""
    if isinstance(model, AdditivePoints):
        return model.points(resampled)
    return as_rating(model.strengths(resampled)[:, role or 0])


def _resampled(model: PairedWins | AdditivePoints, blocks: int, role: int | None) -> Floats:
    generator = np.random.default_rng(_SEED)
    often = generator.multinomial(blocks, np.full(blocks, 1 / blocks), size=RESAMPLES).astype(np.float64)
    size = model.wins[0].size * 8 if isinstance(model, PairedWins) else model.grams[0].size * 2
    step = max(1, _AT_ONCE // size)
    return np.concatenate([_rating_values(model, often[at : at + step], role) for at in range(0, RESAMPLES, step)])


def _matches_of(results: Results, role: int | None) -> Integers:
    """(k,) The number of matches of each player; one against itself counts once."""
    count = len(results.players)
    found = np.zeros(count, np.int64)
    for place in (0, 1) if role is None else (role,):
        found += np.bincount(results.player[:, place], results.matches, minlength=count).astype(np.int64)
    if role is None:
        itself = results.player[:, 0] == results.player[:, 1]
        found -= np.bincount(results.player[itself, 0], results.matches[itself], minlength=count).astype(np.int64)
    return found


def _critical_value(blocks: int) -> float:
    """How many standard deviations of normal resamples an interval extends to each side."""
    free = max(blocks - 1, 1)
    student = (
        NORMAL + (NORMAL**3 + NORMAL) / (4 * free) + (5 * NORMAL**5 + 16 * NORMAL**3 + 3 * NORMAL) / (96 * free**2)
    )
    return student * math.sqrt(blocks / free)


def _interval_percentiles(blocks: int) -> tuple[float, float]:
    """The percentiles at the ends of an interval, as shares: those of Student's distribution, and its spread."""
    below = math.erfc(_critical_value(blocks) / math.sqrt(2)) / 2
    return below, 1 - below


def _ratings_with_intervals(
    names: Sequence[str],
    values: Floats,
    drawn: Floats,
    ends: tuple[float, float],
    matches: Integers,
    order: Integers,
) -> list[Rating]:
    if not len(drawn):
        return [
            Rating(names[at], float(values[at]), None, None, place, place, int(matches[at]))
            for place, at in enumerate(order, 1)
        ]
    low, high = np.quantile(drawn, ends, axis=0)
    places = (drawn[:, None, :] > drawn[:, :, None]).sum(2) + 1
    best, worst = np.quantile(places, ends, axis=0, method="inverted_cdf")
    return [
        Rating(
            names[at],
            float(values[at]),
            float(low[at]),
            float(high[at]),
            int(best[at]),
            int(worst[at]),
            int(matches[at]),
        )
        for at in order
    ]


def _neighbours(
    names: Sequence[str],
    values: Floats,
    drawn: Floats,
    blocks: int,
    matches: Integers,
    order: Integers,
) -> list[Neighbours]:
    found, ends, critical_value = [], _interval_percentiles(blocks), _critical_value(blocks)
    for ahead, behind in itertools.pairwise(order):
        gap, who = float(values[ahead] - values[behind]), (names[ahead], names[behind])
        if not len(drawn):
            found.append(Neighbours(*who, gap, None, None, None, None))
            continue
        gaps = drawn[:, ahead] - drawn[:, behind]
        low, high = np.quantile(gaps, ends)
        sure = float((gaps > 0).mean() + (gaps == 0).mean() / 2)
        played = int(matches[ahead] + matches[behind])
        more = 0 if low > 0 else more_matches(gap, float(gaps.std()), played, critical_value)
        found.append(Neighbours(*who, gap, float(low), float(high), sure, more))
    return found


def more_matches(gap: float, spread: float, played: int, critical_value: float) -> int | None:
    """How many further matches would narrow the interval of a gap until it excludes 0, if the gap stays.

    `spread` is the standard deviation of the gap with `played` matches; it falls with the root of their number. The
    interval extends `critical_value` times as far. At least 1, and rounded up to two figures; None without a gap, or if
    it is more than a thousand times what was played.
    """
    if gap <= 0:
        return None
    further = played * ((critical_value * spread / gap) ** 2 - 1)
    if further > 1_000 * played:
        return None
    whole = max(1, math.ceil(further))  # a not quite normal interval may contain 0 although this formula says otherwise
    digits: int = 10 ** max(0, len(str(whole)) - 2)
    return math.ceil(whole / digits) * digits


def _linked(results: Results, *, apart: bool, role: int | None) -> Booleans:
    """(k,) Which players belong to the largest group with comparable ratings.

    `apart`: players and their effects as partners are separate, and linked only through others.
    """
    count = len(results.players)
    places = (0, 1) if apart and role is None else (role or 0,)
    edges = np.concatenate(
        [results.player[:, [place, 1 - place]] + [0, count if apart else 0] for place in places]
    ).astype(np.int64)
    edges = np.unique(edges, axis=0)
    group = np.arange(count * (2 if apart else 1))
    while True:
        least = np.minimum(group[edges[:, 0]], group[edges[:, 1]])
        before = group.copy()
        np.minimum.at(group, edges[:, 0], least)
        np.minimum.at(group, edges[:, 1], least)
        if (group == before).all():
            break
    group = group[:count]
    numbers, sizes = np.unique(group, return_counts=True)
    linked: Booleans = group == numbers[sizes.argmax()] if count else np.zeros(0, np.bool_)
    return linked


def _with_partners(results: Results, linked: Booleans, kept: Sequence[str], role: int | None) -> Results:
    """The matches in which a linked player has a rated seat: those players, then their other partners."""
    places = [0, 1] if role is None else [role]
    theirs = np.flatnonzero(linked[results.player[:, places]].any(1))
    partners = [results.players[at] for at in np.unique(results.player[theirs]) if not linked[at]]
    return results.of_lines(theirs).of_players([*kept, *partners])


def _cross_play_cells(
    results: Results, by: By, role: int | None, rated: tuple[Results, PairedWins | AdditivePoints] | None
) -> list[CrossPlayCell]:
    """All pairs that have met, by row and column in the order of `results.players`."""
    count = len(results.players)
    matches, score = np.zeros((count, count)), np.zeros((count, count))
    for place in (0, 1) if role is None else (role,):
        at = results.player[:, place], results.player[:, 1 - place]
        np.add.at(matches, at, results.matches)
        np.add.at(score, at, results.points[:, place] if by == POINTS else _wins(results, place))
    above = np.full((count, count), np.nan)
    if rated is not None:
        places = [results.players.index(name) for name in rated[0].players]
        above[np.ix_(places, places)] = _residuals(*rated, role)
    seats = 2 if role is None else 1
    return [
        CrossPlayCell(
            results.players[row],
            results.players[column],
            int(matches[row, column]) // (seats if row == column else 1),
            float(score[row, column] / matches[row, column]),
            None if np.isnan(above[row, column]) else float(above[row, column]),
        )
        for row, column in np.argwhere(matches > 0)
    ]


def _wins(results: Results, place: int) -> Floats:
    own = FIRST if place == 0 else SECOND
    won: Floats = results.matches * ((results.more == own) + (results.more == TIE) / 2)
    return won


def _residuals(results: Results, model: PairedWins | AdditivePoints, role: int | None) -> Floats:
    """(k, k) The result of each against each other one in excess of the model's prediction, per match."""
    count = len(results.players)
    number, above = np.zeros((count, count)), np.zeros((count, count))
    if isinstance(model, AdditivePoints):
        at = model.lines.player[:, 0], model.lines.player[:, 1]
        np.add.at(number, at, model.lines.number)
        np.add.at(above, at, model.residuals())
    else:
        matches, _, each = model.residuals()
        for place in (0, 1) if role is None else (role,):
            at = model.cells[:, place], model.cells[:, 1 - place]
            np.add.at(number, at, matches)
            np.add.at(above, at, matches * (each if place == 0 else -each))
    return np.divide(above, number, out=np.full_like(above, np.nan), where=number > 0)


def to_json(ratings: Ratings) -> dict[str, Any]:
    """The ratings under the names of docs/analysis.md."""
    return {
        "by": ratings.by,
        "contexts": ratings.contexts,
        "no_interval": ratings.no_interval,
        "ratings": [each._asdict() for each in ratings.ratings],
        "cells": [each._asdict() for each in ratings.cells],
        "neighbours": [each._asdict() for each in ratings.neighbours],
        "unlinked": list(ratings.unlinked),
    }
