"""Both scores and their difference, for two models of a round in a list and two system prompts on its page."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.analysis.bootstrap import FEW_MATCHES, FEW_SEEDS, Figure, Floats, Integers, mean_figure
from app.analysis.reading import sampled_indexes
from app.matches.counts import endings_of_rounds
from app.matches.filter import is_over
from app.models import MatchRow, RoundRow
from app.models.types import is_among

MOST_COMPARED = 10_000  # matches compared on a round's page
MOST_READ = 500  # matches, enough to know the interval's width to within a few percent


class PromptScores(NamedTuple):
    """Mean scores with each system prompt of a round, as it names them (None: none), and the first one's lead."""

    prompts: tuple[str | None, str | None]
    means: tuple[Figure, Figure]
    difference: Figure
    swapped: bool  # whether a pair is a seed played from both seats, rather than a match


class RoundHeadline(NamedTuple):
    """Mean scores of the models of both seats, as the round names them, and the first one's lead, pair by pair."""

    means: tuple[float, float]
    difference: Figure


def headline(session: Session, row: RoundRow) -> RoundHeadline | None:
    """The headline of a round so far; None for a single model, for imports, and without matches."""
    if row.model_0_id is None or row.model_1_id is None or row.model_0_id == row.model_1_id:
        return None
    indexes = sampled_indexes(row, MOST_READ)
    found = _read_match_scores(session, row, indexes)
    if found is None:
        return None
    read = RoundHeadline(*_headline(found.scores, found.pairs, _few(row)))
    return read if indexes is None else _of_all(session, row, read)


def prompt_scores(session: Session, row: RoundRow) -> PromptScores | None:
    """The scores with both system prompts of a round so far, from at most MOST_COMPARED matches.

    None where both seats had the same prompt, and without matches.
    """
    if row.prompts is None or row.prompts[0] == row.prompts[1]:
        return None
    found = _read_match_scores(session, row, sampled_indexes(row, MOST_COMPARED))
    if found is None:
        return None
    seeds = found.pair_of if row.swap_seats else None
    first, second = (mean_figure(found.scores[:, place], seeds, _few(row)) for place in (0, 1))
    difference = mean_figure(found.pairs, reason=_few(row))
    return PromptScores((row.prompts[0], row.prompts[1]), (first, second), difference, row.swap_seats)


class _Scores(NamedTuple):
    """Scores (n, 2) of both models as the round names them, each match's seed (n,), and the first one's leads.

    There is one lead for each seed that was played from both seats, or for each match where seats are not swapped.
    """

    scores: Floats
    pair_of: Integers
    pairs: Floats


def _read_match_scores(session: Session, row: RoundRow, indexes: Sequence[int] | None) -> _Scores | None:
    """The scores of finished matches with these indexes, or of all finished ones; None without matches."""
    over = [MatchRow.round_id == row.id, is_over()]
    chosen = over if indexes is None else [*over, is_among(MatchRow.index, indexes)]
    found = session.execute(select(MatchRow.index, MatchRow.utility_0, MatchRow.utility_1).where(*chosen)).all()
    if not found:
        return None
    table = np.array([(index, first or 0, second or 0) for index, first, second in found], np.float64)
    index, scores = table[:, 0].astype(np.int64), table[:, 1:]
    if not row.swap_seats:
        return _Scores(scores, index, scores[:, 0] - scores[:, 1])
    turned = index % 2 == 1  # where the first model sat in the second seat
    scores = np.where(turned[:, None], scores[:, ::-1], scores)
    pair_of = np.unique(index // 2, return_inverse=True)[1].reshape(-1)
    whole = np.bincount(pair_of) == 2
    return _Scores(scores, pair_of, np.bincount(pair_of, scores[:, 0] - scores[:, 1])[whole] / 2)


def _few(row: RoundRow) -> str:
    """Why there is no interval where there are too few values."""
    return FEW_SEEDS if row.swap_seats else FEW_MATCHES


def _of_all(session: Session, row: RoundRow, read: RoundHeadline) -> RoundHeadline:
    """The headline of all matches, extrapolated from a sample's.

    Means come from the stored counts; the interval of the difference is narrowed by the root of the ratio of the
    numbers of matches.
    """
    matches, first, second = 0, 0.0, 0.0
    for each in endings_of_rounds(session, [row.id])[row.id]:
        own, other = (0, 1) if each.model_0_id == row.model_0_id else (1, 0)
        points = each.points_0, each.points_1
        matches, first, second = matches + each.matches, first + points[own], second + points[other]
    lead, some = (first - second) / matches, read.difference
    if some.value is None or some.low is None or some.high is None or some.n is None:
        return RoundHeadline((first / matches, second / matches), some)
    narrower = math.sqrt(some.n * (2 if row.swap_seats else 1) / matches)
    low, high = (lead + narrower * (end - some.value) for end in (some.low, some.high))
    number = matches // 2 if row.swap_seats else matches
    return RoundHeadline((first / matches, second / matches), Figure(lead, low, high, number))


def _headline(scores: Floats, pairs: Floats, reason: str) -> tuple[tuple[float, float], Figure]:
    first, second = scores.mean(0)
    return (float(first), float(second)), mean_figure(pairs, reason=reason)
