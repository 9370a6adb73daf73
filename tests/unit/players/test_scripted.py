"""The one scripted player that takes every seat of every game."""

import random
from dataclasses import replace

import pytest

from app.errors import Invalid
from app.matches.engine import apply, replay, start, step
from app.players import make_player
from app.players.base import PlayerSpec

SPEC = PlayerSpec("scripted", "baseline")


@pytest.mark.parametrize("game", ["negotiation", "taboo"])
@pytest.mark.parametrize("seed", range(25))
def test_it_plays_both_seats_of_a_whole_match_without_a_refusal(game, seed):
    player = make_player(SPEC)
    match = replay([start(game, {}, seed)])
    while (seat := match.to_move) is not None:
        for event in step(match, seat, player.choose(match.view(seat), random.Random(f"{seed}/{match.ply}"))):
            match = apply(match, event)
    assert match.violations == 0
    assert match.ended.reason in {"deal", "no deal", "attacker wins", "defender wins", "tied game"}


def test_an_unknown_option_is_refused_by_name():
    with pytest.raises(Invalid, match=r"expected none, got 'temper'"):
        make_player(PlayerSpec("scripted", "baseline", {"temper": "calm"}))


def test_a_role_without_a_baseline_is_refused_by_name():
    view = replay([start("taboo", {}, 1)]).view(0)
    with pytest.raises(Invalid, match="got umpire of taboo"):
        make_player(SPEC).choose(replace(view, role="umpire"), random.Random(0))
