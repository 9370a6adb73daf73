"""Above the average: strictly, whatever binary fractions make of it, and with the rule of strict competition."""

import numpy as np

from app.rounds.above_average import above_average


def test_only_strict_competition_keeps_a_deal_of_nothing_to_nothing() -> None:
    utility, agreed = np.array([[0.0, 0.0], [1.5, -1.5]]), np.array([True, True])
    assert above_average(utility, agreed, -1).tolist() == [[True, True], [True, False]]
    assert above_average(utility, agreed, -0.5).tolist() == [[False, False], [True, False]]


def test_a_score_that_is_the_average_is_not_above_it() -> None:
    same = np.full((7, 2), 0.1)
    assert not above_average(same, np.ones(7, bool), 0.1).any()
    thirds = np.array([[0.1, 0.2], [0.3, 0.2]])  # their mean is 0.2, though not in binary
    assert above_average(thirds, np.ones(2, bool), 0.1).tolist() == [[False, False], [True, False]]


def test_of_no_matches_none_is_above_the_average() -> None:
    assert above_average(np.zeros((0, 2)), np.zeros(0, bool), 0).shape == (0, 2)
