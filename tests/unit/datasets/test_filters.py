"""What each filter keeps, against lists made by hand."""

from collections import Counter

import numpy as np
import pytest

from app.datasets.filters import (
    ABOVE_AVG,
    ABOVE_AVG_NONZERO,
    ALL,
    BOTH,
    MODELS,
    NONZERO,
    PEOPLE,
    compared_with,
    is_of,
    keeps,
    may_train,
)

K, _ = True, False  # kept, or not

#            utilities  agreed
SELF = [((7, 4), True), ((0, 10), True), ((0, 0), False), ((5, 5), True)]  # mean 31 / 8 = 3.875
COOP = [((11, 11), True), ((10, 10), True), ((0, 0), False), ((5, 5), True)]  # mean 6.5
COMP = [((3, -3), True), ((0, 0), True), ((0, 0), False), ((-6, 6), True)]  # mean 0
HALF = [((9, 7.5), True), ((5, 10), True), ((0, 0), False), ((4.5, 4.5), True)]  # mean 5.0625
RIVAL = [((5, 0.5), True), ((-5, 10), True), ((0, 0), False), ((0, 0), True)]  # λ = −0.5, mean 1.3125
BELOW = [((-2, -1), True), ((-4, -5), True), ((0, 0), False), ((-1, -1), True)]  # a mean below 0: −1.75

CASES = [
    (ABOVE_AVG, SELF, 0, [[K, K], [_, K], [_, _], [K, K]]),
    (NONZERO, SELF, 0, [[K, K], [_, K], [_, _], [K, K]]),
    (ABOVE_AVG, COOP, 1, [[K, K], [K, K], [_, _], [_, _]]),
    (NONZERO, COOP, 1, [[K, K], [K, K], [_, _], [K, K]]),
    (ABOVE_AVG, COMP, -1, [[K, _], [K, K], [_, _], [_, K]]),  # a deal of 0 to 0 is kept, no deal is not
    (NONZERO, COMP, -1, [[K, _], [K, K], [_, _], [_, K]]),
    (ABOVE_AVG, HALF, 0.5, [[K, K], [_, K], [_, _], [_, _]]),
    (NONZERO, HALF, 0.5, [[K, K], [K, K], [_, _], [K, K]]),
    (ABOVE_AVG, RIVAL, -0.5, [[K, _], [_, K], [_, _], [_, _]]),  # only λ = −1 keeps a deal of 0 to 0
    (NONZERO, RIVAL, -0.5, [[K, K], [_, K], [_, _], [_, _]]),
    (ABOVE_AVG, BELOW, -0.9, [[_, K], [_, _], [K, K], [K, K]]),  # above a mean below 0, and so below 0 themselves
    (NONZERO, BELOW, -0.9, [[_, _], [_, _], [_, _], [_, _]]),
    (ALL, BELOW, -0.9, [[K, K]] * 4),
    (ALL, COMP, -1, [[K, K]] * 4),
]


@pytest.mark.parametrize(("name", "matches", "lam", "by_hand"), CASES)
def test_a_filter_keeps_what_was_worked_out_by_hand(name: str, matches: list, lam: float, by_hand: list) -> None:
    utilities, agreed = np.array([u for u, _ in matches], float), np.array([a for _, a in matches])
    assert keeps(name, utilities, agreed, utilities.mean(), lam).tolist() == by_hand


def test_a_score_of_exactly_the_mean_or_of_exactly_0_is_not_kept() -> None:
    thirds, agreed = np.array([[0.1, 0.2], [0.3, 0.2]]), np.array([True, True])  # their mean is 0.2, not in binary
    assert keeps(ABOVE_AVG, thirds, agreed, thirds.mean(), 0.1).tolist() == [[_, _], [K, _]]
    assert keeps(NONZERO, np.zeros((1, 2)), np.array([True]), 0, 1).tolist() == [[_, _]]


def test_deals_are_compared_with_deals_however_few_there_are() -> None:
    utilities = np.array([[6, 4], [8, 2], [0, 0], [0, 0], [0, 0]], float)  # the mean of all is 2, of deals 5
    agreed = np.array([True, True, False, False, False])
    scores = Counter(utilities.ravel().tolist())
    compared = compared_with(ABOVE_AVG_NONZERO, scores)
    assert compared == Counter({2: 1, 4: 1, 6: 1, 8: 1})
    assert keeps(ABOVE_AVG_NONZERO, utilities, agreed, 5, 0).tolist() == [[K, _], [K, _], *[[_, _]] * 3]
    assert keeps(ABOVE_AVG, utilities, agreed, 2, 0).tolist() == [[K, K], [K, _], *[[_, _]] * 3]
    for name in (ABOVE_AVG, NONZERO, ALL):
        assert compared_with(name, scores) == scores


def test_winners_of_taboo_are_above_the_mean_and_losers_and_rule_breakers_are_not() -> None:
    utilities = np.array([[1, -1], [-1, 1], [-1, 0], [0, 0]], float)  # attacker, defender, broken rule, tie: mean −1/8
    above = keeps(ABOVE_AVG, utilities, np.zeros(4, bool), utilities.mean(), 0)
    assert above.tolist() == [[K, _], [_, K], [_, K], [K, K]]
    assert keeps(NONZERO, utilities, np.zeros(4, bool), 0, 0).tolist() == [[K, _], [_, K], [_, _], [_, _]]


def test_a_person_is_trained_on_only_after_having_agreed() -> None:
    assert [may_train("person", consent, "live") for consent in (True, False, None)] == [True, False, False]
    assert may_train("person", None, "import")  # whoever published it has asked
    assert not may_train("person", False, "import")
    assert may_train("model", None, "selfplay")


def test_a_source_says_whose_moves_are_meant() -> None:
    assert [[is_of(source, kind) for kind in ("person", "model")] for source in (PEOPLE, MODELS, BOTH)] == [
        [True, False], [False, True], [True, True],
    ]  # fmt: skip
