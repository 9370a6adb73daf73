"""The stub of the benchmarks plays whole negotiations."""

import asyncio
from typing import cast

import pytest

from app.matches import engine
from app.players import make_player, prompts
from app.players.base import ModelPlayer, PlayerSpec
from bench import stub


@pytest.mark.parametrize("first", [0, 1])
def test_a_match_of_the_stub_ends_in_a_deal_after_eight_calls(first: int) -> None:
    async def calls_of(player: ModelPlayer) -> tuple[int, str]:
        prompt = prompts.default_prompt("negotiation")
        match, calls = engine.replay([engine.start("negotiation", {"first": first}, 3, (prompt, prompt))]), 0
        while match.to_move is not None:
            reply = await player.reply(match.view(match.to_move), prompt)
            calls += 1
            for event in engine.step(match, match.to_move, reply.text or "", by_model=True):
                match = engine.apply(match, event)
        assert match.ended is not None
        return calls, match.ended.reason

    with stub.running(0) as url:
        spec = PlayerSpec("api", "x", {"model": "m", "base_url": url, "key_env": ""})
        found = asyncio.run(calls_of(cast(ModelPlayer, make_player(spec))))
    assert found == (stub.CALLS_A_MATCH, "deal")
