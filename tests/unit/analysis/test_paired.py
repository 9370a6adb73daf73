"""What one model has over another: against arithmetic done by hand, and where there is nothing to say."""

import pytest

from app.analysis.bootstrap import Figure
from app.analysis.distributions import differences
from app.analysis.paired import paired
from app.games.match_table import FinishedMatch, of_rows
from tests.figures import NEGOTIATION, TABOO, negotiation

AB, BA = ("a", "b"), ("b", "a")
FEW_SEEDS = {"no_interval": "fewer than 10 seeds"}


def twice(first: tuple[int, int], second: tuple[int, int], pair: int) -> list[FinishedMatch]:
    """A game that was played from either side; the points go by seat."""
    agreed = (any(first), any(second))
    return [
        FinishedMatch(points, players, "deal" if deal else "no deal", 5, agreed=deal, pair=pair)
        for points, players, deal in zip((first, second), (AB, BA), agreed, strict=True)
    ]


def test_seeds_are_pairs_where_the_seats_were_swapped() -> None:
    rows = [*twice((7, 3), (5, 5), 40), *twice((0, 0), (2, 8), 41), *twice((6, 4), (6, 4), 42)]
    found = paired(of_rows(rows), ("a", "b"), NEGOTIATION)
    assert found is not None
    assert (found.first, found.second, found.pairing, found.pairs) == ("a", "b", "seeds", 3)
    assert list(found.differences) == [2, 3, 0]  # (4 + 0) / 2, (0 + 6) / 2, (2 - 2) / 2
    assert found.columns["score_mean"] == Figure(pytest.approx(5 / 3), n=3, **FEW_SEEDS)
    assert found.columns["agreed_score_mean"] == Figure(pytest.approx(10 / 5), n=5, **FEW_SEEDS)
    assert (found.always_first, found.leader, found.ahead()) == (None, None, (2, 0, 1))


def test_a_seed_counts_when_it_was_played_from_both_sides() -> None:
    rows = [*twice((7, 3), (5, 5), 1), *twice((9, 1), (0, 0), 2)[:1]]
    found = paired(of_rows(rows), ("a", "b"), NEGOTIATION)
    assert found is not None
    assert list(found.differences) == [2]
    assert len(paired(of_rows(rows[2:]), ("a", "b"), NEGOTIATION).differences) == 0  # type: ignore[union-attr]


def test_matches_are_pairs_where_the_seats_were_not_swapped_and_it_is_said_who_sat_first() -> None:
    rows = [FinishedMatch((points, 5), BA, "deal", 4, agreed=True) for points in range(10)]
    found = paired(of_rows(rows), ("a", "b"), NEGOTIATION)
    assert found is not None
    assert (found.pairing, found.pairs, found.always_first) == ("matches", 10, "b")
    score = found.columns["score_mean"]
    assert (score.value, score.n, score.no_interval) == (0.5, 10, None)
    assert found.leader is None


def test_who_is_ahead_follows_from_the_interval_and_turning_changes_sides() -> None:
    rows = [row for pair in range(12) for row in twice((7, 3), (4 + pair % 3, 5), pair)]
    found = paired(of_rows(rows), ("a", "b"), NEGOTIATION)
    assert found is not None
    score, turned = found.columns["score_mean"], found.turned().columns["score_mean"]
    assert found.leader == found.turned().leader == "a"
    assert (turned.value, turned.low, turned.high, turned.n) == (-score.value, -score.high, -score.low, 12)  # type: ignore[operator]
    assert [(each.low, each.high, each.number, each.player) for each in differences(found)] == [
        (1.25, 1.75, 4, "a"), (1.75, 2.25, 4, "a"), (2.25, 2.75, 4, "a"),
    ]  # fmt: skip


def test_taboo_compares_how_often_each_won() -> None:
    rows = [
        FinishedMatch((1, -1), AB, "attacker wins", 4, winner=0, pair=1),
        FinishedMatch((0, 0), BA, "tied game", 4, pair=1),
        FinishedMatch((-1, 1), AB, "defender wins", 4, winner=1, pair=2),
        FinishedMatch((-1, 1), BA, "defender wins", 4, winner=1, pair=2),
    ]
    found = paired(of_rows(rows), ("a", "b"), TABOO)
    assert found is not None
    assert found.columns["win_rate"] == Figure(0.25, n=2, **FEW_SEEDS)  # (1 + 0) / 2 and (-1 + 1) / 2
    assert found.columns["score_mean"].value == 0.5


@pytest.mark.parametrize(
    "players",
    [[("a", "a")], [AB, ("a", "c")], [AB, ("a", "a")], []],
    ids=["one against itself", "three", "one of them alone", "none"],
)
def test_there_is_no_difference_of_other_than_two(players: list[tuple[str, str]]) -> None:
    matches = of_rows([FinishedMatch((1, 2), each, "deal", 4, agreed=True) for each in players])
    assert paired(matches, matches.players or ("a", "b"), NEGOTIATION) is None


def test_figures_of_swapped_rounds_draw_seeds_and_not_matches() -> None:
    rows = [row for pair in range(9) for row in twice((7, 3), (5, 5), pair)]
    swapped, not_swapped = of_rows(rows), of_rows([row._replace(pair=None) for row in rows])
    assert negotiation(swapped, 0).columns["score_mean"] == Figure(5, n=18, **FEW_SEEDS)
    assert negotiation(not_swapped, 0).columns["score_mean"].no_interval is None
