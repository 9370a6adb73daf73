"""The headline of a round of two models in a list: the score of each, and their difference."""

from typing import NamedTuple

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.analysis.bootstrap import FEW_MATCHES, FEW_SEEDS, Figure, Floats, mean_figure
from app.models import MatchRow, RoundRow


class RoundHeadline(NamedTuple):
    """Mean scores of the models of both seats, as the round names them, and the first one's lead, pair by pair."""

    means: tuple[float, float]
    difference: Figure


def headline(session: Session, row: RoundRow) -> RoundHeadline | None:
    """The headline of a round as far as it has been played; None of one model, of imports, and of no matches."""
    if row.model_0_id is None or row.model_1_id is None or row.model_0_id == row.model_1_id:
        return None
    found = session.execute(
        select(MatchRow.index, MatchRow.utility_0, MatchRow.utility_1).where(
            MatchRow.round_id == row.id, MatchRow.status == "over"
        )
    ).all()
    if not found:
        return None
    table = np.array([(index, first or 0, second or 0) for index, first, second in found], np.float64)
    index, scores = table[:, 0].astype(np.int64), table[:, 1:]
    if not row.swap_seats:
        return RoundHeadline(*_headline(scores, scores[:, 0] - scores[:, 1], FEW_MATCHES))
    turned = index % 2 == 1  # there the first model sat in the second seat
    scores = np.where(turned[:, None], scores[:, ::-1], scores)
    pair_of = np.unique(index // 2, return_inverse=True)[1].reshape(-1)
    whole = np.bincount(pair_of) == 2
    pairs = np.bincount(pair_of, scores[:, 0] - scores[:, 1])[whole] / 2
    return RoundHeadline(*_headline(scores, pairs, FEW_SEEDS))


def _headline(scores: Floats, pairs: Floats, reason: str) -> tuple[tuple[float, float], Figure]:
    first, second = scores.mean(0)
    return (float(first), float(second)), mean_figure(pairs, reason=reason)
