"""A gain in score, split into more agreements and better ones."""

import random

import numpy as np
import pytest

from app.analysis.bootstrap import FEW_MATCHES, Figure
from app.analysis.gain import HARDLY_AGREED, Gain, SplitMetrics, gain_of, split_metrics
from app.games import metrics_of
from app.games.match_table import FinishedMatch, MatchTable, of_rows


def played(agreed: int, points: tuple[int, int], matches: int = 100) -> MatchTable:
    """So many of the matches end with a deal, in which the seats get these points."""
    rows = [
        FinishedMatch(points if place < agreed else (0, 0), ("a", "a"), "deal", 4, agreed=place < agreed)
        for place in range(matches)
    ]
    random.Random(agreed).shuffle(rows)
    return of_rows(rows)


def metrics() -> SplitMetrics:
    found = split_metrics(metrics_of("negotiation"))
    assert found is not None
    return found


def gain(before: MatchTable, after: MatchTable) -> Gain:
    return gain_of(metrics(), before, after)


def test_the_parts_are_those_of_the_published_split_and_add_up() -> None:
    assert [each.name for each in metrics()] == ["score_mean", "agreement_rate", "agreed_score_mean"]
    found = gain(played(20, (4, 6)), played(80, (6, 8)))
    assert found.shares == (0.2, 0.8)
    assert found.scores == pytest.approx((5, 7))
    assert found.more.value == pytest.approx(0.6 * 6)
    assert found.better.value == pytest.approx(2 * 0.5)
    assert found.whole.value == pytest.approx(4.6)
    for part in (found.more, found.better):
        assert part.n == 100
        assert part.low is not None
        assert part.low < part.value < part.high  # type: ignore[operator]


def test_intervals_hold_the_true_parts_as_often_as_they_say() -> None:
    rng = np.random.default_rng(3)
    held = []
    for _ in range(200):
        tables = []
        for share, points in ((0.3, 4.0), (0.6, 6.0)):
            deals = rng.random(150) < share
            got = rng.integers(0, int(2 * points) + 1, 150)
            rows = [
                FinishedMatch((int(score),) * 2 if deal else (0, 0), ("a", "a"), "deal", 4, agreed=bool(deal))
                for score, deal in zip(got, deals, strict=True)
            ]
            tables.append(of_rows(rows))
        found = gain(*tables)
        for part, truth in ((found.more, 0.3 * 5), (found.better, 2 * 0.45)):
            assert part.low is not None
            assert part.high is not None
            held.append(part.low <= truth <= part.high)
    assert 0.91 <= np.mean(held) <= 0.985


def test_seeds_that_are_played_twice_are_drawn_with_both_of_their_matches() -> None:
    before, after = played(20, (4, 6)), played(80, (6, 8))
    alone = gain(before, after).more
    for table in (before, after):
        object.__setattr__(table, "pair", np.repeat(np.arange(50), 2))
    paired = gain(before, after).more
    assert paired.value == alone.value
    assert (paired.low, paired.high) != (alone.low, alone.high)


def test_what_cannot_be_split_says_so() -> None:
    nothing = gain(played(0, (0, 0)), played(50, (6, 8)))
    assert nothing.scores == (None, 7)
    assert (nothing.more, nothing.better) == (Figure(None), Figure(None))
    assert nothing.whole.value == pytest.approx(3.5)
    rare = gain(played(1, (4, 6)), played(50, (6, 8)))
    assert rare.more.no_interval == HARDLY_AGREED
    few = gain(played(4, (4, 6), 8), played(8, (6, 8), 8))
    assert (few.more.low, few.more.no_interval) == (None, FEW_MATCHES)
    with pytest.raises(ValueError, match="expected the same matches of both, got 100 and 8"):
        gain(played(20, (4, 6)), played(8, (6, 8), 8))
    assert split_metrics(metrics_of("taboo")) is None
