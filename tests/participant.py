"""A participant's program: the HTTP and Socket.IO client that a stranger could write from docs/protocol.md alone."""

import json
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import socketio
from socketio.exceptions import ConnectionError as NotConnected
from socketio.exceptions import SocketIOError

from tests.stack import PATIENCE, wait_until

JSON = dict[str, Any]
NAMESPACE = "/play"


@dataclass(frozen=True)
class Table:
    """A match that was started: where it is, and the pass to a seat of it."""

    server: str
    match: str
    ticket: str
    url: str


def request(server: str, body: object) -> tuple[int, JSON]:
    """POST /api/matches with any body: the status and the JSON that came back."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    asked = urllib.request.Request(  # noqa: S310 - our own address
        server + "/api/matches", data=raw, headers={"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE) as response:  # noqa: S310
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def start(server: str, game: str, **fields: Any) -> Table:
    """Start a guest match, which must succeed; `fields`: config, opponent, role.

    Comes back, as it is told to, while the database is busy.
    """
    until = time.monotonic() + PATIENCE
    status, answer = request(server, {"game": game, **fields})
    while status == 503 and time.monotonic() < until:
        time.sleep(0.5)
        status, answer = request(server, {"game": game, **fields})
    assert status == 201, (status, answer)
    return Table(server, answer["match"], answer["ticket"], answer["url"])


class Refused(Exception):
    """The server did not let the socket in; `error` is what it said."""

    def __init__(self, error: JSON) -> None:
        super().__init__(error)
        self.error = error


class Participant:
    """One socket at one seat. `heard` is all that came, in order; `view` is what the changes make of the first view."""

    def __init__(self, table: Table, *, auth: object = ..., match: str | None = None) -> None:
        self.heard: list[tuple[str, JSON]] = []
        self.view: JSON = {}
        self.connections = 0
        self._moved = -1  # the ply of the last move that was accepted
        self._one_at_a_time = threading.Lock()  # the client hands each packet to a thread of its own
        self._refusal: JSON = {}
        self._client = socketio.Client(reconnection_delay=0.1, reconnection_delay_max=0.3, randomization_factor=0)
        self._client.on("connect", self._connected, namespace=NAMESPACE)
        self._client.on("connect_error", self._turned_away, namespace=NAMESPACE)
        for event in ("view", "change", "typing", "presence"):
            self._client.on(event, self._listener(event), namespace=NAMESPACE)
        asked = table.match if match is None else match
        self._address = f"{table.server}?match={asked}" if asked else table.server
        self._auth = {"ticket": table.ticket} if auth is ... else auth

    def connect(self) -> "Participant":
        """Come in and wait for the view. Raises Refused."""
        try:
            self._client.connect(
                self._address,
                auth=self._auth,
                namespaces=[NAMESPACE],
                transports=["websocket"],
                wait_timeout=int(PATIENCE),
            )
        except NotConnected:
            self._client.disconnect()
            raise Refused(self._refusal) from None
        self.wait(lambda: self.view, "a view")
        return self

    def ask(self, event: str, body: object = None, timeout: float = PATIENCE) -> JSON:
        """Send an event and give its acknowledgement."""
        answer: JSON = self._client.call(event, {} if body is None else body, namespace=NAMESPACE, timeout=timeout)
        return answer

    def tell(self, event: str, body: object) -> None:
        """Send an event without waiting for anything."""
        self._client.emit(event, body, namespace=NAMESPACE)

    def move(self, text: object, move_id: str | None = None, ply: object = None) -> JSON:
        """Make a move once, at the ply of the view unless another is given."""
        seen = self.view["ply"] if ply is None else ply
        answer = self.ask("move", {"move_id": move_id or uuid.uuid4().hex, "ply": seen, "text": text})
        if answer.get("ok") and isinstance(seen, int):
            self._moved = seen
        return answer

    def insist(self, text: str, move_id: str, ply: int, attempts: int = 60) -> JSON:
        """Send a move again and again under one move_id until the server has answered, across lost connections."""
        for _ in range(attempts):
            self.wait(lambda: self._client.connected and NAMESPACE in self._client.namespaces, "a connection")
            try:
                return self.ask("move", {"move_id": move_id, "ply": ply, "text": text}, timeout=2)
            except SocketIOError:
                continue
        raise AssertionError(f"expected an answer to a move within {attempts} attempts")

    def wait(self, condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
        """Wait until `condition` holds."""
        wait_until(condition, f"{what}, after {self.heard[-2:]}", seconds)

    def wait_for_turn(self) -> None:
        """Wait until it is this seat's turn, or the match is over.

        A move that was accepted may be acknowledged before the view shows it.
        """
        self.wait(
            lambda: self.view["ply"] > self._moved and self.view["to_move"] != "partner", "this seat's turn or the end"
        )

    @property
    def over(self) -> bool:
        return bool(self.view["status"] == "over")

    def all_of(self, event: str) -> list[JSON]:
        """The payloads of one event, in order."""
        return [payload for name, payload in list(self.heard) if name == event]

    def close(self) -> None:
        self._client.disconnect()

    def __enter__(self) -> "Participant":
        return self.connect()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connected(self) -> None:
        self.connections += 1

    def _turned_away(self, error: JSON) -> None:
        self._refusal = error

    def _listener(self, event: str) -> Callable[[JSON], None]:
        def hear(payload: JSON) -> None:
            with self._one_at_a_time:
                self.heard.append((event, payload))
                if event == "view":
                    self.view = payload
                elif event == "change":
                    self.view = merged(self.view, payload)

        return hear


def merged(view: JSON, change: JSON) -> JSON:
    """The view after a change: entries by ply, every other field as it is now."""
    if change["ply"] < view["ply"]:
        return view
    entries = {entry["ply"]: entry for entry in (*view["transcript"], *change["transcript"])}
    return {**view, **change, "transcript": [entries[ply] for ply in sorted(entries)]}
