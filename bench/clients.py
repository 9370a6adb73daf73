"""One process of players: reads what to do from stdin, plays, and writes what it saw to stdout, all as JSON lines.

Many players share it, each at one match at a time over a bare WebSocket. When a match is over, its player connects to
the next one of the process. bench.live starts it:

    → {"url", "game", "clients", "every", "seed", "matches": [[match, ticket], …]}
    ← {"ready", "errors"}           every player has connected to its first match and holds its view
    → {"play", "from", "until"}     when to begin, and what to measure; seconds of the system's monotonic clock
    ← {"moves": [[match, move_id, ply of the acknowledgement or null], …], and the rest of REPORTED}
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from bench import framing
from bench.talk import SAY

PATIENCE = 10.0  # seconds for a connection before playing begins, and for an answer after it ends
AT_ONCE = 40  # players that connect simultaneously before playing begins
REPORTED = ("moves", "ack_ms", "ack_at", "reply_ms", "connect_ms", "errors")
_NEVER = float("inf")


@dataclass(slots=True)
class Tally:
    """What this process's players have observed."""

    since: float = _NEVER  # only later acknowledgements are timed
    until: float = _NEVER
    moves: list[list[Any]] = field(default_factory=list)
    ack_ms: list[float] = field(default_factory=list)
    ack_at: list[float] = field(default_factory=list)  # when each of them arrived
    reply_ms: list[float] = field(default_factory=list)
    connect_ms: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)

    def time(self, into: list[float], begun: float, now: float) -> bool:
        """Record a duration if it ended within the measured time; returns whether it did."""
        measured = self.since <= now < self.until
        if measured:
            into.append(round(1000 * (now - begun), 3))
        return measured


class Player:
    """One person, who plays one match after another."""

    def __init__(self, process: "PlayerProcess", number: int) -> None:
        self._process = process
        self._tally = process.tally
        self._name = f"{process.task['seed']}-{number}"
        self._rng = random.Random(self._name)
        self._say = SAY[process.task["game"]]
        self._every: float = process.task["every"]
        self._due = 0.0
        self._view: dict[str, Any] = {}
        self._moves = 0
        self._sent: list[Any] = []
        self._sent_at = 0.0
        self._planned: asyncio.Task[None] | None = None  # a delayed move
        self.waits_for: str | None = None  # the acknowledgement, or the reply after it

    async def play(self) -> None:
        """Play until the time is over or no match is left."""
        while time.monotonic() < self._tally.until:
            if not self._process.matches:
                self._tally.errors["no match was left; ask for more with --matches"] += 1
                return
            match, ticket = self._process.matches.popleft()
            try:
                await self._play_match(match, ticket)
            except (aiohttp.ClientError, OSError) as error:
                self._tally.errors[f"connection: {type(error).__name__} {error}"[:100]] += 1
                await asyncio.sleep(0.1)
            finally:
                if self._planned:
                    self._planned.cancel()
                self.waits_for = self._planned = None

    async def _play_match(self, match: str, ticket: str) -> None:
        begun = time.monotonic()
        self._view = {}
        async with self._process.session.ws_connect(framing.path(match), max_msg_size=0) as socket:
            async for message in socket:
                if message.type is not aiohttp.WSMsgType.TEXT:
                    break
                packet = framing.read(message.data)
                match packet.kind:
                    case "ack" | "change":
                        self._hear(packet, time.monotonic())
                    case "view":
                        self._view = packet.body
                        self._tally.time(self._tally.connect_ms, begun, time.monotonic())
                        self._process.enter()
                    case "open":
                        await socket.send_str(framing.connect(ticket))
                    case "ping":
                        await socket.send_str(framing.PONG)
                    case "refused" | "closed":
                        break
                if self._is_over:
                    return
                if self._is_my_turn:
                    await self._take_turn(socket, match)
            self._tally.errors[f"connection: closed by the server with code {socket.close_code}"] += 1

    def _hear(self, packet: framing.Packet, now: float) -> None:
        if packet.kind == "ack":
            if packet.body["ok"] and packet.number == self._moves:
                self._sent[2] = packet.body["ply"]
                if self._tally.time(self._tally.ack_ms, self._sent_at, now):
                    self._tally.ack_at.append(now)
            else:
                self._tally.errors[f"refused: {packet.body}"[:100]] += 1
                self._view["status"] = "over"  # only for this player, who goes on with the next match
            self.waits_for = "reply"
        else:
            self._view.update(packet.body)
        if self.waits_for == "reply" and self._view["to_move"] != "partner":
            self.waits_for = None
            self._tally.time(self._tally.reply_ms, self._sent_at, now)

    @property
    def _is_over(self) -> bool:
        return self.waits_for != "ack" and self._view.get("status") == "over"

    @property
    def _is_my_turn(self) -> bool:
        return self.waits_for is None and self._planned is None and self._view.get("to_move") == "you"

    async def _take_turn(self, socket: aiohttp.ClientWebSocketResponse, match: str) -> None:
        """Move now or when it is due; meanwhile the socket is read, as a ping may arrive."""
        if self._process.begun.is_set() and not self._every:
            await self._move(socket, match, time.monotonic())
        else:
            self._planned = asyncio.create_task(self._move_later(socket, match))

    async def _move_later(self, socket: aiohttp.ClientWebSocketResponse, match: str) -> None:
        await self._process.begun.wait()
        due = now = time.monotonic()
        if self._every:
            # Each player's first move is at a random moment.
            due = self._due = self._due + self._every if self._due else now + self._rng.uniform(0, self._every)
            await asyncio.sleep(due - now)
        self._planned = None
        await self._move(socket, match, due)

    async def _move(self, socket: aiohttp.ClientWebSocketResponse, match: str, due: float) -> None:
        """Make the next move if there is time. A late move is timed from when it was due."""
        if due >= self._tally.until:
            return
        self._moves += 1
        move_id = f"{self._name}-{self._moves}"
        self._sent, self._sent_at = [match, move_id, None], due
        self._tally.moves.append(self._sent)
        self.waits_for = "ack"
        text = json.dumps(self._say(self._rng, self._view["may"]))
        await socket.send_str(framing.move(self._moves, move_id, self._view["ply"], text))


class PlayerProcess:
    """All players of this process, and their shared state."""

    def __init__(self, task: dict[str, Any], session: aiohttp.ClientSession) -> None:
        self.task = task
        self.session = session
        self.matches: deque[list[str]] = deque(task["matches"])
        self.tally = Tally()
        self._arrived = 0
        self.begun = asyncio.Event()

    def enter(self) -> None:
        """Count a player who has received the view of a match."""
        self._arrived += 1

    async def run(self) -> dict[str, Any]:
        """Connect all players, play, and report what was observed."""
        players = [Player(self, number) for number in range(self.task["clients"])]
        tasks = []
        for number, player in enumerate(players, 1):
            tasks.append(asyncio.create_task(player.play()))
            if number % AT_ONCE == 0 or number == len(players):
                await self._wait_until(lambda: self._arrived == len(tasks) or bool(self.tally.errors), PATIENCE)
        say({"ready": self._arrived, "errors": self.tally.errors})
        order = json.loads(await asyncio.to_thread(sys.stdin.readline))
        self.tally.since, self.tally.until = order["from"], order["until"]
        await asyncio.sleep(order["play"] - time.monotonic())
        self.begun.set()
        await asyncio.sleep(self.tally.until - time.monotonic())
        await self._wait_until(lambda: not any(player.waits_for for player in players), PATIENCE)
        unanswered = sum(1 for player in players if player.waits_for)
        if unanswered:
            self.tally.errors["no answer"] += unanswered
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                self.tally.errors[f"player: {result!r}"[:100]] += 1
        return {name: getattr(self.tally, name) for name in REPORTED}

    @staticmethod
    async def _wait_until(condition: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline:
            await asyncio.sleep(0.02)


def say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


async def main() -> None:
    """Carry out the task given on stdin."""
    task = json.loads(sys.stdin.readline())
    async with aiohttp.ClientSession(
        task["url"], connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        say(await PlayerProcess(task, session).run())


if __name__ == "__main__":
    asyncio.run(main())
