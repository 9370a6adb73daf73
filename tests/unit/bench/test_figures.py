import math
from dataclasses import replace

import pytest

from bench.figures import Check, Move, Row, percentile, percentiles, shares, verify

CLEAN = Check(lost=0, doubled=0, gaps=0, strangers=0)
SENT: set[Move] = {("m", "a"), ("m", "b")}
HEARD = {("m", "a"): 1, ("m", "b"): 3}


def log(*changes: tuple[int, Row | None]) -> list[Row]:
    """A match of two moves and their replies, with rows put in the place of others or taken out."""
    rows: list[Row | None] = [
        Row("m", 0, False, 0, None),
        Row("m", 1, True, 0, "a"),
        Row("m", 2, True, 1, None),
        Row("m", 3, True, 2, "b"),
        Row("m", 4, True, 3, None),
        Row("m", 5, False, 4, None),
    ]
    for number, row in changes:
        rows[number] = row
    return [row for row in rows if row is not None]


def test_a_log_that_holds_what_was_acknowledged_is_clean() -> None:
    assert verify(log(), SENT, HEARD) == CLEAN
    assert verify(log(), SENT, HEARD).clean


def test_a_move_that_got_no_answer_may_be_in_the_log_or_not() -> None:
    assert verify(log(), SENT, {("m", "a"): 1}).clean
    assert verify(log(), SENT | {("m", "c")}, HEARD).clean


def test_an_acknowledged_move_that_is_not_there_is_lost() -> None:
    assert verify(log()[:3], SENT, HEARD) == replace(CLEAN, lost=1)
    assert verify([], SENT, HEARD) == replace(CLEAN, lost=2)


def test_a_move_at_another_ply_than_was_acknowledged_is_lost() -> None:
    assert verify(log(), SENT, HEARD | {("m", "b"): 5}) == replace(CLEAN, lost=1)


def test_a_move_that_is_there_twice_is_doubled() -> None:
    again = [*log()[:5], Row("m", 5, True, 4, "a")]
    assert verify(again, SENT, {("m", "b"): 3}) == replace(CLEAN, doubled=1)


def test_a_move_of_another_match_is_no_copy() -> None:
    rows = [*log(), Row("n", 0, True, 0, "a")]
    assert verify(rows, SENT | {("n", "a")}, HEARD | {("n", "a"): 1}).clean


def test_a_move_that_nobody_sent_is_a_stranger() -> None:
    assert verify(log(), {("m", "a")}, {("m", "a"): 1}) == replace(CLEAN, strangers=1)


@pytest.mark.parametrize(
    "change",
    [
        (2, None),
        (0, None),
        (4, Row("m", 5, True, 3, None)),
        (2, Row("m", 2, True, 2, None)),
        (2, Row("m", 2, False, 1, None)),
    ],
    ids=["no reply", "no start", "a seq twice", "a ply left out", "a reply that is no move"],
)
def test_a_log_with_something_left_out_has_a_gap(change: tuple[int, Row | None]) -> None:
    assert verify(log(change), SENT, HEARD) == replace(CLEAN, gaps=1)


def test_a_percentile_is_a_value_that_was_measured() -> None:
    assert percentile(list(range(1, 101)), 0.95) == 95
    assert percentile([3.0, 9.0], 0.5) == 3.0
    assert percentile([3.0, 9.0], 0.99) == 9.0
    assert percentile([7.0], 0.5) == 7.0
    assert math.isnan(percentile([], 0.5))


def test_percentiles_need_no_order() -> None:
    assert percentiles([4, 1, 3, 2]) == {"p50": 2, "p95": 4, "p99": 4, "max": 4}


def test_values_are_parted_by_the_moment_that_they_belong_to() -> None:
    timed = [(0.0, 1.0), (1.0, 2.0), (1.9, 3.0), (2.0, 4.0), (3.5, 5.0)]
    assert shares(timed, [(1, 2), (3, 4)]) == ([1.0, 4.0], [2.0, 3.0, 5.0])
    assert shares([], [(1, 2)]) == ([], [])
