"""Rooms: the matches open in this process, and what each of their pages was last shown.

A room follows its match: each step comes applied from the writer's receipts, or is read from the database when a worker
announces one. From the match before and after each step it sends every seat the difference between its views, so a page
gets each change once and in order, however many tabs it has and wherever the move was made.
"""

import contextlib
import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gevent import get_hub, sleep, spawn_later
from gevent.lock import RLock
from sqlalchemy import Engine, select
from sqlalchemy.exc import SQLAlchemyError

from app.core.extensions import reading
from app.core.queues import Typing
from app.games.base import JSON, Event, Game
from app.matches.events import ServerAway
from app.matches.stored import StoredMatch, load, load_log, move_times
from app.matches.views import change, seat_view
from app.models import MatchRow
from app.registry import PERSON
from app.web.partners import told_of_partner

PATIENCE = 3  # seconds without a connection before anybody is told: reloading a page takes as long
FRESH = 1.0  # seconds for which a match that was read is shown again without asking the database

Remember = Callable[[StoredMatch], None]
Send = Callable[[str, str, JSON], None]  # event name, socket id, payload


class Room:
    """One open match as it is known here, and the sockets at each of its seats."""

    def __init__(self, record: StoredMatch, home: Path) -> None:
        """`home` is PARLOR_HOME, where local models may be."""
        self.id = record.id
        self.record = record
        self.partners = tuple(
            told_of_partner(record, seat, home) for seat in (0, 1)
        )  # what each seat is told of its partner
        self.times = move_times(record.log)
        self.sockets: tuple[set[str], set[str]] = (set(), set())
        self.just_read = True  # until the first socket has entered
        self.read_at = -math.inf  # when the log was last read for a page, on the monotonic clock
        self.reads_soon = False  # whether the log will be read again once that is no longer fresh
        self.typing: list[Typing] = [False, False]
        self.away = [False, False]  # people whose partner was told that their connection is lost
        self.lock = RLock()
        self._shown: dict[int, JSON] = {}  # the view on the pages of a seat, while it has any

    @property
    def empty(self) -> bool:
        return not any(self.sockets)

    def view(self, seat: int) -> JSON:
        """What the pages of a seat are to hold from now on."""
        shown = self._shown.get(seat)
        known = () if shown is None else shown["transcript"]
        view = self._shown[seat] = seat_view(
            self.id,
            self.record.match,
            self.times,
            seat,
            self._clock(),
            known,
            self.partners[seat],
            self.record.feedback,
        )
        return view

    def _clock(self) -> JSON | None:
        deadline = None if self.record.mover is None else self.record.deadline
        return None if deadline is None else deadline.to_json(datetime.now(UTC))

    def follow(self, steps: Iterable[StoredMatch], send: Send) -> None:
        """Show each seat its changes from these steps of the match, except those it was already shown."""
        present = [seat for seat in (0, 1) if self.sockets[seat]]
        for record in steps:
            new = record.log[len(self.record.log) :]
            if not new:
                continue
            self.record = record
            self.times += move_times(new)
            moves = [logged.event for logged in new if isinstance(logged.event, Event)]
            away = any(isinstance(logged.event, ServerAway) for logged in new)
            if not moves and not away and not record.match.over:
                continue  # only its maker is told of a refusal
            for seat in present:
                payload = change(self._shown[seat], self.view(seat))
                for sid in tuple(self.sockets[seat]):  # sending detects dead sockets and removes them from the room
                    send("change", sid, payload)
            if moves and not record.match.over:
                self.tell_typing(moves[-1].seat, False, send)

    def tell_typing(self, seat: int, on: Typing, send: Send) -> None:
        """Tell the other seat, once, that this one has begun or stopped writing, or cannot begin yet."""
        if self.typing[seat] != on:
            self.typing[seat] = on
            for sid in tuple(self.sockets[1 - seat]):
                send("typing", sid, _typing_payload(on))

    def waits(self, now: datetime) -> bool:
        """Whether the match waits for another process: a worker on a model's turn, or upkeep on an expired clock."""
        if (mover := self.record.mover) is None:
            return False
        deadline = self.record.deadline
        return mover.kind != PERSON or (deadline is not None and deadline.passed(now))

    def missing(self, seat: int) -> bool:
        """Whether the seat belongs to a person who has no connection although the match is not over."""
        person = self.record.seats[seat].kind == PERSON
        return person and not self.sockets[seat] and not self.record.match.over

    def tell_presence(self, seat: int, send: Send) -> None:
        """Tell the other seat, once, that this one's connection is lost, or found again."""
        away = self.missing(seat)
        if self.away[seat] != away:
            self.away[seat] = away
            for sid in tuple(self.sockets[1 - seat]):
                send("presence", sid, {"on": not away})


class Rooms:
    """All rooms of this process."""

    def __init__(self, database: Engine, home: Path, send: Send, remember: Remember) -> None:
        """`home` is PARLOR_HOME; `remember` is told of each match that was read, so that its first move need not read
        it again.
        """
        self._database = database
        self._home = home
        self._remember = remember
        self._send = send
        self._rooms: dict[str, Room] = {}
        self._prepared: set[str] = set()  # games
        self._opening = RLock()  # rooms open and close one at a time

    def open(self, match_id: str) -> Room:
        """The match's room. Raises NotFound."""
        with self._opening:
            if match_id not in self._rooms:
                with reading(self._database) as session:
                    record = load(session, match_id)
                self._rooms[match_id] = Room(record, self._home)
                self._prepare_game(record.match.game)
                self._remember(record)
            return self._rooms[match_id]

    def _prepare_game(self, game: Game[Any]) -> None:
        """Have a game load what its moves need when it is first met, in a real thread."""
        if game.name not in self._prepared:
            self._prepared.add(game.name)
            get_hub().threadpool.spawn(game.prepare)

    def enter(self, match_id: str, seat: int, sid: str) -> None:
        """Send the newcomer its view, and from then on every change."""
        with self._opening:
            room = self.open(match_id)
            with room.lock:
                if not room.just_read:
                    self._catch_up(room)
                room.just_read = False
                room.sockets[seat].add(sid)
                self._send("view", sid, room.view(seat))
                if (typing := room.typing[1 - seat]) is not False:
                    self._send("typing", sid, _typing_payload(typing))
                if room.away[1 - seat]:
                    self._send("presence", sid, {"on": False})
                room.tell_presence(seat, self._send)
                self._look_later(room, 1 - seat)

    def leave(self, match_id: str, seat: int, sid: str) -> None:
        """Remove a socket that is gone; an empty room is closed."""
        with self._opening:
            room = self._rooms.get(match_id)
            if room is not None:
                room.sockets[seat].discard(sid)
                if room.empty:
                    del self._rooms[match_id]
                else:
                    self._look_later(room, seat)

    def _look_later(self, room: Room, seat: int) -> None:
        """Tell the partner of a person who is still not connected after a while."""
        if room.missing(seat):
            spawn_later(PATIENCE, self._tell_presence_to_partner, room, seat)

    def _tell_presence_to_partner(self, room: Room, seat: int) -> None:
        with room.lock:
            room.tell_presence(seat, self._send)
            if room.away[seat]:
                room.tell_typing(seat, False, self._send)

    def show(self, match_id: str, seat: int, sid: str) -> None:
        """Send one socket its whole view, as it is in the database now or was a moment ago.

        A page that asks repeatedly is answered from memory. Changes that others may have made meanwhile are read at the
        end of that moment, and shown like any other change.
        """
        if room := self._rooms.get(match_id):
            with room.lock:
                left = room.read_at + FRESH - time.monotonic()
                if left <= 0:
                    self._catch_up(room)
                    room.read_at = time.monotonic()
                elif not room.reads_soon:
                    room.reads_soon = True
                    spawn_later(left, self._read_late, room)
                self._send("view", sid, room.view(seat))

    def _read_late(self, room: Room) -> None:
        room.reads_soon = False
        # Without the database there is nothing to show, and the next request is told so.
        with contextlib.suppress(SQLAlchemyError), room.lock:
            if not room.empty:
                self._catch_up(room)
                room.read_at = time.monotonic()

    def ply(self, match_id: str) -> int:
        """Accepted moves so far, as this process knows them."""
        room = self._rooms.get(match_id)
        return 0 if room is None else room.record.match.ply

    def follow(self, steps: Sequence[StoredMatch]) -> None:
        """Show the steps of a receipt, all of one match."""
        if room := self._rooms.get(steps[0].id):
            with room.lock:
                room.follow(steps, self._send)

    def refresh(self, match_id: str) -> None:
        """Show what others have added to the log."""
        if room := self._rooms.get(match_id):
            with room.lock:
                self._catch_up(room)

    def refresh_all(self) -> None:
        """Check every room against the database, and let others run in between."""
        for match_id in list(self._rooms):
            self.refresh(match_id)
            sleep(0)

    def look_again(self) -> None:
        """Update the rooms that wait for a worker or upkeep: one that is killed between its commit and its notice
        announces nothing.
        """
        now = datetime.now(UTC)
        waiting = {room.id: room.record.match for room in list(self._rooms.values()) if room.waits(now)}
        columns = select(MatchRow.id, MatchRow.ply, MatchRow.status, MatchRow.lease_until)
        for start in range(0, len(waiting), 500):
            ids = list(waiting)[start : start + 500]
            with reading(self._database) as session:
                rows = session.execute(columns.where(MatchRow.id.in_(ids))).all()
            for row in rows:
                if (waiting[row.id].ply, waiting[row.id].over) != (row.ply, row.status == "over"):
                    self.refresh(row.id)
                    sleep(0)
                elif row.lease_until is not None and row.lease_until > now:  # a worker is playing the turn
                    self.typing(row.id, None, True)

    def typing(self, match_id: str, seat: int | None, on: Typing) -> None:
        """Tell the other seat that this one is writing; None is the seat whose turn it is.

        A model that could not begin yet is shown as such until it has moved.
        """
        room = self._rooms.get(match_id)
        if room is None or room.record.match.over:
            return
        with room.lock:
            if seat is None:
                seat = room.record.match.to_move
                if seat is None or room.record.seats[seat].kind == PERSON:
                    return
                on = None if on and room.typing[seat] is None else on
            room.tell_typing(seat, on, self._send)

    def _catch_up(self, room: Room) -> None:
        with reading(self._database) as session:
            new = load_log(session, room.id, after=len(room.record.log) - 1)
        room.follow(room.record.followed(new), self._send)


def _typing_payload(on: Typing) -> JSON:
    return {"on": True, "ready": False} if on is None else {"on": on}


_compact = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def sender(server: Any, namespace: str) -> Send:
    """The function with which a room sends to a socket."""

    def send(event: str, sid: str, payload: JSON) -> None:
        # Like `server.emit`, but without looking for others in a room that only ever holds one socket.
        connection = server.manager.eio_sid_from_sid(sid, namespace)
        if connection is not None:
            server.eio.send(connection, f"2{namespace},{_compact([event, payload])}")

    return send
