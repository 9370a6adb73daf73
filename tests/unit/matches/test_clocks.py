"""Which clock of a match runs out first, and when that ends it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.core.errors import Invalid
from app.matches import engine
from app.matches.clocks import NO_CLOCKS, Clocks, Deadline, next_deadline
from app.matches.events import Ended, TimedOut, from_json, to_json

START = datetime(2030, 1, 1, 12, tzinfo=UTC)
CONFIG = {"counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]], "first": 1}


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_without_clocks_nothing_ever_runs_out() -> None:
    assert next_deadline(NO_CLOCKS, START, after(500), True) is None
    assert NO_CLOCKS.to_json() is None


def test_the_clock_that_runs_out_first_decides() -> None:
    clocks = Clocks(turn=60, match=100)
    assert next_deadline(clocks, START, START, True) == Deadline(after(60), "turn", 60)
    assert next_deadline(clocks, START, after(39), True) == Deadline(after(99), "turn", 60)
    assert next_deadline(clocks, START, after(41), True) == Deadline(after(100), "match", 100)


def test_a_models_turn_has_no_turn_clock() -> None:
    assert next_deadline(Clocks(turn=60), START, START, False) is None
    assert next_deadline(Clocks(turn=60, match=100), START, START, False) == Deadline(after(100), "match", 100)


def test_a_move_that_was_sent_in_time_may_be_a_second_on_its_way() -> None:
    deadline = Deadline(after(60), "turn", 60)
    assert [deadline.passed(after(seconds)) for seconds in (59, 60, 60.9, 61)] == [False, False, False, True]


def test_what_is_left_is_told_beside_the_moment_and_never_below_nothing() -> None:
    deadline = Deadline(after(60), "turn", 60)
    moment = "2030-01-01T12:01:00.000Z"
    assert deadline.to_json(after(47.5)) == {"deadline": moment, "of": "turn", "left": 12.5, "total": 60}
    assert deadline.to_json(after(90)) == {"deadline": moment, "of": "turn", "left": 0.0, "total": 60}


@pytest.mark.parametrize("raw", [{"turn": 0}, {"turn": -3}, {"match": True}, {"match": "60"}, {"hour": 1}])
def test_a_clock_of_no_seconds_is_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=r"^clocks"):
        Clocks.from_json(raw)


@pytest.mark.parametrize(("clock", "seat"), [("turn", 1), ("match", None)])
def test_a_clock_that_ran_out_ends_the_match_for_nobody(clock: str, seat: int | None) -> None:
    started = engine.start("negotiation", CONFIG, 1, clocks=Clocks(turn=60, match=600))
    match = engine.replay([started])
    events = engine.time_out(match, clock)
    assert events[0] == TimedOut(seat, clock)
    assert isinstance(events[1], Ended)
    assert (events[1].reason, events[1].winner, events[1].utilities) == ("timeout", None, (0, 0))
    again = engine.replay(from_json(to_json(event)) for event in (started, *events))
    assert again.over
    assert again.to_move is None
    assert again.clocks == Clocks(turn=60, match=600)
