"""What the benchmark's players say, played out against the scripted player without a server."""

import random
from typing import Any

import pytest

from app.matches.engine import apply, replay, start, step
from app.matches.live import turn_rng
from app.players import make_player
from app.players.base import PlayerSpec
from bench.talk import CONFIG, MOVES_A_MATCH, ROLE, SAY, TURNS, first_config, small_talk


def client_moves(game: str, config: Any, seed: int) -> int:
    """How many moves the client makes in a match, none of which may be refused."""
    scripted, rng = make_player(PlayerSpec("scripted", "baseline")), random.Random(seed)
    match = replay([start(game, dict(config), seed)])
    client = match.game.roles.index(ROLE[game]) if ROLE[game] else seed % 2
    made = 0
    while (seat := match.to_move) is not None:
        view = match.view(seat)
        text = SAY[game](rng, view.may) if seat == client else scripted.choose(view, turn_rng(seed, seat, match.ply, 0))
        made += seat == client
        for event in step(match, seat, text):
            match = apply(match, event)
        assert match.violations == 0, text
    return made


def test_a_match_of_taboo_goes_on_until_its_last_turn() -> None:
    assert [client_moves("taboo", CONFIG["taboo"], seed) for seed in range(3)] == [TURNS] * 3


def test_a_negotiation_has_about_as_many_moves_as_matches_are_made_for() -> None:
    moves = [client_moves("negotiation", CONFIG["negotiation"], seed) for seed in range(8)]
    assert sum(moves) / len(moves) >= MOVES_A_MATCH["negotiation"] - 1


@pytest.mark.parametrize("game", sorted(SAY))
def test_the_first_matches_of_the_clients_do_not_all_end_at_once(game: str) -> None:
    rng = random.Random(1)
    assert len({client_moves(game, first_config(game, rng), seed) for seed in range(6)}) > 2


def test_hardly_anything_is_said_twice() -> None:
    rng = random.Random(1)
    assert len({small_talk(rng) for _ in range(3000)}) > 2990
