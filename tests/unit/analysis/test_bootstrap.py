"""Intervals: the same for the same matches, and as often right as they say."""

import random
from dataclasses import replace

import numpy as np
import pytest

from app.analysis import bootstrap
from app.analysis.bootstrap import (
    FEW_MATCHES,
    FEW_SEEDS,
    LEAST,
    NEAR_ZERO,
    Figure,
    mean_figure,
    newcombe,
    ratio_figure,
    wilson,
)
from app.games.match_table import FinishedMatch, MatchTable, of_rows
from tests.effort import growth
from tests.figures import negotiation

AGREED, MEAN = 0.6, 5.0  # of the deals; so 3 over all


def synthetic(number: int, seed: int) -> MatchTable:
    rng = random.Random(seed)
    rows = []
    for _ in range(number):
        agreed = rng.random() < AGREED
        first, second = (rng.randrange(11), rng.randrange(11)) if agreed else (0, 0)
        words = rng.randrange(200)
        rows.append(
            FinishedMatch((first, second), ("a", "a"), "deal" if agreed else "no deal", rng.randrange(2, 30), words)
        )
        rows[-1] = rows[-1]._replace(agreed=agreed, pareto=False)
    return of_rows(rows)


def test_the_same_matches_have_the_same_intervals() -> None:
    assert negotiation(synthetic(200, 1), 0) == negotiation(synthetic(200, 1), 0)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    truth = {"score_mean": AGREED * MEAN, "agreement_rate": AGREED, "agreed_score_mean": MEAN, "words_mean": 99.5}
    held = dict.fromkeys(truth, 0)
    for seed in range(60):
        columns = negotiation(synthetic(150, seed), 0).columns
        for name, expected in truth.items():
            figure = columns[name]
            assert figure.low is not None
            assert figure.high is not None
            held[name] += figure.low <= expected <= figure.high
    # 95 % of 60 is 57, with a standard deviation of 1.7.
    assert {name: times for name, times in held.items() if not 51 <= times <= 60} == {}


def test_an_interval_is_as_wide_as_theory_says() -> None:
    values = np.array([n % 11 for n in range(2200)], float)
    figure = mean_figure(values)
    assert figure.value == pytest.approx(values.mean())
    assert figure.low is not None
    assert figure.high is not None
    assert figure.high - figure.low == pytest.approx(2 * 1.96 * values.std() / len(values) ** 0.5, rel=0.1)


def test_the_mean_of_nothing_and_of_one_match_has_no_interval() -> None:
    assert mean_figure(np.array([])) == Figure(None)
    assert mean_figure(np.array([4.0])) == Figure(4, n=1, no_interval="fewer than 10 matches")


def test_a_mean_of_nine_has_no_interval_and_one_of_ten_has_one() -> None:
    nine, ten = (mean_figure(np.arange(number, dtype=float)) for number in (9, 10))
    assert nine == Figure(4, n=9, no_interval="fewer than 10 matches")
    assert ten.no_interval is None
    assert ten.low is not None
    assert ten.low < 4.5


def test_the_reasons_name_the_number() -> None:
    assert (f"fewer than {LEAST} matches", f"fewer than {LEAST} seeds") == (FEW_MATCHES, FEW_SEEDS)


@pytest.mark.parametrize(
    ("share", "n", "low", "high"),
    [
        (5 / 5, 5, 0.5655, 1.0),  # the interval that resampling gives has no width here
        (0, 10, 0.0, 0.2775),
        (419 / 500, 500, 0.8031, 0.8677),
        (1 / 2, 4, 0.1500, 0.8500),
    ],
)
def test_a_share_has_the_interval_of_wilson(share: float, n: int, low: float, high: float) -> None:
    assert wilson(share, n) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((10, 10), (0, 20), 0.6791, 1.0),
    ],
)
def test_a_difference_of_shares_has_the_interval_that_newcombe_published(
    first: tuple[int, int], second: tuple[int, int], low: float, high: float
) -> None:
    """Newcombe 1998, table II, method 10."""
    found = newcombe(first[0] / first[1], first[1], second[0] / second[1], second[1])
    assert found == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_seeds_that_are_played_twice_are_drawn_as_one() -> None:
    rng = np.random.default_rng(1)
    once = rng.integers(0, 11, 300).astype(float)
    twice, seeds = np.repeat(once, 2), np.repeat(np.arange(300), 2)
    [alone, naive, paired] = [mean_figure(once), mean_figure(twice), mean_figure(twice, seeds)]
    widths = [each.high - each.low for each in (alone, naive, paired) if each.low is not None and each.high is not None]
    assert widths[2] == pytest.approx(widths[0], rel=0.1)  # the second half tells nothing new
    assert widths[1] < 0.8 * widths[0]
    assert mean_figure(twice[:18], seeds[:18]).no_interval == "fewer than 10 seeds"


def test_ten_times_as_many_matches_take_no_more_than_ten_times_as_long() -> None:
    matches = {number: synthetic(number, 1) for number in (500, 5000)}
    assert growth(lambda number: negotiation(matches[number], 0), 500, 5000) < 30  # a hundred if it were quadratic


def _width(figure: Figure) -> float:
    assert figure.low is not None
    assert figure.high is not None
    return figure.high - figure.low


def test_of_many_matches_a_part_gives_intervals_as_wide_as_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = synthetic(12_000, 3), synthetic(12_000, 3)
    for pair in (None, np.arange(12_000) // 2):
        monkeypatch.setattr(bootstrap, "MOST_RESAMPLED", 100_000)
        whole = negotiation(replace(few, pair=pair), 0).columns
        monkeypatch.setattr(bootstrap, "MOST_RESAMPLED", 5_500)
        part = negotiation(replace(many, pair=pair), 0).columns
        for name in ("score_mean", "agreed_score_mean", "words_mean", "above_score_mean"):
            a, b = whole[name], part[name]
            assert (a.value, a.n) == (b.value, b.n)  # the figure itself is that of all
            assert _width(b) == pytest.approx(_width(a), rel=0.15)
            assert b.low < b.value < b.high  # type: ignore[operator]


def test_a_figure_of_few_matches_among_many_has_no_interval_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    table = synthetic(12_000, 3)
    monkeypatch.setattr(bootstrap, "MOST_RESAMPLED", 5_500)
    deals = np.arange(12_000) % 1_000 == 0  # 12, of which a part has few or none
    few = negotiation(replace(table, agreed=deals), 0).columns["agreed_score_mean"]
    assert few.n >= LEAST
    assert few.low is None
    assert few.no_interval is not None


def test_a_model_that_is_rare_among_many_matches_has_an_interval_of_its_own_matches() -> None:
    table = synthetic(12_000, 4)
    rare = np.zeros((12_000, 2), np.int64)
    rare[:40, 0] = 1
    matches = replace(table, player=rare, players=("a", "b"))
    [part] = [each for each in negotiation(matches, 0).parts if each.player == "b"]
    score = part.columns["score_mean"]
    own = table.utility[:40, 0]
    assert score.n == 40
    assert _width(score) == pytest.approx(2 * 1.96 * own.std() / 40**0.5, rel=0.15)


def test_a_ratio_of_means_is_drawn_over_matches_of_both_and_is_none_of_nothing() -> None:
    rng = np.random.default_rng(1)
    base = rng.choice([0.0, 0.0, 0.0, 6.0], 500)
    better = rng.choice([0.0, 6.0], 500)
    found = ratio_figure(better, base)
    assert found.value == pytest.approx(better.mean() / base.mean())
    assert found.low is not None
    assert found.high is not None
    assert found.low < 2 < found.high  # the truth
    assert found == ratio_figure(better, base)
    same = ratio_figure(base, base)
    assert same == Figure(1, 1, 1, 500)  # the same matches are drawn of both
    doubled = ratio_figure(2 * base, base)
    assert doubled.value == pytest.approx(2)
    assert ratio_figure(better, np.zeros(500)) == Figure(None)
    assert ratio_figure(better, -base) == Figure(None)
    seldom = np.zeros(500)
    seldom[0] = 6
    assert ratio_figure(better, seldom).no_interval == NEAR_ZERO  # without that match there would be no ratio
    assert ratio_figure(better[:9], base[:9] + 1).no_interval == FEW_MATCHES
    assert ratio_figure(better[:18], base[:18] + 1, np.arange(18) // 2).no_interval == FEW_SEEDS
    with pytest.raises(ValueError, match="expected the same matches"):
        ratio_figure(better, base[:-1])
