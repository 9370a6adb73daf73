"""What one call of an API model costs in CPU, beside the OpenAI SDK's own client and a bare aiohttp request.

    python -m bench.api_call [--calls 2000] [--latency 0.2]

All three ask the same stub for the same move, in turn, with 64 and with 256 requests in flight.
"""

import argparse
import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import aiohttp
from openai import AsyncOpenAI

from app.games import find_game
from app.games.base import View
from app.players import prompts
from app.players.api import player as api_player
from app.players.base import PlayerSpec
from bench.stub import running

IN_FLIGHT = (64, 256)
_PROMPT = {"style": "full", "template": "full-1"}
Ask = Callable[[], Awaitable[Any]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.api_call", description="CPU of one call of an API model.")
    parser.add_argument("--calls", type=int, default=2000, help="of each side")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that the stub takes")
    options = parser.parse_args(arguments)
    print(f"{'in flight':>9}  {'side':8} {'CPU ms a call':>13} {'calls a second':>14} {'SDK / side':>10}")
    with running(options.latency) as url:
        for in_flight in IN_FLIGHT:
            found = asyncio.run(_measure(url, in_flight, options.calls))
            for side, (cpu, rate) in found.items():
                print(f"{in_flight:9}  {side:8} {cpu:13.3f} {rate:14.0f} {found['sdk'][0] / cpu:10.1f}")


async def _measure(url: str, in_flight: int, calls: int) -> dict[str, tuple[float, float]]:
    view = _view()
    messages: Any = prompts.messages(view, _PROMPT)
    options = {"model": "m", "base_url": url, "key_env": "", "in_flight": in_flight}
    player = api_player.make(PlayerSpec("api", "measured", options))
    sdk = AsyncOpenAI(api_key="none", base_url=url)
    connector = aiohttp.TCPConnector(limit=0)
    async with sdk, aiohttp.ClientSession(connector=connector) as session:

        async def bare() -> Any:
            body = json.dumps({"model": "m", "messages": messages}).encode()
            async with session.post(f"{url}/chat/completions", data=body) as response:
                return json.loads(await response.read())

        sides: dict[str, Ask] = {
            "parlor": lambda: player.reply(view, _PROMPT),
            "sdk": lambda: sdk.chat.completions.create(model="m", messages=messages, temperature=1, max_tokens=200),
            "bare": bare,
        }
        return {side: await _cost(ask, in_flight, calls) for side, ask in sides.items()}


async def _cost(ask: Ask, in_flight: int, calls: int) -> tuple[float, float]:
    """CPU milliseconds per call, and calls per second, once the connections are open."""

    async def several(times: int) -> None:
        for _ in range(times):
            await ask()

    await asyncio.gather(*(several(1) for _ in range(in_flight)))
    times = max(1, calls // in_flight)
    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(several(times) for _ in range(in_flight)))
    made = times * in_flight
    return 1000 * (time.process_time() - cpu) / made, made / (time.perf_counter() - began)


def _view() -> View:
    """The seventh move of a negotiation."""
    game = find_game("negotiation")
    state = game.initial(game.config({"first": 0}), random.Random(1))
    for number in range(6):
        move: Any = game.parse(state, number % 2, f"[message] This is what I have to say, number {number}.")
        state = game.apply(state, move)
    return game.view(state, 0)


if __name__ == "__main__":
    main()
