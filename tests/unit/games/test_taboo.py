"""Adversarial Taboo: order of play, ends, what each seat may see, and that no text breaks it."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.errors import Invalid
from app.games.base import Event, Violation
from app.games.taboo.outcomes import ATTACKER, DEFENDER
from app.games.taboo.rules import TABOO
from app.games.taboo.words import target_words

TEXTS = st.text(max_size=40) | st.sampled_from(
    ["It purrs.", "A dog?", "cat", "c-a-t", "Concatenate", "I know the word! It is cat", "i know the word, it's dog"]
)
RULES = st.sampled_from(["strict", "released"])


def begin(**config):
    return TABOO.initial(TABOO.config({"word": "cat", **config}), random.Random(1))


def play(state, *texts):
    for text in texts:
        move = TABOO.parse(state, TABOO.to_move(state), text)
        assert isinstance(move, Event), move
        state = TABOO.apply(state, move)
    return state


def ending(*texts, **config):
    outcome = TABOO.outcome(play(begin(**config), *texts))
    return outcome and (outcome.reason, outcome.winner, outcome.utilities)


# ---- Ends ---------------------------------------------------------------------


def test_the_attacker_wins_when_the_defender_says_the_word():
    assert ending("It purrs.", "You mean my cats?") == ("attacker wins", ATTACKER, (1, -1))


def test_the_attacker_wins_when_the_defender_declares_another_word():
    assert ending("It purrs.", "I know the word! It is catalog") == ("attacker wins", ATTACKER, (1, -1))


def test_the_defender_wins_with_a_right_declaration():
    assert ending("It purrs.", "I know the word! It is `cat`!") == ("defender wins", DEFENDER, (-1, 1))


def test_the_attacker_breaks_the_rules_by_saying_the_word():
    assert ending("My cat purrs.") == ("attacker breaks the rules", None, (-1, 0))


def test_the_attacker_breaks_the_rules_by_declaring():
    assert ending("I know the word! It is dog") == ("attacker breaks the rules", None, (-1, 0))


def test_nobody_wins_when_the_turns_are_used_up():
    assert ending("Hi.", "Hi.", max_turns=1) == ("tied game", None, (0, 0))
    assert ending("Hi.", "Hi.", "Hi.", max_turns=2) is None


def test_a_decision_on_the_last_move_counts():
    assert ending("Hi.", "cat", max_turns=1) == ("attacker wins", ATTACKER, (1, -1))


def test_a_denial_is_no_declaration_so_saying_the_word_in_it_loses():
    assert ending("It purrs.", "I know the word! It is not cat") == ("attacker wins", ATTACKER, (1, -1))


def test_the_released_rule_finds_the_word_within_words():
    assert ending("It purrs.", "Concatenate.", rule="released") == ("attacker wins", ATTACKER, (1, -1))
    assert ending("It purrs.", "Concatenate.") is None


def test_the_outcome_names_the_word_and_the_rule_for_analysis():
    assert TABOO.outcome(play(begin(), "cat")).facts == {"word": "cat", "rule": "strict"}


# ---- Moves --------------------------------------------------------------------


def test_the_attacker_moves_first_and_the_seats_alternate():
    state = begin()
    movers = []
    while (mover := TABOO.to_move(state)) is not None:
        movers.append(mover)
        state = play(state, "Hm.")
    assert movers == [ATTACKER, DEFENDER] * 5


@pytest.mark.parametrize("text", ["", "  ", "\n\t", "\u200b", " \u2060\ufeff "])
def test_only_a_text_that_shows_nothing_is_refused(text):
    refusal = TABOO.parse(begin(), ATTACKER, text)
    assert isinstance(refusal, Violation)
    assert refusal.code == "empty"
    assert refusal.reason.startswith("Please write something")


@pytest.mark.parametrize("text", ["?", "猫", "🐱", "0", "=1+1", "<b>"])
def test_whatever_shows_something_is_a_move(text):
    assert isinstance(TABOO.parse(begin(), ATTACKER, text), Event)


def test_every_event_carries_its_verdict():
    state = begin()
    assert TABOO.parse(state, ATTACKER, " It purrs. ") == Event("message", ATTACKER, "It purrs.", {"said": None})
    declared = TABOO.parse(state, DEFENDER, "I know the word! It is `cat`!")
    assert declared.kind == "declaration"
    assert declared.data == {"said": "cat", "guess": "cat", "right": True}
    assert json.loads(json.dumps(dict(declared.data))) == declared.data


def test_applying_and_ending_go_by_the_recorded_verdict_alone():
    state = TABOO.apply(begin(), Event("message", ATTACKER, "cat", {"said": None}))
    assert TABOO.outcome(state) is None
    state = TABOO.apply(state, Event("declaration", DEFENDER, "Hm", {"said": None, "guess": "x", "right": True}))
    assert TABOO.outcome(state).reason == "defender wins"


# ---- Views --------------------------------------------------------------------


def test_only_the_attacker_sees_the_word():
    state = play(begin(), "It purrs.")
    attacker, defender = TABOO.view(state, ATTACKER), TABOO.view(state, DEFENDER)
    assert attacker.secret == {"word": "cat"}
    assert defender.secret == {}
    assert attacker.role == "attacker"
    assert defender.role == "defender"
    assert (attacker.to_move, defender.to_move) == ("partner", "you")


def test_only_the_seat_to_move_may_move_and_only_the_defender_may_declare():
    state = begin()
    assert TABOO.view(state, ATTACKER).may == ({"kind": "message"},)
    assert TABOO.view(state, DEFENDER).may == ()
    state = play(state, "It purrs.")
    assert TABOO.view(state, ATTACKER).may == ()
    assert TABOO.view(state, DEFENDER).may == ({"kind": "message"}, {"kind": "declaration"})


def test_each_seat_counts_its_own_remaining_turns():
    state = begin(max_turns=2)
    left = []
    for text in ("Hi.", "Hi.", "Hi.", "Hi.", None):
        left.append(tuple(TABOO.view(state, seat).facts["turns_left"] for seat in (ATTACKER, DEFENDER)))
        if text:
            state = play(state, text)
    assert left == [(2, 2), (1, 2), (1, 1), (0, 1), (0, 0)]


def test_the_word_is_shown_to_both_once_the_game_is_over():
    state = play(begin(), "It purrs.", "Is it a cat?")
    for seat in (ATTACKER, DEFENDER):
        view = TABOO.view(state, seat)
        assert view.facts == {"max_turns": 5, "turns_left": 4, "word": "cat"}
        assert view.to_move is None
        assert view.may == ()


@given(st.lists(st.text(max_size=30), max_size=10), st.sampled_from(["zebra", "quartz"]), RULES)
@settings(deadline=None)
def test_the_defender_sees_the_same_whatever_the_word_is(texts, other, rule):
    first, second = begin(rule=rule), begin(rule=rule, word=other)
    for text in texts:
        if TABOO.to_move(first) is None or TABOO.to_move(second) is None:
            return
        assert TABOO.view(first, DEFENDER) == TABOO.view(second, DEFENDER)
        moves = [TABOO.parse(state, TABOO.to_move(state), text) for state in (first, second)]
        if any(isinstance(move, Violation) for move in moves):
            assert moves[0] == moves[1]
            continue
        first, second = TABOO.apply(first, moves[0]), TABOO.apply(second, moves[1])


# ---- No text breaks it ----------------------------------------------------------


@given(st.lists(TEXTS, max_size=30), st.integers(1, 4), RULES)
@settings(max_examples=150, deadline=None)
def test_no_sequence_of_texts_breaks_the_game(texts, max_turns, rule):
    state = begin(max_turns=max_turns, rule=rule)
    for text in texts:
        mover = TABOO.to_move(state)
        outcome = TABOO.outcome(state)
        assert (outcome is None) == (mover is not None)
        for seat in (ATTACKER, DEFENDER):
            view = TABOO.view(state, seat)
            assert ("word" in view.facts) == (outcome is not None)
            assert len(view.transcript) == state.ply
        if mover is None:
            break
        assert mover == state.ply % 2
        move = TABOO.parse(state, mover, text)
        if isinstance(move, Event):
            state = TABOO.apply(state, move)
    assert state.ply <= 2 * max_turns
    rebuilt = TABOO.initial(TABOO.config(state.config.to_json()), random.Random(99))
    for event in state.events:
        rebuilt = TABOO.apply(rebuilt, event)
    assert rebuilt == state


# ---- Config ---------------------------------------------------------------------


@given(st.integers())
def test_the_drawn_word_is_of_the_list_and_stays_with_the_resolved_config(seed):
    config = TABOO.config({})
    assert config.word is None
    state = TABOO.initial(config, random.Random(seed))
    assert state.word in target_words()
    assert state == TABOO.initial(TABOO.config(state.config.to_json()), random.Random(seed + 1))
    assert state == TABOO.initial(config, random.Random(seed))


def test_a_config_may_come_as_text_from_a_command_line():
    config = TABOO.config({"word": " Merry-Go-Round ", "max_turns": "7", "rule": "released"})
    assert config.to_json() == {"word": "merry-go-round", "max_turns": 7, "rule": "released"}
    assert TABOO.config(config.to_json()) == config
    assert config.model_copy(update={"word": None}).to_json() == {"max_turns": 7, "rule": "released"}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"words": "cat"}, "config of taboo: expected only max_turns, rule, word, lenient, got 'words'"),
        ({"max_turns": 0}, "max_turns: expected a whole number from 1 to 50, got 0"),
        ({"max_turns": 51}, "max_turns: expected a whole number from 1 to 50, got 51"),
        ({"max_turns": "few"}, "max_turns: expected a whole number from 1 to 50, got 'few'"),
        ({"rule": "kind"}, "rule: expected strict or released, got 'kind'"),
        ({"rule": ["strict"]}, "rule: expected strict or released, got ['strict']"),
    ],
)
def test_a_bad_setting_is_named_with_what_was_expected_and_what_came(raw, message):
    with pytest.raises(Invalid) as refusal:
        TABOO.config(raw)
    assert refusal.value.message == message


@pytest.mark.parametrize(
    "word", ["", " ", "two words", "c4t", "-cat", "cat-", "c.t", "猫", "кошка", "a" * 41, 5, ["cat"]]
)
def test_a_target_is_one_english_word(word):
    with pytest.raises(Invalid, match=r"^word: expected one English word of at most 40 letters"):
        TABOO.config({"word": word})


@pytest.mark.parametrize("word", ["cat", "café", "merry-go-round", "x"])
def test_accents_and_hyphens_are_fine_in_a_target(word):
    assert TABOO.config({"word": word}).word == word
