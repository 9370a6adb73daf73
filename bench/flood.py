"""One socket that sends as fast as it can: a process beside the players of `bench.live --flood KIND`.

It takes a seat like anybody, reads what comes and answers signs of life, and in the times that it is given it sends one
kind of packet without waiting for any answer. When it is closed it comes back.

    → {"url", "match", "ticket", "kind", "times": [[from, until], …]}   seconds of the system's monotonic clock
    ← {"packets", "connections", "answers"}                              when the last of the times is over
"""

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import aiohttp

from bench import framing

# What is sent at a seat: an event of the protocol, or something else.
KINDS: Mapping[str, str] = {
    "sync": f'42{framing.NAMESPACE},1["sync",{{}}]',
    "typing": f'42{framing.NAMESPACE},1["typing",{{"on":true}}]',
    "garbage": "4x",
}


class Flood:
    """The flooding socket, and counts of what it has done."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        self._task = task
        self.counts = {"packets": 0, "connections": 0, "answers": 0}

    async def run(self) -> None:
        """Send during the given times."""
        async with aiohttp.ClientSession(self._task["url"]) as session:
            for since, until in self._task["times"]:
                await asyncio.sleep(since - time.monotonic())
                # If the server stops reading, sending never ends.
                with suppress(TimeoutError):
                    async with asyncio.timeout(until - time.monotonic()):
                        while True:
                            with suppress(aiohttp.ClientError, OSError):
                                await self._flood(session)
                            await asyncio.sleep(0)

    async def _flood(self, session: aiohttp.ClientSession) -> None:
        async with session.ws_connect(framing.path(self._task["match"]), max_msg_size=0, timeout=_HANG_UP) as socket:
            self.counts["connections"] += 1
            await socket.send_str(framing.connect(self._task["ticket"]))
            reading = asyncio.create_task(self._read(socket))
            try:
                while not socket.closed:
                    await socket.send_str(KINDS[self._task["kind"]])
                    self.counts["packets"] += 1
            finally:
                reading.cancel()

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            if message.data == "2":
                await socket.send_str(framing.PONG)
            self.counts["answers"] += 1


_HANG_UP = aiohttp.ClientWSTimeout(ws_close=0.1)  # seconds for a goodbye


def main() -> None:
    """Carry out the task given on stdin."""
    flood = Flood(json.loads(sys.stdin.readline()))
    asyncio.run(flood.run())
    print(json.dumps(flood.counts), flush=True)


if __name__ == "__main__":
    main()
