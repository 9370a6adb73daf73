"""The one scripted player that takes every seat of every game."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from app.core.errors import Invalid
from app.matches.engine import apply, replay, start, step
from app.players import make_player
from app.players.base import PlayerSpec
from app.players.scripted.taboo import clues

SPEC = PlayerSpec("scripted", "baseline")


def play(game, seed, *manners, **config):
    """A whole match of scripted players in these manners, and what the first seat said."""
    players = [make_player(PlayerSpec("scripted", manner, {"manner": manner})) for manner in manners]
    match, said = replay([start(game, config, seed)]), []
    while (seat := match.to_move) is not None:
        text = players[seat].choose(match.view(seat), random.Random(f"{seed}/{match.ply}"))
        said += [text] if seat == 0 else []
        for event in step(match, seat, text):
            match = apply(match, event)
    return match, said


@pytest.mark.parametrize("game", ["negotiation", "taboo"])
@pytest.mark.parametrize("seed", range(25))
def test_it_plays_both_seats_of_a_whole_match_without_a_refusal(game, seed):
    match, _ = play(game, seed, "plain", "plain")
    assert match.violations == 0
    assert match.ended.reason in {"deal", "no deal", "attacker wins", "defender wins", "tied game"}


def test_an_unknown_option_is_refused_by_name():
    with pytest.raises(Invalid, match="expected manner, got temper"):
        make_player(PlayerSpec("scripted", "baseline", {"temper": "calm"}))


def test_an_unknown_manner_is_refused():
    with pytest.raises(Invalid, match="manner: expected plain or casual or careless, got 'rude'"):
        make_player(PlayerSpec("scripted", "baseline", {"manner": "rude"}))


def test_a_casual_negotiator_closes_deals_with_a_plain_one_in_words_of_its_own():
    deals, said = 0, []
    for seed in range(40):
        match, texts = play("negotiation", seed, "casual", "plain")
        said += texts
        deals += match.ended.reason == "deal"
    assert deals >= 36
    assert sum(text.startswith("[message]") and text == text.lower() for text in said) > 40


def test_a_casual_attacker_mixes_small_talk_with_clues_and_never_says_the_word():
    reasons, clueless = Counter(), 0
    for seed, word in enumerate(clues.table()):
        match, texts = play("taboo", seed, "casual", "plain", word=word)
        clueless += sum(not clues.beliefs([text]) for text in texts)
        reasons[match.ended.reason] += 1
    assert set(reasons) == {"attacker wins", "defender wins", "tied game"}
    assert min(reasons.values()) > 30
    assert clueless > 40


def test_careless_negotiators_play_by_the_rules_and_seldom_come_to_a_deal():
    reasons = []
    for seed in range(200):
        match, _ = play("negotiation", seed, "careless", "careless")
        assert match.violations == 0
        reasons.append(match.ended.reason)
    assert set(reasons) == {"deal", "no deal"}
    assert 5 <= reasons.count("deal") <= 60


def test_a_role_without_a_baseline_is_refused_by_name():
    view = replay([start("taboo", {}, 1)]).view(0)
    with pytest.raises(Invalid, match="got umpire of taboo"):
        make_player(SPEC).choose(replace(view, role="umpire"), random.Random(0))
