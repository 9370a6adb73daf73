"""Intervals: the same for the same matches, and as often right as they say."""

import random
import time

import numpy as np
import pytest

from app.analysis.bootstrap import Figure, mean_figure
from app.analysis.matches import Matches, Row, of_rows
from app.analysis.metrics import negotiation

AGREED, MEAN = 0.6, 5.0  # of the deals; so 3 over all


def synthetic(number: int, seed: int) -> Matches:
    rng = random.Random(seed)
    rows = []
    for _ in range(number):
        agreed = rng.random() < AGREED
        first, second = (rng.randrange(11), rng.randrange(11)) if agreed else (0, 0)
        words = rng.randrange(200)
        rows.append(Row((first, second), ("a", "a"), "deal" if agreed else "no deal", rng.randrange(2, 30), words))
        rows[-1] = rows[-1]._replace(agreed=agreed, pareto=False)
    return of_rows(rows)


def test_the_same_matches_have_the_same_intervals() -> None:
    assert negotiation(synthetic(200, 1), 0) == negotiation(synthetic(200, 1), 0)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    truth = {"score_mean": AGREED * MEAN, "agreement_rate": AGREED, "agreed_score_mean": MEAN, "words_mean": 99.5}
    held = dict.fromkeys(truth, 0)
    for seed in range(120):
        columns = negotiation(synthetic(150, seed), 0).columns
        for name, expected in truth.items():
            figure = columns[name]
            assert figure.low is not None
            assert figure.high is not None
            held[name] += figure.low <= expected <= figure.high
    # 95 % of 120 is 114, with a standard deviation of 2.4.
    assert {name: times for name, times in held.items() if not 104 <= times <= 120} == {}


def test_an_interval_is_as_wide_as_theory_says() -> None:
    values = np.array([n % 11 for n in range(2200)], float)
    figure = mean_figure(values)
    assert figure.value == pytest.approx(values.mean())
    assert figure.low is not None
    assert figure.high is not None
    assert figure.high - figure.low == pytest.approx(2 * 1.96 * values.std() / len(values) ** 0.5, rel=0.1)


def test_the_mean_of_nothing_and_of_one_match_has_no_interval() -> None:
    assert mean_figure(np.array([])) == Figure(None)
    assert mean_figure(np.array([4.0])) == Figure(4)


def test_a_round_of_a_thousand_matches_takes_a_moment() -> None:
    matches = synthetic(1000, 1)
    began = time.process_time()
    negotiation(matches, 0)
    assert time.process_time() - began < 1  # about 0.1 s; the rest is for a busy machine
