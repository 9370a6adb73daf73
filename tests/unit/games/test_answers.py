"""Answers in JSON: what schema each game gives, and which move an answer says."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.games import GAMES
from app.games.answers import answer_schema, move_of_answer
from app.games.base import Event, Game
from app.games.negotiation.rules import NEGOTIATION
from app.games.taboo.rules import TABOO
from app.players.prompts import has_json_form

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FORMS = st.sampled_from(["message", "proposal", "guess", "declaration", "x"])
CONTENTS = JSON_VALUES | st.fixed_dictionaries(
    {item: st.integers(-2, 9) | JSON_VALUES for item in ("book", "hat", "ball")}
)
ANSWERS = (
    st.builds(lambda form, content: json.dumps({"move": {form: content}}), FORMS, CONTENTS)
    | st.builds(json.dumps, JSON_VALUES)
    | st.text(max_size=20)
)


def state_of(game: Game[Any], *texts: str) -> Any:
    state = game.initial(game.config({}), random.Random(3))
    for text in texts:
        move = game.parse(state, game.to_move(state) or 0, text)
        assert isinstance(move, Event)
        state = game.apply(state, move)
    return state


def said_by(game: Game[Any], answer: Any, *texts: str) -> str | None:
    """The move that an answer says after these moves."""
    state = state_of(game, *texts)
    return move_of_answer(game, game.view(state, game.to_move(state) or 0), json.dumps(answer))


@pytest.mark.parametrize("game", GAMES.values(), ids=lambda game: game.name)
def test_a_game_has_words_that_ask_for_json_where_it_has_forms_of_answers(game: Game[Any]) -> None:
    view = game.view(state_of(game), game.to_move(state_of(game)) or 0)
    assert bool(game.answer_forms(view)) == has_json_form(game.name)


@settings(deadline=None)  # the first text of taboo loads the library of inflections
@given(st.sampled_from([NEGOTIATION, TABOO]), st.integers(0, 2), ANSWERS)
def test_whatever_is_answered_is_a_move_that_the_rules_can_judge_or_none(game: Any, moves: int, answer: str) -> None:
    state = state_of(game, *["[message] hello"] * moves)
    seat = game.to_move(state)
    text = move_of_answer(game, game.view(state, seat), answer)
    assert text is None or game.parse(state, seat, text)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"message": "Hello\nyou"}, "[message] Hello\nyou"),
        ({"message": " [Message] Hello"}, "[message] Hello"),
        ({"proposal": {"ball": 0, "book": 1, "hat": 2}}, "[propose] (1 books, 2 hats, 0 balls)"),
        (
            {"proposal": {"book": 99, "hat": 0, "ball": 0}},
            "[propose] (99 books, 0 hats, 0 balls)",
        ),  # the rules refuse it
        ({"proposal": {"book": 1.0, "hat": 0, "ball": 0}}, None),
        ({"proposal": {"book": True, "hat": 0, "ball": 0}}, None),
        ({"proposal": {"book": 1, "hat": 0, "ball": 0, "more": 1}}, None),
        ({"proposal": "[propose] (1 books, 2 hats, 0 balls)"}, None),
        ({"message": "Deal!", "proposal": {"book": 1, "hat": 0, "ball": 0}}, None),
        ({}, None),
    ],
)
def test_an_answer_of_a_negotiator_is_written_as_its_move(answer: Any, text: str | None) -> None:
    assert said_by(NEGOTIATION, {"move": answer}, "[message] hi", "[message] hi") == text


@pytest.mark.parametrize("texts", [(), ("Hello",)])
def test_an_answer_of_taboo_is_written_as_what_is_said_or_declared(texts: tuple[str, ...]) -> None:
    assert said_by(TABOO, {"move": {"message": " Hm. "}}, *texts) == " Hm. "
    declared = "I know the word! It is `cat`!" if texts else None
    assert said_by(TABOO, {"move": {"guess": " cat "}}, *texts) == declared
    assert said_by(TABOO, {"move": {"guess": " "}}, *texts) is None


def test_after_a_proposal_there_is_nothing_to_say() -> None:
    state = state_of(NEGOTIATION, "[message] hi", "[message] hi", "[propose] (0 books, 0 hats, 0 balls)")
    schema = json.loads(answer_schema(NEGOTIATION, NEGOTIATION.view(state, NEGOTIATION.to_move(state) or 0)))
    assert list(schema["properties"]["move"]["properties"]) == ["proposal"]
