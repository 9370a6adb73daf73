"""Ratings: planted strengths are found, intervals cover them, and other libraries agree."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from app.analysis.rating_models import PRIOR, paired_wins
from app.analysis.ratings import POINTS, WINS, By, Ratings, more_matches, rate
from app.analysis.results import FIRST, SECOND, TIE, ResultLine, Results, results_of
from tests.tournaments import NAMES, centred, chances, points_won, won_and_lost

STRENGTHS = (1.0, 0.5, 0.0, -0.3, -1.2)
PARTNERS = (0.5, -0.5, 0.2, 0.0, -0.2)
SCALE = 400 / math.log(10)


def _covered(found: Ratings, truth: dict[str, float]) -> int:
    return sum(each.low <= truth[each.player] <= each.high for each in found.ratings)  # type: ignore[operator]


def _decided(players: list[tuple[int, int]], more: list[int]) -> Results:
    return results_of(
        ResultLine((NAMES[one], NAMES[other]), at, ((at, 0), (at, 1)), won, 1, (0, 0))
        for at, ((one, other), won) in enumerate(zip(players, more, strict=True))
    )


def test_intervals_cover_the_planted_strengths_in_about_95_of_100_tournaments() -> None:
    by_wins = {name: 1000 + SCALE * value for name, value in zip(NAMES, centred(STRENGTHS), strict=True)}
    by_points = {name: 4.75 + value for name, value in zip(NAMES, centred(STRENGTHS), strict=True)}
    wins = points = 0
    for seed in range(40):
        wins += _covered(rate(won_and_lost(STRENGTHS, 60, seed), WINS), by_wins)
        results = points_won(tuple(centred(STRENGTHS)), PARTNERS, 60, seed)
        points += _covered(rate(results, POINTS), by_points)
    assert 0.91 <= wins / 200 <= 0.98
    assert 0.91 <= points / 200 <= 0.98


@pytest.mark.parametrize("role", [None, FIRST, SECOND])
def test_many_matches_find_the_planted_strengths_and_their_order(role: int | None) -> None:
    found = rate(won_and_lost(STRENGTHS, 1_000, 7), WINS, role)
    assert [each.player for each in found.ratings] == list(NAMES)
    expected = 1000 + SCALE * centred(STRENGTHS)
    assert [each.value for each in found.ratings] == pytest.approx(list(expected), abs=15)
    points = rate(points_won((1, 0.5, 0, -0.5, -1), PARTNERS, 1_000, 7), POINTS, role)
    middle = {None: 4.75, FIRST: 5.0, SECOND: 4.5}[role]
    assert [each.value for each in points.ratings] == pytest.approx(
        [middle + x for x in (1, 0.5, 0, -0.5, -1)], abs=0.2
    )


def test_without_ties_strengths_are_those_of_a_logistic_regression() -> None:
    rng = np.random.default_rng(5)
    pairs = [(one, other) for one in range(4) for other in range(4) if one != other] * 20
    more = [int(rng.random() > 1 / (1 + math.exp(STRENGTHS[other] - STRENGTHS[one]))) for one, other in pairs]
    results = _decided(pairs, more)
    design = np.zeros((len(pairs), 4))
    for line, (one, other) in enumerate(pairs):
        design[line, one], design[line, other] = 1, -1
    reference = LogisticRegression(C=1 / (2 * PRIOR), tol=1e-10, max_iter=1000).fit(design, 1 - np.array(more))
    model = paired_wins(results, np.zeros(len(pairs), np.int64), 1, None)
    order = [results.players.index(name) for name in NAMES[:4]]
    assert model.strengths(np.ones((1, 1)))[0, 0, order] == pytest.approx(list(reference.coef_[0]), abs=1e-3)


def test_with_ties_strengths_make_the_results_likeliest() -> None:
    results = won_and_lost(STRENGTHS, 30, 3)
    wins = paired_wins(results, results.context, results.contexts, FIRST)

    def unlikely(values: np.ndarray) -> float:
        first, second, (favour, ties) = values[:5], values[5:10], values[10:]
        found = PRIOR * float((first**2).sum() + (second**2).sum() + ties**2)
        for (one, other), counts in zip(wins.cells, wins.wins.sum(0), strict=True):
            likely = chances(first[one] - second[other] + favour, math.exp(ties))
            found -= float(counts @ np.log(likely))
        return found

    reference = minimize(unlikely, np.zeros(12), method="BFGS").x
    found = wins.strengths(np.ones((1, results.contexts)))[0].ravel()
    assert found == pytest.approx(list(reference[:10]), abs=1e-3)


def test_points_are_those_of_a_regression_on_all_effects() -> None:
    whole = points_won((1, 0.5, 0, -0.5, -1), PARTNERS, 30, 4)
    rng = np.random.default_rng(2)
    kept = np.sort(rng.choice(len(whole.matches), 500, replace=False))  # so that nothing is balanced
    results = Results(
        whole.player[kept], whole.context[kept], whole.side[kept], whole.more[kept],
        whole.matches[kept], whole.points[kept], whole.players,
    )  # fmt: skip
    rows, points = [], []
    for place in (0, 1):
        for line in range(500):
            row = np.zeros(11 + 60)
            row[results.player[line, place]] = row[5 + results.player[line, 1 - place]] = 1
            row[10], row[11 + results.side[line, place]] = place, 1
            rows.append(row)
            points.append(results.points[line, place])
    effects = np.linalg.lstsq(np.array(rows), np.array(points), rcond=None)[0]
    found = {each.player: each.value for each in rate(results, POINTS).ratings}
    expected = dict(zip(results.players, centred(effects[:5]), strict=True))
    middle = np.mean(list(found.values()))
    assert {name: value - middle for name, value in found.items()} == pytest.approx(expected, abs=1e-6)
    left = np.array(points) - np.array(rows) @ effects
    cell = (results.player[:, 0] == 0) & (results.player[:, 1] == 1)
    other = (results.player[:, 1] == 0) & (results.player[:, 0] == 1)
    shown = next(each for each in rate(results, POINTS).cells if (each.row, each.column) == results.players[:2])
    assert shown.residual == pytest.approx(np.concatenate([left[:500][cell], left[500:][other]]).mean(), abs=1e-6)


def test_who_won_everything_has_a_finite_rating_and_stands_first() -> None:
    found = rate(_decided([(0, 1), (1, 2), (2, 0)] * 10, [FIRST, FIRST, SECOND] * 10), WINS)
    assert [each.player for each in found.ratings] == ["ada", "ben", "cleo"]
    assert all(math.isfinite(each.value) for each in found.ratings)
    assert (found.ratings[0].best_place, found.ratings[0].worst_place) == (1, 1)


def test_players_who_met_none_of_the_others_are_not_rated() -> None:
    found = rate(_decided([(0, 1), (1, 2), (3, 4)] * 10, [FIRST, TIE, FIRST] * 10), WINS)
    assert {each.player for each in found.ratings} == {"ada", "ben", "cleo"}
    assert list(found.unlinked) == ["dan", "eve"]


def test_two_players_alone_do_not_say_what_each_takes_and_what_each_leaves() -> None:
    found = rate(_decided([(0, 1)] * 20, [FIRST] * 20), POINTS)
    assert not found.ratings
    assert found.cells


@pytest.mark.parametrize("by", [WINS, POINTS])
@pytest.mark.parametrize("role", [None, FIRST, SECOND])
def test_players_are_linked_by_a_partner_whom_alone_they_have_met(by: By, role: int | None) -> None:
    lines = [
        ResultLine((one, "cleo")[:: 1 - 2 * place], at, ((at, 0), (at, 1)), more, 1, (points, points)[:: 1 - 2 * place])
        for at in range(20)
        for place in (0, 1)
        for one, more, points in (("ada", place, 6.0), ("ben", 1 - place, 4.0))
    ]
    found = rate(results_of(lines), by, role)
    if by == WINS and role is None:
        assert [each.player for each in found.ratings] == ["ada", "cleo", "ben"]
        return
    ada, ben = found.ratings
    assert (ada.player, ben.player) == ("ada", "ben")
    assert (ada.matches, ben.matches) == ((40, 40) if role is None else (20, 20))
    assert ada.low > ben.high  # type: ignore[operator]
    if by == POINTS:
        assert (ada.value, ben.value) == pytest.approx((6, 4))
    assert list(found.unlinked) == ["cleo"]


def test_who_never_had_the_role_is_a_partner_of_those_who_had_it() -> None:
    lines = [
        ResultLine((one, other), at, ((at, 0), (at, 1)), FIRST, 1, (points, 0.0))
        for at in range(20)
        for one, points in (("ada", 6.0), ("ben", 4.0))
        for other in ("cleo", "dan")
    ]
    found = rate(results_of(lines), POINTS, FIRST)
    assert {each.player: round(each.value, 6) for each in found.ratings} == {"ada": 6, "ben": 4}
    assert not found.unlinked  # cleo and dan have no match in that role


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 11), st.integers(0, 2), st.integers(0, 10)),
        max_size=14,
    ),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_any_tournament_is_rated_or_said_to_be_unlinked(
    matches: list[tuple[int, int, int, int, int]], apart: bool, points: int
) -> None:
    rng = np.random.default_rng(points)
    results = results_of(
        ResultLine(
            (NAMES[one % 2], NAMES[2 + other % 3]) if apart else (NAMES[one], NAMES[other]),
            context, ((context, 0), (context, 1)), more, 1, (float(rng.integers(11)), float(took)),
        )
        for one, other, context, more, took in matches
    )  # fmt: skip
    for by, role in itertools.product((WINS, POINTS), (None, FIRST, SECOND)):
        found = rate(results, by, role)
        rated = {each.player for each in found.ratings}
        places = (0, 1) if role is None else (role,)
        met = {results.players[at] for at in results.player[:, places].ravel()}
        assert rated | {*found.unlinked} == met
        assert not rated & {*found.unlinked}
        assert all(math.isfinite(each.value) and each.matches for each in found.ratings)


def test_few_contexts_give_ratings_without_intervals() -> None:
    found = rate(won_and_lost(STRENGTHS, 9, 1), WINS)
    assert found.no_interval == "fewer than 10 contexts"
    assert {each.low for each in found.ratings} == {None}
    assert [(each.best_place, each.worst_place) for each in found.ratings] == [(place, place) for place in range(1, 6)]


def test_a_cell_counts_ties_as_half_and_a_match_against_oneself_once() -> None:
    found = rate(_decided([(0, 1)] * 4 + [(0, 0)] * 3, [FIRST, FIRST, TIE, SECOND, *[TIE] * 3]), WINS)
    cells = {(each.row, each.column): (each.matches, each.value) for each in found.cells}
    assert cells == {("ada", "ben"): (4, 0.625), ("ben", "ada"): (4, 0.375), ("ada", "ada"): (3, 0.5)}


def test_half_the_gap_takes_four_times_the_matches() -> None:
    assert more_matches(10, 10, 100, 1.96) == 290  # 100 × (1.96² − 1), to two figures upwards
    assert more_matches(5, 10, 100, 1.96) == 1_500
    assert more_matches(0, 10, 100, 1.96) is None


def test_where_the_interval_is_hardly_beyond_0_few_matches_settle_the_order() -> None:
    assert more_matches(20, 10, 2_000, 1.96) == 1  # the interval is that of percentiles, and may still hold 0
    assert more_matches(20, 10, 100, 2.38) == 42  # what intervals of ten contexts reach to
