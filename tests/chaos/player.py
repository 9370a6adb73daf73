"""A script that plays one seat, match after match, over connections that break at any moment.

It speaks the wire of docs/protocol.md itself, in one thread and without a client library, so that fifty of them cost
little and every packet is looked at. It holds the server to what the protocol promises, and writes down what the
audit needs.
"""

import http.client
import json
import random
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import websocket

from tests.participant import JSON, NAMESPACE, Table, merged, request

PATIENCE = 90.0  # seconds in which whatever is waited for has to come, whatever was killed meanwhile
CONNECT_SECONDS = 20.0  # as long as Socket.IO's own client waits for a server that is being replaced
ANSWER_SECONDS = 5.0  # after which a move is sent again under the same id
SILENCE_SECONDS = 50.0  # in which a server that lives gives a sign of it
TOLD_SECONDS = 30.0  # after which a page that is connected has been told of whatever has happened, on a busy machine
BAD_TEXT = "A bell \x07 in it"  # which every game refuses
LOST = (OSError, websocket.WebSocketException)


class Stuck(Exception):
    """Something that had to come did not."""


@dataclass
class Sent:
    """A move as it was sent, and what the server promised about it: its answer, which is the same for ever."""

    move_id: str
    ply: int
    text: str
    answer: JSON | None = None


@dataclass
class Story:
    """One match as its player saw it. `final` is the view after the last `sync`, None if it never came to that."""

    table: Table
    moves: list[Sent] = field(default_factory=list)
    resigned: bool = False
    final: JSON | None = None
    connections: int = 0
    shown: list[float] = field(default_factory=list)  # seconds between a move and its being shown on a page
    end: tuple[datetime, datetime] | None = None  # since when a page was connected, and when it was told of the end


class Tab:
    """One page at a seat: a connection that is made again as often as it breaks, and the view that came of it all."""

    def __init__(self, table: Table, complain: Callable[[str], None]) -> None:
        self.view: JSON = {}
        self.connections = 0
        self.shown: list[float] = []
        self.end: tuple[datetime, datetime] | None = None
        self._table = table
        self._complain = complain
        self._socket: websocket.WebSocket | None = None
        self.whole = False  # whether this connection has brought its view
        self._opened_at = datetime.now(UTC)
        self._heard_at = 0.0
        self._asked = 0
        self._answers: dict[int, JSON] = {}

    def until(self, done: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
        """Follow the match until `done` holds. Raises Stuck when it does not in time."""
        deadline = time.monotonic() + seconds
        while not (self.view and done()):
            left = deadline - time.monotonic()
            if left <= 0:
                seen = {name: self.view.get(name) for name in ("status", "ply", "to_move")}
                raise Stuck(f"expected within {seconds:.0f} s: {what}; the view has {seen}")
            try:
                self._receive(min(left, 0.5))
            except LOST:
                self.close()
                time.sleep(min(left, random.uniform(0.1, 0.6)))

    def idle(self, seconds: float, wake: threading.Event) -> None:
        """Follow the match for a while, or until it is over, or all are woken."""
        end = time.monotonic() + seconds
        passed = lambda: time.monotonic() >= end or wake.is_set() or self.view["status"] == "over"  # noqa: E731
        self.until(passed, "the time to pass", seconds + PATIENCE)

    def ask(self, event: str, body: JSON, *, twice: bool = False) -> JSON:
        """Send an event until it is answered, over as many connections as it takes. `twice`: two at once each time."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.until(lambda: self.whole, "a connection")
            try:
                numbers = [self._send(event, body) for _ in range(2 if twice else 1)]
                answers = self._await(numbers)
            except LOST:
                self.close()
                continue
            if answers is not None and not any(_unavailable(answer) for answer in answers):
                if any(_kind(answer) != _kind(answers[0]) for answer in answers):
                    self._complain(f"one {event} got two answers: {answers}")
                return answers[0]
            if answers is not None:
                time.sleep(1)  # as a page does: a full disk refuses at once
        raise Stuck(f"expected an answer to {event} within {PATIENCE:.0f} s")

    def close(self) -> None:
        """Drop the connection; the next look makes another."""
        if self._socket is not None:
            self._socket.shutdown()
        self._socket, self.whole = None, False

    def _send(self, event: str, body: JSON) -> int:
        if self._socket is None:
            raise ConnectionError
        self._asked += 1
        self._socket.send(f"42{NAMESPACE},{self._asked}{json.dumps([event, body])}")
        return self._asked

    def _await(self, numbers: list[int]) -> list[JSON] | None:
        deadline = time.monotonic() + ANSWER_SECONDS
        while not all(number in self._answers for number in numbers):
            if self._socket is None or time.monotonic() > deadline:
                return None
            self._receive(0.5)
        return [self._answers.pop(number) for number in numbers]

    def _receive(self, seconds: float) -> None:
        """Take the next packet, if one comes in time; connect first if there is no connection."""
        if self._socket is None:
            self._open()
        assert self._socket is not None
        self._socket.settimeout(seconds)
        try:
            packet = str(self._socket.recv())
        except websocket.WebSocketTimeoutException:
            if time.monotonic() - self._heard_at > SILENCE_SECONDS:
                raise ConnectionError("no heartbeat") from None
            return
        self._heard_at = time.monotonic()
        self._take(packet)

    def _open(self) -> None:
        address = self._table.server.replace("http", "ws", 1)
        self._socket = websocket.create_connection(
            f"{address}/socket.io/?EIO=4&transport=websocket&match={self._table.match}",
            timeout=CONNECT_SECONDS,
            suppress_origin=True,
        )
        self._socket.send(f"40{NAMESPACE},{json.dumps({'ticket': self._table.ticket})}")
        self._heard_at = time.monotonic()
        self.connections += 1

    def _take(self, packet: str) -> None:
        kind, _, data = packet.partition(f"{NAMESPACE},")
        if packet == "2" and self._socket is not None:
            self._socket.send("3")
        elif kind == "42":
            event, payload = json.loads(data)
            self._hear(event, payload)
        elif kind == "43":
            number, bracket, answer = data.partition("[")
            self._answers[int(number)] = json.loads(bracket + answer)[0]
        elif kind == "44":
            if json.loads(data).get("data", {}).get("code") == "unavailable":
                raise ConnectionError("the database is away; the same ticket will do")
            raise Stuck(f"expected to be let in with the ticket of the match, got {data}")
        elif packet in ("", "1") or kind == "41":
            raise ConnectionError("the server hung up")

    def _hear(self, event: str, payload: JSON) -> None:
        known, now = {entry["ply"] for entry in self.view.get("transcript", ())}, datetime.now(UTC)
        if event == "view":
            if payload["ply"] < self.view.get("ply", 0):
                self._complain(f"the view went back from ply {self.view['ply']} to {payload['ply']}")
            if not self.whole:
                self._opened_at = now
            self.view, self.whole = payload, True
        elif event == "change":
            self.view = merged(self.view, payload)
            if [entry["ply"] for entry in self.view["transcript"]] != list(range(self.view["ply"])):
                self._complain(f"a change was lost before this one: {payload}")
        else:
            return
        for entry in payload["transcript"]:
            at = datetime.fromisoformat(entry["at"])
            if entry["ply"] not in known and at > self._opened_at:
                self.shown.append((now - at).total_seconds())
        if self.end is None and self.view["status"] == "over":
            self.end = self._opened_at, now


def _unavailable(answer: JSON) -> bool:
    """Whether the database was away or full: the same is to be sent again."""
    return bool(answer.get("error", {}).get("code") == "unavailable")


def _kind(answer: JSON) -> tuple[object, ...]:
    """What of an answer does not change when the same is sent again; a message may say more the first time."""
    return answer["ok"], answer.get("ply"), answer.get("error", {}).get("code")


@dataclass(frozen=True)
class Wish:
    """What a player asks POST /api/matches for."""

    game: str
    opponent: str
    role: str | None = None
    config: JSON = field(default_factory=dict)


class Player(threading.Thread):
    """Plays matches one after the other until `calm` is set, then ends the one it is in as fast as the rules allow.

    With a `table`, it plays that match alone.
    """

    def __init__(
        self,
        name: str,
        server: str,
        wishes: Sequence[Wish],
        seed: str,
        calm: threading.Event,
        table: Table | None = None,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.stories: list[Story] = []
        self.complaints: list[str] = []
        self._server = server
        self._wishes = wishes
        self._rng = random.Random(seed)
        self._calm = calm
        self._table = table
        self._tabs: list[Tab] = []

    @property
    def waits_for_a_view(self) -> bool:
        """Whether a page of its match was not shown anything since its connection broke, or since it was opened."""
        return not all(each.whole for each in self._tabs)

    def run(self) -> None:
        try:
            if self._table is not None:
                self.play(self._table)
            while self._table is None and not self._calm.is_set():
                self.play(self._start())
        except Exception as error:
            self._complain(f"{type(error).__name__}: {error}")

    def play(self, table: Table) -> None:
        """Play a match to its end and hold the pages against each other. Raises Stuck."""
        story = Story(table)
        self.stories.append(story)
        tab = Tab(table, self._complain)
        tabs = self._tabs = [tab, Tab(table, self._complain)] if self._rng.random() < 0.2 else [tab]
        try:
            for each in tabs:
                each.until(lambda: True, "a view")
            while tab.view["status"] != "over":
                self._turn(tab, story)
            for each in tabs:
                each.until(lambda each=each: each.view["status"] == "over", "the end on every page")
            story.final = self._compare(tabs)
        finally:
            story.connections = sum(each.connections for each in tabs)
            story.shown, story.end = tab.shown, tab.end  # the second one looks up only in the end
            self._tabs = []
            for each in tabs:
                each.close()

    def _complain(self, what: str) -> None:
        match = self.stories[-1].table.match if self.stories else "no match yet"
        self.complaints.append(f"{self.name}, match {match}: {what}")

    def _start(self) -> Table:
        """Start a match. One whose answer was lost goes on without a player; the storm finds it in the end."""
        wish = self._rng.choice(self._wishes)
        body = {"game": wish.game, "opponent": wish.opponent, "role": wish.role, "config": wish.config}
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                status, answer = request(self._server, body)
            except (OSError, http.client.HTTPException, ValueError):  # killed before or within its answer
                time.sleep(self._rng.uniform(0.1, 0.5))
                continue
            if status == 201:
                return Table(self._server, answer["match"], answer["ticket"], answer["url"])
            if status != http.HTTPStatus.SERVICE_UNAVAILABLE:  # with it, the database was busy and nothing was done
                self._complain(f"a match did not start: {status} {answer}")
            time.sleep(1)
        raise Stuck(f"expected a match to start within {PATIENCE:.0f} s")

    def _turn(self, tab: Tab, story: Story) -> None:
        """Wait for this seat's turn, think, and make a move."""
        self._wait_for_partner(tab)
        clock = tab.view["clock"]
        if clock is not None and self._rng.random() < 0.05:  # falls asleep
            tab.idle(clock["left"] + TOLD_SECONDS, self._calm)
            tab.ask("sync", {})
        else:
            tab.idle(self._rng.uniform(0.2, 2.0), self._calm)
        if tab.view["status"] == "over":
            return
        if self._rng.random() < 0.02:
            self._resign(tab, story)
        else:
            self._move(tab, story)

    def _wait_for_partner(self, tab: Tab) -> None:
        """Wait, and ask now and then, so that it is found out when a page was not told."""
        deadline = time.monotonic() + 2 * PATIENCE
        while tab.view["to_move"] == "partner":
            try:
                tab.until(lambda: tab.view["to_move"] != "partner", "the partner's move", 1.5 * TOLD_SECONDS)
            except Stuck:
                if time.monotonic() > deadline:
                    raise
                tab.ask("sync", {})

    def _move(self, tab: Tab, story: Story) -> None:
        sent = Sent(uuid.UUID(int=self._rng.getrandbits(128)).hex, tab.view["ply"], self._text(tab.view))
        story.moves.append(sent)
        body = {"move_id": sent.move_id, "ply": sent.ply, "text": sent.text}
        sent.answer = tab.ask("move", body, twice=self._rng.random() < 0.2)
        if sent.answer["ok"] and sent.answer["ply"] != sent.ply + 1:
            self._complain(f"a move at ply {sent.ply} was acknowledged as {sent.answer}")
        if sent.answer["ok"] and tab.view["ply"] <= sent.ply:
            self._complain(f"a move was acknowledged before it was shown, at ply {sent.ply}")
        if not sent.answer["ok"]:
            self._refused(tab, sent, sent.answer["error"])
        if self._rng.random() < 0.1:
            self._say_again(tab, story)

    def _refused(self, tab: Tab, sent: Sent, error: JSON) -> None:
        """Who is alone at a seat knows where it stands: only the rules can be in the way, or an end that came first."""
        if error["code"] == "over":
            tab.ask("sync", {})
            if tab.view["status"] != "over":
                self._complain(f"a move was too late for a match that goes on: {tab.view}")
        elif error["code"] != "illegal_move" or sent.text != BAD_TEXT:
            self._complain(f"a move at ply {sent.ply} was refused: {error}")

    def _say_again(self, tab: Tab, story: Story) -> None:
        """A move that was answered long ago gets that answer again, even if its server is dead."""
        old = self._rng.choice(story.moves)
        again = tab.ask("move", {"move_id": old.move_id, "ply": old.ply, "text": old.text})
        logged = old.answer is not None and (old.answer["ok"] or old.answer["error"]["code"] == "illegal_move")
        if logged and again != old.answer:
            self._complain(f"a move at ply {old.ply} was answered {old.answer}, and later {again}")

    def _resign(self, tab: Tab, story: Story) -> None:
        story.resigned = True
        answer = tab.ask("resign", {})
        if not answer["ok"] and answer["error"]["code"] != "over":  # over: it has come twice
            self._complain(f"a resignation was refused: {answer['error']}")
        tab.until(lambda: tab.view["status"] == "over", "the end after a resignation")

    def _text(self, view: JSON) -> str:
        """What the script says: small talk, at times something that cannot be, and when it is to end, the end."""
        ending = self._calm.is_set() or self._rng.random() < 0.15
        if not ending and self._rng.random() < 0.08:
            return BAD_TEXT
        talk = f"Line {view['ply']}, {self._rng.choice(('well', 'so', 'then', 'now'))}."
        kinds = [may["kind"] for may in view["may"]]
        if view["game"] == "negotiation":
            return (
                self._proposal(view)
                if "message" not in kinds or (ending and "proposal" in kinds)
                else f"[message] {talk}"
            )
        if not ending:
            return talk
        return f"It is {view['secret']['word']}." if view["role"] == "attacker" else 'I know the word! It is "pencil"!'

    def _proposal(self, view: JSON) -> str:
        wanted = [self._rng.randint(0, view["facts"]["counts"][item]) for item in ("book", "hat", "ball")]
        return "[propose] ({} books, {} hats, {} balls)".format(*wanted)

    def _compare(self, tabs: list[Tab]) -> JSON:
        """The whole view in the end, which is what every page had made of its changes."""
        finals: list[Any] = []
        for tab in tabs:
            had = tab.view
            tab.ask("sync", {})
            tab.close()
            tab.until(lambda tab=tab: tab.whole, "the view in the end")
            if tab.view != had:
                self._complain(f"expected the page to hold {tab.view}, it held {had}")
            finals.append(tab.view)
        if finals[0] != finals[-1]:
            self._complain(f"two pages of a seat differ: {finals}")
        return dict(finals[0])
