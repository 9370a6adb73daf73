"""The participant protocol over Socket.IO; docs/protocol.md describes it.

The handlers are registered on the python-socketio server itself, because Flask's request context around every event
would cost more than the move. The ticket is checked once, at connect.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import gevent
import redis
import structlog
from flask import Flask
from redis.exceptions import RedisError
from socketio.exceptions import ConnectionRefusedError as Refused
from sqlalchemy.exc import SQLAlchemyError

from app.core.config import Settings
from app.core.errors import AppError, Invalid, Unavailable, Verbatim, shown
from app.core.extensions import db, is_away, reason_of
from app.core.queues import CHANNEL, enqueue_turn, read_notice
from app.games.base import JSON
from app.matches import live
from app.matches.move_timing import read_timing
from app.matches.stored import StoredMatch
from app.web import tickets
from app.web.bucket import Bucket
from app.web.extensions import socketio
from app.web.sockets.move_writer import MoveWriter
from app.web.sockets.packets import error_answer
from app.web.sockets.rooms import Rooms, sender

NAMESPACE = "/play"
LONGEST_MOVE_ID = 64
LOOK_SECONDS = 5  # after which a page shows even changes whose maker was killed before announcing them
WATCH_SECONDS = 0.3  # between two looks for workers' changes, if no broker announces them
LISTEN_SECONDS = 10  # of silence, after which the connection to the broker is tested
_AWAY = "The database does not answer just now. Please try again in a moment."

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SeatConnection:
    """What a socket may act on: one seat of one match."""

    match_id: str
    seat: int


class PlayNamespace:
    """The namespace's handlers and what they share in this process. The first connection starts its loops."""

    def __init__(self, app: Flask, settings: Settings) -> None:
        with app.app_context():
            self._database = db.engine
        self._settings = settings
        self._instant = settings.READING_WORDS_PER_MINUTE == 0
        self._connections: dict[str, SeatConnection] = {}
        self._sockets: Counter[SeatConnection] = Counter()  # how many each seat has open
        self._paces: dict[SeatConnection, Bucket] = {}
        self._rooms = Rooms(self._database, settings.home, sender(socketio.server, NAMESPACE), self._remember_match)
        self._writer: MoveWriter | None = None

    def register(self, server: Any) -> None:
        """Register the handlers on a python-socketio server."""
        server.on("connect", self.connect, namespace=NAMESPACE)
        server.on("disconnect", self.disconnect, namespace=NAMESPACE)
        for handler in (self.move, self.resign, self.sync, self.typing):
            server.on(handler.__name__, self._acknowledged(handler), namespace=NAMESPACE)

    def connect(self, sid: str, environ: JSON, auth: Any = None) -> None:
        """Check the ticket against the match in the URL, and send the seat's whole view."""
        match_id = parse_qs(environ.get("QUERY_STRING", "")).get("match", [""])[0]
        try:
            seat = tickets.check(self._settings, auth.get("ticket") if isinstance(auth, dict) else None, match_id)
            if self._writer is None:
                self._start_writer_and_listener()
            self._rooms.open(match_id)
        except SQLAlchemyError as error:
            if not is_away(error):
                raise
            log.warning("the database is away", handling="connect", error=reason_of(error))
            raise Refused(_AWAY, {"code": Unavailable.code, "message": _AWAY}) from None
        except AppError as error:
            raise Refused(error.message, {"code": error.code, "message": error.message}) from None
        connection = self._connections[sid] = SeatConnection(match_id, seat)
        self._sockets[connection] += 1
        # In a separate greenlet: the view has to follow the packet that confirms the connection.
        gevent.spawn(self._enter_room, connection, sid)

    def _enter_room(self, connection: SeatConnection, sid: str) -> None:
        try:
            self._rooms.enter(connection.match_id, connection.seat, sid)
        except SQLAlchemyError as error:
            if not is_away(error):
                raise
            # It has no view and would wait for one; a page that is disconnected reconnects after a moment.
            log.warning("the database is away", handling="enter", error=reason_of(error))
            socketio.server.disconnect(sid, namespace=NAMESPACE)
            return
        if sid not in self._connections:  # gone again before it entered; nobody would ever remove it from the room
            self._rooms.leave(connection.match_id, connection.seat, sid)

    def disconnect(self, sid: str, _reason: str | None = None) -> None:
        if connection := self._connections.pop(sid, None):
            # In a separate greenlet: a sender to a silent socket finds it gone while holding its room's lock, but
            # removing the socket from the room needs the rooms' lock, whose holder may be waiting for that one.
            gevent.spawn(self._rooms.leave, connection.match_id, connection.seat, sid)
            self._sockets[connection] -= 1
            if not self._sockets[connection]:
                del self._sockets[connection]
                self._paces.pop(connection, None)

    def move(self, connection: SeatConnection, _sid: str, data: JSON) -> JSON:
        """Commit a move, show everybody what it changed, and acknowledge it."""
        text, move_id, ply = data.get("text"), data.get("move_id"), data.get("ply")
        if not isinstance(text, str):
            raise Invalid("text", expected="text", got=Verbatim(_kind(text)))
        if not isinstance(move_id, str) or not 1 <= len(move_id) <= LONGEST_MOVE_ID or not move_id.isprintable():
            raise Invalid(
                "move_id", expected=f"1 to {LONGEST_MOVE_ID} printable characters", got=Verbatim(_kind(move_id))
            )
        if not isinstance(ply, int) or isinstance(ply, bool):
            raise Invalid("ply", expected="the whole number of your view", got=Verbatim(_kind(ply)))
        self._slow_down(connection)
        longest = self._settings.MOVE_CHARACTERS
        if len(text) > longest:
            raise AppError(f"Please make it shorter: {longest} characters at most, got {len(text)}.", code="too_long")
        timing = read_timing(data.get("timing"))
        return self._submit_move(live.MoveSubmission(connection.match_id, connection.seat, text, move_id, ply, timing))

    def _slow_down(self, connection: SeatConnection) -> None:
        now = time.monotonic()
        pace = self._paces.setdefault(connection, Bucket(self._settings.MOVES_PER_SECOND, now))
        if not pace.take(now):
            raise AppError("That was very quick. Please wait a moment, then send it again.", code="too_fast")

    def resign(self, connection: SeatConnection, _sid: str, _data: JSON) -> JSON:
        return self._submit_move(live.MoveSubmission(connection.match_id, connection.seat, None))

    def sync(self, connection: SeatConnection, sid: str, _data: JSON) -> JSON:
        self._rooms.show(connection.match_id, connection.seat, sid)
        return {"ok": True, "ply": self._rooms.ply(connection.match_id)}

    def typing(self, connection: SeatConnection, _sid: str, data: JSON) -> JSON:
        if not isinstance(data.get("on"), bool):
            raise Invalid("on", expected="true or false", got=Verbatim(_kind(data.get("on"))))
        self._rooms.typing(connection.match_id, connection.seat, data["on"])
        return {"ok": True, "ply": self._rooms.ply(connection.match_id)}

    def _submit_move(self, submission: live.MoveSubmission) -> JSON:
        if self._writer is None:
            raise Invalid("match", expected="a connected socket", got=Verbatim("none"), remedy="connect again")
        receipt = self._writer.submit(submission)
        # The effect of the move itself, or what a refusal is based on, goes out before the acknowledgement, and the
        # partner's answers after it: a client then never holds an acknowledgement and a view that contradict each
        # other.
        self._rooms.follow(receipt.steps[:1])
        if answers := receipt.steps[1:]:
            gevent.spawn(self._rooms.follow, answers)
        if receipt.new and receipt.record.model_to_move:
            gevent.spawn(enqueue_turn, self._settings.broker_url, submission.match_id)
        if receipt.answer.ok:
            return {"ok": True, "ply": receipt.answer.ply}
        answer = receipt.answer
        return error_answer(answer.code or "invalid", answer.message or "", answer.violation)

    def _acknowledged(self, handler: Callable[[SeatConnection, str, JSON], JSON]) -> Callable[..., JSON]:
        """Find the socket's place, and turn every refusal into an acknowledgement."""

        def handle(sid: str, data: Any = None, *_more: Any) -> JSON:
            connection = self._connections.get(sid)
            if connection is None:
                return error_answer("not_allowed", "This connection has no seat. Open the game again.")
            try:
                if not isinstance(data, dict | None):
                    raise Invalid(None, expected="an object", got=Verbatim(_kind(data)))
                return handler(connection, sid, data or {})
            except AppError as error:
                return error_answer(error.code, error.message)
            except Exception as error:
                if is_away(error):
                    log.warning("the database is away", handling=handler.__name__, error=reason_of(error))
                    return error_answer(Unavailable.code, _AWAY)
                log.exception("an event was not handled", match=connection.match_id)
                return error_answer("invalid", "Something went wrong on our side. Please try again.")

        return handle

    def _remember_match(self, record: StoredMatch) -> None:
        if self._writer is not None:
            self._writer.remember(record)

    def _start_writer_and_listener(self) -> None:
        self._writer = MoveWriter(self._settings.database_url, instant=self._instant)
        if self._settings.has_broker:
            gevent.spawn(self._listen)
        gevent.spawn(self._look_again, LOOK_SECONDS if self._settings.has_broker else WATCH_SECONDS)

    def _listen(self) -> None:
        """Listen to the workers. Messages missed while nobody listened are read from the database.

        Nothing may end this loop: without it nobody would learn of a worker's move until the process is restarted.
        """
        while True:
            for step in (self._follow_channel, self._rooms.refresh_all):
                try:
                    step()
                except (RedisError, OSError) as error:
                    log.warning("the broker is away, asking the database instead", error=str(error))
                except Exception as error:
                    _log_rooms_error("the rooms were not brought up to date", error)
            gevent.sleep(0.5)

    def _look_again(self, seconds: float) -> None:
        """Check every `seconds` for workers' changes that were not announced."""
        while True:
            gevent.sleep(seconds)
            try:
                self._rooms.look_again()
            except Exception as error:
                _log_rooms_error("the rooms were not looked after", error)

    def _follow_channel(self) -> None:
        client = redis.Redis.from_url(self._settings.redis_url, health_check_interval=LISTEN_SECONDS)
        with client.pubsub() as channel:  # type: ignore[no-untyped-call]
            channel.subscribe(CHANNEL)
            while True:
                message = channel.get_message(timeout=LISTEN_SECONDS)
                if message is not None:
                    self._take_notice(message)

    def _take_notice(self, message: JSON) -> None:
        if message["type"] == "subscribe":
            self._rooms.refresh_all()
        elif message["type"] == "message":
            match_id, typing = read_notice(message["data"])
            self._rooms.refresh(match_id)
            self._rooms.typing(match_id, None, typing)


def _log_rooms_error(what: str, error: Exception) -> None:
    """Log an error, in one line if the database is away, because a traceback would not explain that."""
    if is_away(error):
        log.warning(what, error=reason_of(error))
    else:
        log.exception(what)


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    return f"{type(value).__name__} {shown(value)}"
