"""Where a gain in score comes from: more matches with an agreement, or better agreements. Pure.

A match without an agreement has no points, so the mean score is the share of agreed matches times their mean score. The
difference of two such products splits without a remainder: the effect of a change in the share at the mean of both
scores, and that of a change in the score at the mean of both shares.

Source: Kitagawa 1955, Components of a difference between two rates, J. Am. Stat. Assoc. 50.
"""

from typing import NamedTuple

import numpy as np

from app.analysis.bootstrap import Figure, Floats, interval_ends, mean_figure, resampled_sums
from app.games.match_table import MatchTable
from app.games.metrics import MEAN, PART, GameMetrics, Metric, Value

HARDLY_AGREED = "models that hardly agree"


class SplitMetrics(NamedTuple):
    """Three metrics of a game, the first of which is the product of the others."""

    score: Metric
    share: Metric  # share of agreed matches
    agreed: Metric  # score of agreed matches


class Gain(NamedTuple):
    """The gain of a later model over an earlier one on the same matches, in points per match.

    `shares` and `scores` are of the earlier and the later model: the share of agreed matches and their mean score, None
    where no match was agreed. `more` and `better`, which add up to `whole`, are then missing.
    """

    shares: tuple[float, float]
    scores: tuple[float | None, float | None]
    whole: Figure
    more: Figure
    better: Figure


def split_metrics(defined: GameMetrics) -> SplitMetrics | None:
    """The metrics by which gains in a game can be split; None for a game without agreements."""
    score = defined.headline
    for agreed in defined.of_matches:
        if agreed.aggregate == MEAN and agreed.value is score.value and agreed.among is not None:
            shares = [each for each in defined.of_matches if each.aggregate == PART and each.value is agreed.among]
            return SplitMetrics(score, shares[0], agreed) if shares else None
    return None


def mean_difference(value: Value, before: MatchTable, after: MatchTable) -> Figure:
    """The mean change of a metric from the matches `before` to the same ones `after`, match by match."""
    return mean_figure(_by_match(value, after) - _by_match(value, before), after.units)


def gain_of(metrics: SplitMetrics, before: MatchTable, after: MatchTable) -> Gain:
    """The gain from the matches `before` to the same ones `after`, in the same order, split into its parts.

    Raises ValueError for different matches, and where one without an agreement has points.
    """
    if len(before) != len(after) or not len(before):
        raise ValueError(f"expected the same matches of both, got {len(before)} and {len(after)}")
    (old, old_agreed), (new, new_agreed) = (
        _scores_and_agreements(metrics, before),
        _scores_and_agreements(metrics, after),
    )
    whole = mean_figure(new - old, after.units)
    columns = np.stack([old_agreed, old, new_agreed, new])
    (old_share, new_share), (old_score, new_score), (more, better) = _split_gain(columns.mean(1)[None])
    shares = float(old_share[0]), float(new_share[0])
    scores = tuple(None if np.isnan(each[0]) else float(each[0]) for each in (old_score, new_score))
    if None in scores:
        return Gain(shares, (scores[0], scores[1]), whole, Figure(None), Figure(None))
    drawn = None
    if whole.low is not None:
        sums = resampled_sums([*columns, np.ones(len(after))], after.units)
        drawn = _split_gain(sums[:, :-1] / sums[:, -1:])[2]
    parts = []
    for place, exact in enumerate((more, better)):
        value = float(exact[0])
        if drawn is None or np.isnan(drawn[place]).any():
            reason = whole.no_interval if drawn is None else HARDLY_AGREED
            parts.append(Figure(value, n=whole.n, no_interval=reason))
        else:
            parts.append(Figure(value, *interval_ends(drawn[place]), whole.n))
    return Gain(shares, (scores[0], scores[1]), whole, *parts)


def _scores_and_agreements(metrics: SplitMetrics, matches: MatchTable) -> tuple[Floats, Floats]:
    """The score of each match, the mean of its seats, and 1 for an agreed one: (n,) each."""
    if metrics.score.value is None or metrics.share.value is None:
        raise ValueError("expected metrics with values")
    scores = _by_match(metrics.score.value, matches)
    agreed = metrics.share.value(matches).astype(float)
    if scores[agreed == 0].any():
        raise ValueError("expected no points without an agreement")
    return scores, agreed


def _by_match(value: Value, matches: MatchTable) -> Floats:
    """The value of each match, the mean of its seats: (n,)."""
    found = value(matches).astype(float)
    return found.mean(1) if found.ndim > 1 else found


def _split_gain(means: Floats) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Shares and scores of both models, and the parts of the gain, for r rows of four means (r, 4): (r,) each."""
    old_share, old, new_share, new = means.T
    old_score = np.divide(old, old_share, out=np.full_like(old, np.nan), where=old_share > 0)
    new_score = np.divide(new, new_share, out=np.full_like(new, np.nan), where=new_share > 0)
    more = (new_share - old_share) * (old_score + new_score) / 2
    better = (new_score - old_score) * (old_share + new_share) / 2
    # Round away division residue, which would put a sign before 0.
    return (old_share, new_share), (old_score, new_score), (np.round(more, 12), np.round(better, 12))
