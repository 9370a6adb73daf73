"""Recorded episodes: the released rule held beside a second, plain reading of it; the strict one; bad input."""

import re
from functools import lru_cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.core.errors import Invalid
from app.games.taboo.episodes import Judged, judge_episodes

REASONS = {"attacker wins", "defender wins", "attacker breaks the rules", "tied game"}


@lru_cache
def plural(word):
    from textblob.inflect import pluralize  # brings nltk, which no other process of the tests should wait for

    return pluralize(word)


def published_outcome(episode):
    """The published rule, written down as naively as it reads."""
    word = episode["target_word"].lower()
    forms = [word, word + "ing", word + "ed", plural(word)]
    forms += ['"' + form + '"' for form in forms[:4]]
    forms += ["'" + form + "'" for form in forms[:4]]
    forms += ["`" + form + "`" for form in forms[:4]]
    plies = 0
    for move in episode["history"]:
        if plies == 2 * episode["max_turns"]:
            break
        plies += 1
        text = move["content"].lower()
        uttered = False
        right = False
        for form in forms:
            if form in text:
                uttered = True
            if re.search("i know the word! it.{1,8}" + re.escape(form), text):
                right = True
        declared = re.search("i know the word! it.{1,8}", text) is not None
        if move["role"] == "defender":
            if declared:
                return ("defender wins" if right else "attacker wins"), plies
            if uttered:
                return "attacker wins", plies
        elif uttered or declared:
            return "attacker breaks the rules", plies
    return "tied game", plies


TARGETS = st.sampled_from(["cat", "Mouse", "city", "c.t", "ox", "news", "child", "İx", "merry-go-round"]) | st.text(
    min_size=1, max_size=8
).filter(str.strip)


@st.composite
def episodes(draw):
    target = draw(TARGETS)
    pieces = ["I know the word! It", "i know the word! it is", " is ", "'s ", " must be ", "\n", "`", '"', "'", "cat"]
    pieces += [target, target.upper(), target + "s", target + "ed", "con" + target, "mice", "x", "not ", " ", "oxen"]
    texts = st.lists(st.sampled_from(pieces), max_size=6).map("".join) | st.sampled_from(["", "Hello.", "Hm?"])
    moves = st.builds(
        lambda role, content: {"role": role, "content": content}, st.sampled_from(["attacker", "defender"]), texts
    )
    plain = st.builds(lambda role: {"role": role, "content": "Let us talk."}, st.sampled_from(["attacker", "defender"]))
    history = draw(st.lists(plain, max_size=4)) + draw(st.lists(moves, max_size=8))
    return {"history": history, "target_word": target, "max_turns": draw(st.integers(1, 6))}


@given(st.lists(episodes(), max_size=4))
@settings(max_examples=100, deadline=None)
def test_the_released_rule_is_the_published_one(batch):
    judged = judge_episodes(batch, "released")
    assert [(one.outcome, one.plies) for one in judged] == [published_outcome(episode) for episode in batch]


@given(st.lists(episodes(), max_size=3), st.sampled_from(["strict", "released"]))
@settings(deadline=None)
@example([], "strict")
def test_every_episode_has_an_outcome_within_its_turns(batch, rule):
    for episode, judged in zip(batch, judge_episodes(batch, rule), strict=True):
        assert judged.outcome in REASONS
        assert judged.plies <= min(len(episode["history"]), 2 * episode["max_turns"])


def play(*texts, target="cat", max_turns=5, rule="released"):
    history = [{"role": ("attacker", "defender")[n % 2], "content": text} for n, text in enumerate(texts)]
    return judge_episodes([{"history": history, "target_word": target, "max_turns": max_turns}], rule)[0]


def test_what_follows_the_verdict_is_ignored():
    assert play("It purrs.", "Concatenate?", "cat", "cat") == Judged("attacker wins", 2)
    assert play("It purrs.", "Concatenate?", "cat", "cat", rule="strict") == Judged("attacker breaks the rules", 3)


def test_moves_after_the_last_turn_are_ignored():
    assert play("Hi.", "Hi.", "cat", max_turns=1) == Judged("tied game", 2)


def test_an_episode_that_was_broken_off_is_tied_after_its_moves():
    assert play("Hi.") == Judged("tied game", 1)
    assert play() == Judged("tied game", 0)


def test_the_strict_judge_reads_a_declaration_that_the_released_rule_misses():
    assert play("It purrs.", "I know the word, it is cat") == Judged("attacker wins", 2)
    assert play("It purrs.", "I know the word, it is cat", rule="strict") == Judged("defender wins", 2)


def test_roles_are_read_from_the_moves():
    history = [{"role": "defender", "content": "Is it a cat?"}]
    assert judge_episodes([{"history": history, "target_word": "cat", "max_turns": 5}]) == [Judged("attacker wins", 1)]


GOOD = {"history": [{"role": "attacker", "content": "Hi."}], "target_word": "cat", "max_turns": 5}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, "episodes: expected a list, got {}"),
        (None, "episodes: expected a list, got None"),
        ([GOOD, 3], "episode 1: expected an object with history, got 3"),
        ([{"history": []}], "episode 0, target_word: expected it to be there, got ['history']"),
        ([GOOD | {"history": "no"}], "episode 0, history: expected a list of moves, got 'no'"),
        ([GOOD | {"history": [{}]}], "episode 0, history[0], role: expected it to be there, got []"),
        ([GOOD | {"history": ["x"]}], "episode 0, history[0]: expected an object with role, got 'x'"),
        (
            [GOOD | {"history": [{"role": "judge", "content": ""}]}],
            "episode 0, history[0], role: expected attacker or defender, got 'judge'",
        ),
        (
            [GOOD | {"history": [{"role": "attacker", "content": None}]}],
            "episode 0, history[0], content: expected text, got None",
        ),
        ([GOOD | {"target_word": " "}], "episode 0, target_word: expected a word, got ' '"),
        ([GOOD | {"target_word": ["cat"]}], "episode 0, target_word: expected a word, got ['cat']"),
        ([GOOD, GOOD | {"max_turns": "5"}], "episode 1, max_turns: expected a whole number from 1, got '5'"),
        ([GOOD | {"max_turns": True}], "episode 0, max_turns: expected a whole number from 1, got True"),
        ([GOOD | {"max_turns": 0}], "episode 0, max_turns: expected a whole number from 1, got 0"),
    ],
)
def test_a_malformed_episode_is_named_with_its_field(raw, message):
    with pytest.raises(Invalid) as refusal:
        judge_episodes(raw)
    assert refusal.value.message == message


def test_an_unknown_rule_is_refused():
    with pytest.raises(Invalid, match="rule: expected strict or released, got 'kind'"):
        judge_episodes([], "kind")
