"""The mean score of a round as it went on: over its matches in the order in which they ended, with its interval."""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Phrase
from app.jobs.curves import Curve
from app.models import MatchRow, RoundRow

_MOST = 300  # places at which the mean is told
_ENOUGH = 10  # matches for an interval
_NORMAL = 1.96  # of a 95 % interval


class RunningMean(NamedTuple):
    """The mean score of a seat over the first so many matches, and its 95 % interval where there are ten and more.

    The interval is that of the normal distribution, over matches: both seats of one count once, with their mean.
    """

    matches: int
    mean: float
    low: float | None
    high: float | None


def running_means(session: Session, round_id: int) -> list[RunningMean]:
    """The means after matches in the order of their ends, at most 300 of them, evenly, with the last one."""
    over = MatchRow.round_id == round_id, MatchRow.status == "over"
    columns = select(MatchRow.utility_0, MatchRow.utility_1).where(*over)
    rows = session.execute(columns.order_by(MatchRow.ended_at, MatchRow.index)).all()
    return means_of([((first or 0) + (second or 0)) / 2 for first, second in rows])


def means_of(scores: Sequence[float]) -> list[RunningMean]:
    """The means of the first scores of a sequence, of so many of them at a time."""
    every = -(-len(scores) // _MOST) or 1
    found, squares, mean = [], 0.0, 0.0
    for total, score in enumerate(scores, 1):
        before = mean
        mean += (score - mean) / total
        squares += (score - before) * (score - mean)  # Welford 1962: exact also for means that are far from 0
        if (len(scores) - total) % every == 0:
            half = _NORMAL * sqrt(squares / (total - 1) / total) if total >= _ENOUGH else None
            found.append(RunningMean(total, mean, *((None, None) if half is None else (mean - half, mean + half))))
    return found


def curves(session: Session, row: RoundRow) -> Sequence[Curve]:
    """The curve of a round."""
    points = [(each.matches, each.mean) for each in running_means(session, row.id)]
    return [Curve("score", Phrase("Mean score so far"), Phrase("Matches that are over"), points)]
