"""A match as the database holds it: its seats, its log, and the fold of it. Reading only; `store` writes."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from app.errors import NotFound
from app.games.base import Event
from app.matches import engine
from app.matches.clocks import Deadline, next_deadline
from app.matches.events import LogEvent, from_json
from app.models import EventRow, LanguageModel, MatchRow, SeatRow
from app.players.base import PlayerSpec
from app.registry import PERSON, player_spec

MODEL = "model"


@dataclass(frozen=True, slots=True)
class Seat:
    """Who fills a seat: a person, or the language model of that registry row."""

    kind: str
    language_model_id: int | None = None
    spec: PlayerSpec | None = None

    @classmethod
    def of(cls, row: LanguageModel | None) -> "Seat":
        return cls(PERSON) if row is None else cls(MODEL, row.id, player_spec(row))


@dataclass(frozen=True, slots=True)
class Logged:
    """An event with its place in the log. `ply` counts the accepted moves before it."""

    seq: int
    ply: int
    event: LogEvent
    at: datetime
    move_id: str | None = None

    @property
    def seat(self) -> int | None:
        return getattr(self.event, "seat", None)


@dataclass(frozen=True, slots=True)
class Record:
    """A match, whole, at one moment."""

    id: str
    seed: int
    seats: tuple[Seat, Seat]
    log: tuple[Logged, ...]
    match: engine.Match

    @property
    def mover(self) -> Seat | None:
        return None if self.match.to_move is None else self.seats[self.match.to_move]

    @property
    def model_to_move(self) -> bool:
        return self.mover is not None and self.mover.kind == MODEL

    @property
    def deadline(self) -> Deadline | None:
        """When the match ends by itself if nothing happens."""
        if self.match.over:
            return None
        person = self.mover is not None and self.mover.kind == PERSON
        return next_deadline(self.match.clocks, self.log[0].at, turn_began(self.log), person)

    def extended(self, event: LogEvent, at: datetime, move_id: str | None = None) -> "Record":
        """This record after one more event."""
        logged = Logged(len(self.log), self.match.ply, event, at, move_id)
        return Record(self.id, self.seed, self.seats, (*self.log, logged), engine.apply(self.match, event))


def move_times(log: Sequence[Logged]) -> list[str]:
    """When each accepted move was made, by ply, as the protocol writes times."""
    return [iso(logged.at) for logged in log if isinstance(logged.event, Event)]


def turn_began(log: Sequence[Logged]) -> datetime:
    """When the present turn began: with the last accepted move, or with the match."""
    return next(logged.at for logged in reversed(log) if logged.seq == 0 or isinstance(logged.event, Event))


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_match_id() -> str:
    """An id that cannot be guessed: 128 bits, safe in a URL, as an argument and in a spreadsheet."""
    drawn = secrets.token_urlsafe(16)
    return new_match_id() if drawn.startswith("-") else drawn


def load(session: Session, match_id: str, *, lock: bool = False) -> Record:
    """Read a match. `lock` keeps others from appending until the transaction ends. Raises NotFound."""
    rows = session.execute(_SEATS_LOCKED if lock else _SEATS, {"match": match_id}).all()
    if len(rows) != 2:
        raise NotFound(f"match: expected one that exists, got {match_id!r}")
    seats = tuple(Seat.of(row.LanguageModel) for row in rows)
    log = load_log(session, match_id)
    return Record(match_id, rows[0].seed, cast(tuple[Seat, Seat], seats), log, engine.replay(x.event for x in log))


def load_log(session: Session, match_id: str, after: int = -1) -> tuple[Logged, ...]:
    """The events of a match whose seq is above `after`, in order."""
    rows = session.execute(_EVENTS, {"match": match_id, "after": after})
    return tuple(Logged(row.seq, row.ply, from_json(row.body), row.at, row.move_id) for row in rows)


# Made once: a match is read when a page opens it, and putting a statement together takes as long as running it.
_SEATS = (
    select(MatchRow.seed, SeatRow.kind, LanguageModel)
    .join(SeatRow, SeatRow.match_id == MatchRow.id)
    .outerjoin(LanguageModel, LanguageModel.id == SeatRow.language_model_id)
    .where(MatchRow.id == bindparam("match"))
    .order_by(SeatRow.seat)
)
_SEATS_LOCKED = _SEATS.with_for_update(of=MatchRow)
_EVENTS = (
    select(EventRow.seq, EventRow.ply, EventRow.body, EventRow.at, EventRow.move_id)
    .where(EventRow.match_id == bindparam("match"), EventRow.seq > bindparam("after"))
    .order_by(EventRow.seq)
)
