"""A bot's seat in a match: its connection, and moves chosen by the game's scripted player."""

import asyncio
import contextlib
import random
import uuid
from collections.abc import Mapping
from typing import Any

import aiohttp
import socketio

from app.games.base import JSON, TranscriptEntry, View
from app.players import make_player
from app.players.base import PlayerSpec
from app.studies.bots.browser import PATIENCE

NAMESPACE = "/play"
_ANSWER_SECONDS = 5.0  # after which a move is sent again, as a page does after reconnecting
_PAUSE = 0.5


class SeatLost(Exception):
    """The server refused the bot its seat, or did not answer it."""


class BotSeat:
    """One connection to one seat. `view` is the view of the match last sent by the server."""

    def __init__(self, server: str, match: str, ticket: str) -> None:
        self.view: JSON = {}
        self._server, self._match, self._ticket = server, match, ticket
        self._changed = asyncio.Event()
        self._client: socketio.AsyncClient
        self._coming_back: asyncio.Task[None] | None = None
        self._leaves = False

    async def __aenter__(self) -> "BotSeat":
        await self._connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._leaves = True
        if self._coming_back is not None:
            self._coming_back.cancel()
            await asyncio.wait({self._coming_back})
        await self._client.disconnect()

    async def _connect(self) -> None:
        """Connect, retrying until the server is available. Raises SeatLost.

        Each try uses a new client: one that failed half way never connects again.
        """
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while True:
            client = socketio.AsyncClient(reconnection=False)
            client.on("view", self._see, namespace=NAMESPACE)
            client.on("change", self._see_change, namespace=NAMESPACE)
            try:
                await client.connect(
                    f"{self._server}?match={self._match}",
                    auth={"ticket": self._ticket},
                    namespaces=[NAMESPACE],
                    transports=["websocket"],
                    wait_timeout=_ANSWER_SECONDS,
                )
            except (socketio.exceptions.ConnectionError, aiohttp.ClientError, OSError, TimeoutError) as error:
                with contextlib.suppress(Exception):  # whatever is left of the connection
                    await client.disconnect()
                if asyncio.get_running_loop().time() > deadline:
                    raise SeatLost(str(error)) from None
                await asyncio.sleep(_PAUSE)
            else:
                self._client = client
                client.on("disconnect", self._come_back, namespace=NAMESPACE)
                if not client.connected:  # it was cut off before anybody listened
                    self._come_back()
                return

    def _come_back(self, *_reason: object) -> None:
        if not self._leaves:
            self._coming_back = asyncio.create_task(self._connect())

    async def _see(self, view: JSON) -> None:
        self.view = view
        self._changed.set()

    async def _see_change(self, change: JSON) -> None:
        self.view = merged(self.view, change)
        self._changed.set()

    async def wait_for_turn(self, seconds: float) -> bool:
        """Whether it is the bot's turn; False if the match is over. Raises TimeoutError after `seconds`."""
        async with asyncio.timeout(seconds):
            while not self.view or (self.view["status"] != "over" and self.view["to_move"] != "you"):
                self._changed.clear()
                await self._changed.wait()
        return bool(self.view["status"] != "over")

    async def wait_for_end(self, seconds: float) -> None:
        """Wait until the match is over. Raises TimeoutError after `seconds`."""
        async with asyncio.timeout(seconds):
            while self.view["status"] != "over":
                self._changed.clear()
                await self._changed.wait()

    async def move(self, text: str, timing: Mapping[str, Any] | None = None, *, twice: bool = False) -> JSON:
        """Make a move, `twice` as if by a double click; it is resent until the server has answered."""
        body = {"move_id": uuid.uuid4().hex, "ply": self.view["ply"], "text": text}
        if timing is not None:
            body["timing"] = dict(timing)
        if twice:
            with contextlib.suppress(socketio.exceptions.SocketIOError):  # whoever asks for an answer is told of it
                await self._client.emit("move", body, namespace=NAMESPACE)
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while asyncio.get_running_loop().time() < deadline:
            try:
                answer: JSON = await self._client.call("move", body, namespace=NAMESPACE, timeout=_ANSWER_SECONDS)
            except socketio.exceptions.SocketIOError:
                await asyncio.sleep(_PAUSE)
                continue
            if answer.get("ok"):
                self.view = {**self.view, "to_move": "partner"} if self.view["ply"] == body["ply"] else self.view
            return answer
        raise SeatLost("a move was not answered")

    def chosen(self, rng: random.Random) -> str:
        """The move that the game's scripted player would make here."""
        player: Any = make_player(PlayerSpec("scripted", "scripted"))
        return str(player.choose(view_of(self.view), rng))


def view_of(view: JSON) -> View:
    """The protocol's view of a seat as the `View` that players read."""
    entries = tuple(TranscriptEntry(each["ply"], each["by"], each["kind"], each["text"]) for each in view["transcript"])
    return View(
        view["game"], view["role"], 0, view["ply"], view["to_move"], entries, view["facts"], view["secret"],
        tuple(view["may"]),
    )  # fmt: skip


def merged(view: JSON, change: JSON) -> JSON:
    """The view after a change: entries are merged by ply, every other field is replaced."""
    if not view or change["ply"] < view["ply"]:
        return view
    entries = {entry["ply"]: entry for entry in (*view["transcript"], *change["transcript"])}
    return {**view, **change, "transcript": [entries[ply] for ply in sorted(entries)]}
