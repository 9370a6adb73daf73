"""Leaderboards of more players than are shown."""

from dataclasses import replace

import pytest

from app.analysis.leaderboard import MOST_PLAYERS, Leaderboard, leaderboard
from app.analysis.ratings import Neighbours
from app.analysis.results import FIRST, ResultLine, results_of


def _of_many() -> Leaderboard:
    """Forty-two players in a ring, of whom the last two have played less, and one who failed all matches."""
    names = [f"player {number}" for number in range(MOST_PLAYERS + 2)]
    lines = [
        ResultLine((name, names[place - 1]), 0, ((0, 0), (0, 1)), FIRST, 1 if place > MOST_PLAYERS else 3, (6, 2))
        for place, name in enumerate(names)
    ]
    faults = {"player 0": (1, 0), names[-1]: (0, 2), "failing": (5, 0)}
    return leaderboard("negotiation", 0.0, results_of(lines), faults, (0.0, 10.0), {})


def test_who_is_left_out_is_not_listed() -> None:
    board = _of_many()
    assert len(board.names) == MOST_PLAYERS
    assert board.left_out == 3
    assert not {"player 41", "failing"} & {*board.names}


def test_standings_count_the_matches_with_those_who_are_left_out() -> None:
    standing = _of_many().standings["player 0"]  # three against player 41, three against player 1, and one broken off
    assert standing.seats == 7
    assert standing.played == pytest.approx(6 / 7)


def test_further_matches_cost_the_mean_price_of_the_two() -> None:
    board = replace(_of_many(), prices={"player 1": 0.02, "player 2": 0.00123})
    order = Neighbours("player 1", "player 2", 1.0, -1.0, 3.0, 0.8, 500)
    assert board.cost_to_settle(order) == 5.3
    assert board.cost_to_settle(order._replace(more_matches=None)) is None
    assert board.cost_to_settle(order._replace(behind="people")) is None
