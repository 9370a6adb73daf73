"""A match as the database holds it: its seats, its log, and the fold of it. Reading only; `store` writes."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from app.core.errors import NotFound, Phrase
from app.games.base import JSON, Event
from app.matches import engine
from app.matches.clocks import NO_CLOCKS, Clocks, Deadline, next_deadline
from app.matches.events import Ended, LogEvent, ServerAway, from_json
from app.matches.options import BOTH, MatchOptions
from app.models import EventRow, LanguageModel, MatchRow, SeatRow
from app.players.base import PlayerSpec
from app.players.prompts import USUAL_STYLE, asking_for_json, default_prompt, told_before
from app.registry import PERSON, player_spec

MODEL = "model"


@dataclass(frozen=True, slots=True)
class StoredSeat:
    """A seat's player: a person, or the language model of that registry row; `player` names one that is in no
    registry.
    """

    kind: str
    language_model_id: int | None = None
    spec: PlayerSpec | None = None
    player: str | None = None

    @classmethod
    def of(cls, row: LanguageModel | None) -> "StoredSeat":
        return cls(PERSON) if row is None else cls(MODEL, row.id, player_spec(row))

    @property
    def is_prompted(self) -> bool:
        """Whether the seat has a language model, which is prompted for its moves; scripted players are not."""
        return self.spec is not None and self.spec.kind != "scripted"

    def prompt(self, game: str) -> JSON | None:
        """How the seat's player is prompted, as a match's first event names it; None for a player that is not."""
        if self.spec is None or not self.is_prompted:
            return None
        prompt = default_prompt(game, self.spec.prompt_style or USUAL_STYLE)
        if self.spec.system is not None:
            prompt = told_before(prompt, self.spec.system, as_system=self.spec.kind == "api")
        return asking_for_json(game, prompt) if self.spec.structured else prompt


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event with its place in the log. `ply` counts the accepted moves before it.

    `timing` is how long a move took; it is written with a study match's log, and not read back.
    """

    seq: int
    ply: int
    event: LogEvent
    at: datetime
    move_id: str | None = None
    timing: Mapping[str, Any] | None = None

    @property
    def seat(self) -> int | None:
        return getattr(self.event, "seat", None)


@dataclass(frozen=True, slots=True)
class StoredMatch:
    """A whole match at one moment."""

    id: str
    seed: int
    seats: tuple[StoredSeat, StoredSeat]
    log: tuple[LoggedEvent, ...]
    match: engine.Match
    options: MatchOptions | None = None  # only in a match of a study

    @property
    def most_attempts(self) -> int:
        """The number of a model's attempts at one turn after which its match is aborted."""
        return engine.BAD_ATTEMPTS if self.options is None else self.options.retries + 1

    @property
    def feedback(self) -> str:
        """What its persons see of the points once it is over."""
        return BOTH if self.options is None else self.options.feedback

    @property
    def mover(self) -> StoredSeat | None:
        return None if self.match.to_move is None else self.seats[self.match.to_move]

    @property
    def model_to_move(self) -> bool:
        return self.mover is not None and self.mover.kind == MODEL

    @property
    def turn_seed(self) -> str:
        """The random seed of the attempt that is due."""
        return turn_seed(self.seed, self.match.to_move, self.match.ply, len(self.match.refused))

    @property
    def deadline(self) -> Deadline | None:
        """When the match ends by itself if nothing happens."""
        if self.match.over or self.match.clocks == NO_CLOCKS:
            return None
        person = self.mover is not None and self.mover.kind == PERSON
        started, began = self.log[0].at, turn_began(self.log)
        if away := [logged for logged in self.log if isinstance(logged.event, ServerAway)]:
            started, began = started + _time_away(away), max(began, away[-1].at)
        return next_deadline(self.match.clocks, started, began, person)

    def moved(
        self,
        seat: int,
        text: str | None,
        at: datetime,
        move_id: str | None = None,
        timing: Mapping[str, Any] | None = None,
    ) -> "StoredMatch":
        """The record after applying a move that the rules judge, or after resigning if `text` is None.

        The first of the new events answers `move_id`; `timing` is kept in study matches.
        """
        mover = self.seats[seat]
        events, match = engine.advance(
            self.match,
            seat,
            text,
            by_model=mover.kind == MODEL,
            lenient=mover.is_prompted and self.match.state.config.lenient,
            most_attempts=self.most_attempts,
        )
        return self._logged(events, match, at, move_id, None if self.options is None else timing)

    def extended(self, events: Sequence[LogEvent], at: datetime) -> "StoredMatch":
        """The record after events that are not moves."""
        return self._logged(events, engine.applied(self.match, events), at)

    def _logged(
        self,
        events: Sequence[LogEvent],
        match: engine.Match,
        at: datetime,
        move_id: str | None = None,
        timing: Mapping[str, Any] | None = None,
    ) -> "StoredMatch":
        """The record with the events in its log, and the match after them.

        Times never run backwards in a log: the writer may have waited for its lock since it read the clock, or its
        machine's clock may be behind.
        """
        log, ply, at = list(self.log), self.match.ply, max(at, self.log[-1].at)
        for event in events:
            log.append(LoggedEvent(len(log), ply, event, at, move_id, timing))
            ply += isinstance(event, Event)
            move_id = timing = None
        return StoredMatch(self.id, self.seed, self.seats, tuple(log), match, self.options)

    def followed(self, new: Sequence[LoggedEvent]) -> Iterator["StoredMatch"]:
        """The record after each accepted move among the events that others have added to its log, and after all of
        them.

        The end of a match belongs to the same step as the move that caused it.
        """
        log, match = self.log, self.match
        for number, logged in enumerate(new, 1):
            log, match = (*log, logged), engine.apply(match, logged.event)
            last = number == len(new)
            if last or (isinstance(logged.event, Event) and not isinstance(new[number].event, Ended)):
                yield StoredMatch(self.id, self.seed, self.seats, log, match, self.options)


def opened(
    game: str,
    config: Mapping[str, Any],
    seats: tuple[StoredSeat, StoredSeat],
    seed: int,
    clocks: Clocks = NO_CLOCKS,
    options: MatchOptions | None = None,
) -> StoredMatch:
    """A new match that nobody has stored yet. Raises NotFound for an unknown game, Invalid for a bad config."""
    prompts = seats[0].prompt(game), seats[1].prompt(game)
    started, match = engine.begin(game, dict(config), seed, prompts, clocks)
    return StoredMatch(new_match_id(), seed, seats, (LoggedEvent(0, 0, started, datetime.now(UTC)),), match, options)


def turn_seed(seed: int, seat: int | None, ply: int, attempt: int) -> str:
    """The random seed of an attempt: the same match gives the same game, wherever it is played."""
    return f"{seed}/{seat}/{ply}/{attempt}"


def move_times(log: Sequence[LoggedEvent]) -> list[str]:
    """When each accepted move was made, by ply, as the protocol writes times."""
    return [iso(logged.at) for logged in log if isinstance(logged.event, Event)]


def turn_began(log: Sequence[LoggedEvent]) -> datetime:
    """When the present turn began: with the last accepted move, or with the match."""
    return next(logged.at for logged in reversed(log) if logged.seq == 0 or isinstance(logged.event, Event))


def _time_away(away: Sequence[LoggedEvent]) -> timedelta:
    """How long the server was away in all, by its events."""
    return timedelta(seconds=sum(logged.event.seconds for logged in away if isinstance(logged.event, ServerAway)))


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_match_id() -> str:
    """An id that cannot be guessed: 128 bits, safe in a URL, as an argument and in a spreadsheet."""
    drawn = secrets.token_urlsafe(16)
    return new_match_id() if drawn.startswith("-") else drawn


def load(session: Session, match_id: str, *, lock: bool = False) -> StoredMatch:
    """Read a match. `lock` keeps others from appending until the transaction ends. Raises NotFound."""
    rows = session.execute(_SEATS_LOCKED if lock else _SEATS, {"match": match_id}).all()
    if len(rows) != 2:
        raise NotFound("match", expected=Phrase("one that exists"), got=match_id)
    seats = tuple(
        StoredSeat(MODEL, player=row.player) if row.player else StoredSeat.of(row.LanguageModel) for row in rows
    )
    log = load_log(session, match_id)
    return StoredMatch(
        match_id,
        rows[0].seed,
        cast(tuple[StoredSeat, StoredSeat], seats),
        log,
        engine.replay(x.event for x in log),
        None if rows[0].options is None else MatchOptions.from_json(rows[0].options),
    )


def load_log(session: Session, match_id: str, after: int = -1) -> tuple[LoggedEvent, ...]:
    """The events of a match whose seq is above `after`, in order."""
    rows = session.execute(_EVENTS, {"match": match_id, "after": after})
    return tuple(LoggedEvent(row.seq, row.ply, from_json(row.body), row.at, row.move_id) for row in rows)


# Built once: a match is read when a page opens it, and building a statement takes as long as running it.
_SEATS = (
    select(MatchRow.seed, MatchRow.options, SeatRow.player, LanguageModel)
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
