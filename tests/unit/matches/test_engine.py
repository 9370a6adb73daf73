"""A match is the fold of its events: replay, step, and what the log says when things go wrong."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import Invalid, NotFound
from app.games import GAMES
from app.games.base import Event
from app.matches import engine
from app.matches.events import RESERVED, Aborted, Ended, LogEvent, Resigned, Violated, from_json, kind_of, to_json

CONFIGS = {
    "negotiation": {"objective": "self", "counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]], "first": 0},
    "taboo": {"word": "candle", "max_turns": 3},
}
TEXTS = st.one_of(
    st.text(max_size=80),
    st.sampled_from(["[message] hi", "[message] ok", "candle", "I know the word! It is candle", "\0", "[END]"]),
    st.builds("[propose] ({} books, {} hats, {} balls)".format, *[st.integers(0, 3)] * 3),
)


def begin(game: str) -> tuple[list[LogEvent], engine.Match]:
    log: list[LogEvent] = [engine.start(game, CONFIGS.get(game, {}), seed=7)]
    return log, engine.replay(log)


@given(st.sampled_from(sorted(GAMES)), st.lists(TEXTS, max_size=20), st.booleans())
def test_the_state_is_the_fold_of_the_stored_events(game: str, texts: list[str], by_model: bool) -> None:
    log, match = begin(game)
    for text in texts:
        if match.to_move is None:
            break
        for event in engine.step(match, match.to_move, text, by_model=by_model):
            match = engine.apply(match, event)
            log.append(event)
    stored = [to_json(event) for event in log]
    assert engine.replay(from_json(raw) for raw in stored) == match
    assert [to_json(from_json(raw)) for raw in stored] == stored
    assert (match.ended is None) == (match.to_move is not None)
    assert match.ply == sum(isinstance(event, Event) for event in log)
    assert match.violations == sum(isinstance(event, Violated) for event in log)


@given(st.sampled_from(sorted(GAMES)), st.integers(0, 2**62))
def test_the_same_seed_starts_the_same_match(game: str, seed: int) -> None:
    assert engine.start(game, {}, seed) == engine.start(game, {}, seed)


@given(st.sampled_from(sorted(GAMES)), st.integers(0, 2**62))
def test_a_match_begins_where_its_log_does(game: str, seed: int) -> None:
    for config in ({}, CONFIGS.get(game, {})):
        started, match = engine.begin(game, config, seed)
        assert engine.replay([from_json(to_json(started))]) == match


@given(st.sampled_from(sorted(GAMES)), st.lists(TEXTS, max_size=20), st.booleans())
def test_a_match_advances_to_where_its_events_lead(game: str, texts: list[str], by_model: bool) -> None:
    log, match = begin(game)
    for text in texts:
        if match.to_move is None:
            break
        events, match = engine.advance(match, match.to_move, text, by_model=by_model)
        log += events
        assert engine.replay(log) == match


def test_a_models_fifth_bad_move_in_a_row_aborts_the_match() -> None:
    log, match = begin("negotiation")
    for attempt in range(5):
        events = engine.step(match, 0, "nonsense", by_model=True)
        assert isinstance(events[0], Violated)
        assert len(events) == (3 if attempt == 4 else 1)
        for event in events:
            match = engine.apply(match, event)
    aborted = events[1]
    assert isinstance(aborted, Aborted)
    assert (aborted.fault, aborted.seat) == ("model", 0)
    assert match.ended is not None
    assert (match.ended.reason, match.ended.utilities) == ("aborted", (0, 0))
    assert match.to_move is None
    assert log


def test_a_good_move_forgives_the_bad_ones_before_it() -> None:
    _, match = begin("negotiation")
    for text in [*["nonsense"] * 4, "[message] hello"]:
        for event in engine.step(match, 0, text, by_model=True):
            match = engine.apply(match, event)
    assert match.refused == ()
    assert match.violations == 4
    assert match.to_move == 1


def test_a_person_may_be_refused_as_often_as_it_takes() -> None:
    _, match = begin("negotiation")
    for _ in range(20):
        (event,) = engine.step(match, 0, "nonsense")
        match = engine.apply(match, event)
    assert match.to_move == 0


def test_leaving_ends_the_match_and_nobody_scores() -> None:
    _, match = begin("taboo")
    for event in engine.resign(match, 1):
        match = engine.apply(match, event)
    assert isinstance(match.stopped, Resigned)
    assert match.ended == Ended("resigned", None, (0, 0))
    assert match.view(0).to_move is None


def test_a_match_that_is_broken_off_shows_what_was_hidden_until_the_end() -> None:
    _, match = begin("negotiation")
    for seat, text in ((0, "[message] hi"), (1, "[propose] (0 books, 0 hats, 0 balls)")):
        for event in engine.step(match, seat, text):
            match = engine.apply(match, event)
    for event in engine.resign(match, 0):
        match = engine.apply(match, event)
    assert match.view(0).transcript[-1].text == "[propose] (0 books, 0 hats, 0 balls)"
    assert (match.view(0).to_move, match.view(0).may) == (None, ())


def test_a_match_of_taboo_that_is_broken_off_tells_the_word() -> None:
    _, match = begin("taboo")
    assert "word" not in match.view(1).facts
    for event in engine.resign(match, 1):
        match = engine.apply(match, event)
    assert match.view(1).facts["word"] == "candle"


@pytest.mark.parametrize("text", ["a\0b", "\x1b[31m", "\x85", "\ud800"])
def test_control_characters_are_refused_and_never_stored(text: str) -> None:
    _, match = begin("taboo")
    (event,) = engine.step(match, 0, text)
    assert isinstance(event, Violated)
    assert "cannot be shown (U+" in event.reason
    event.text.encode()
    assert "\0" not in event.text


@pytest.mark.parametrize("text", ["🙂👍🏽", "line\nline", "tab\there", "你好", "שלום", "<b>hi</b>", "=1+1"])
def test_what_people_really_type_is_taken_as_it_is(text: str) -> None:
    _, match = begin("taboo")
    (event,) = engine.step(match, 0, text)
    assert isinstance(event, Event)
    assert event.text == text


def test_the_wrong_seat_cannot_step() -> None:
    _, match = begin("taboo")
    with pytest.raises(Invalid, match="expected seat 0 to move, got seat 1"):
        engine.step(match, 1, "hello")


def test_a_log_has_one_beginning_and_nothing_after_its_end() -> None:
    log, match = begin("taboo")
    with pytest.raises(Invalid, match="begin with a started event"):
        engine.replay([])
    with pytest.raises(Invalid, match="begin with a started event"):
        engine.replay([Resigned(0)])
    with pytest.raises(Invalid, match="one beginning"):
        engine.apply(match, log[0])
    with pytest.raises(Invalid, match="nothing after the end"):
        engine.replay([*log, *engine.resign(match, 0), Resigned(1)])


def test_an_unknown_game_is_named() -> None:
    with pytest.raises(NotFound, match=f"expected {' or '.join(GAMES)}, got 'chess'"):
        engine.start("chess", {}, 1)


@pytest.mark.parametrize("raw", [{"v": 2, "kind": "resigned", "seat": 0}, {"kind": "resigned", "seat": 0}])
def test_an_event_of_another_version_is_refused(raw: dict[str, object]) -> None:
    with pytest.raises(Invalid, match="expected version 1"):
        from_json(raw)


def test_a_damaged_event_is_refused() -> None:
    with pytest.raises(Invalid, match="expected the fields of version 1"):
        from_json({"v": 1, "kind": "resigned"})


def test_no_game_names_a_move_like_an_event_around_it() -> None:
    rng = random.Random(3)
    for name, game in GAMES.items():
        state = game.initial(game.config(CONFIGS.get(name, {})), rng)
        assert not {move["kind"] for move in game.view(state, game.to_move(state) or 0).may} & RESERVED
    assert kind_of(Resigned(0)) == "resigned"
