"""What a page says of how a move was written, and when a model's reply is due."""

from datetime import UTC, datetime, timedelta

import pytest

from app.core.errors import Invalid
from app.matches.move_timing import read_timing, reply_timing
from app.matches.options import MatchOptions, ReplyTarget

TARGET = ReplyTarget(seconds_per_word=0.5, least=2, most=4)
ASKED = datetime(2026, 3, 1, tzinfo=UTC)


def test_what_is_known_of_a_measurement_is_kept():
    raw = {"first_input": 812.46, "typing": 3000, "sent": 5100.0, "pastes": 0, "hidden": None, "mood": "fine"}
    assert read_timing(raw) == {"first_input": 812.5, "typing": 3000, "sent": 5100.0, "pastes": 0}
    assert read_timing(None) is None


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ("3 s", "timing: expected an object, got "),
        ({"typing": "3 s"}, "timing.typing: expected a number from 0 to 604800000, got "),
        ({"typing": -1}, "timing.typing: expected a number from 0 to 604800000, got -1"),
        ({"sent": float("nan")}, "timing.sent: expected a number from 0 to 604800000, got nan"),
        ({"keys": True}, "timing.keys: expected a number from 0 to 1000000, got "),
        ({"pasted": 10**9}, "timing.pasted: expected a number from 0 to 1000000, got 1000000000"),
    ],
)
def test_what_is_no_measurement_is_refused_in_one_line(raw, told):
    with pytest.raises(Invalid) as refused:
        read_timing(raw)
    assert refused.value.message.startswith(told)
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(("words", "due"), [(1, 2), (6, 3), (60, 4)])
def test_a_reply_is_due_by_its_words_within_bounds(words, due):
    assert TARGET.seconds("word " * words) == due


def test_a_reply_that_comes_later_than_it_was_due_is_late():
    assert reply_timing(TARGET, "One two.", ASKED, ASKED + timedelta(seconds=1)) == {"target": 2, "late": 0}
    assert reply_timing(TARGET, "One two.", ASKED, ASKED + timedelta(seconds=5.5)) == {"target": 2, "late": 3.5}


def test_options_are_the_same_after_they_were_stored():
    for replaces in (None, "k3v9"):
        options = MatchOptions(TARGET, "both", 2, "hidden", 8, replaces)
        assert MatchOptions.from_json(options.to_json()) == options
        assert ("replaces" in options.to_json()) == (replaces is not None)
