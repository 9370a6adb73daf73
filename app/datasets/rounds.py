"""Imported games as a round of the database, and a round as games for an exporter. Nothing here commits."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from app import states
from app.datasets.importers.dialogues import Dialogues
from app.datasets.importers.lm_selfplay import LmSelfplay
from app.datasets.importers.spag import Spag
from app.datasets.records import PERSON, ImportedMatch, Seat
from app.errors import Conflict, Invalid
from app.games.base import JSON, Event
from app.matches import engine, store
from app.matches.events import Aborted, Violated, from_json
from app.matches.record import Logged, Record, new_match_id
from app.matches.record import Seat as RecordSeat
from app.models import EventRow, MatchRow, MatchSource, RoundRow
from app.rounds import life
from app.rounds.plan import IN_ORDER

AT_ONCE = 200  # matches in memory
_SEATS = (Seat(PERSON), Seat(PERSON))  # who played is no part of the formats that are written


class Source(Protocol):
    """What an importer gives: the games of one source, as often as they are asked for."""

    def __iter__(self) -> Iterator[ImportedMatch]: ...


@dataclass(frozen=True, slots=True)
class Import:
    """A source to be taken in: what it is called, its game, and what all of its matches have in common."""

    source: Source
    path: Path
    game: str
    config: JSON


def lm_selfplay(folder: str, objective: str | float, limit: int) -> Import:
    """The output folder of published self-play. Raises Invalid."""
    source = LmSelfplay(folder, objective, limit)
    return Import(source, source.folder, "negotiation", {"objective": source.objective, "limit": limit})


def spag(file: str, rule: str) -> Import:
    """A file of recorded games of Adversarial Taboo. Raises Invalid."""
    source = Spag(file, rule)
    return Import(source, source.file, "taboo", {"rule": rule})


def dialogues(file: str) -> Import:
    """A file of human dialogues on Deal or No Deal."""
    source = Dialogues(file)
    return Import(source, source.file, "negotiation", {"objective": "self"})


# ---- In ----------------------------------------------------------------------


def take_in(session: Session, wanted: Import, matches: Iterable[ImportedMatch], player: str) -> RoundRow:
    """Write the games down as a round that is over; `player` is what models without a name are called.

    `matches` are those of the source, perhaps watched by a bar. Raises Invalid, as reading does, and for no games.
    """
    now = datetime.now(UTC)
    row = RoundRow(
        name=engine.readable(wanted.path.resolve().name)[:120],
        game=wanted.game,
        source=life.IMPORT,
        status=states.DONE,
        config=wanted.config,
        matches=0,
        seed=0,
        pick=IN_ORDER,
        sampling={},
        finished=0,
        aborted=0,
        moves=0,
        violations=0,
        created_at=now,
        started_at=now,
        ended_at=now,
    )
    session.add(row)
    session.flush()
    each = iter(matches)
    while batch := list(islice(each, AT_ONCE)):
        _insert(session, row.id, batch, player, now)
        events = [event for match in batch for event in match.events]
        row.matches += len(batch)
        row.aborted += sum(isinstance(event, Aborted) for event in events)
        row.moves += sum(isinstance(event, Event) for event in events)
        row.violations += sum(isinstance(event, Violated) for event in events)
    if row.matches == 0:
        raise Invalid(f"{wanted.path}: expected games, got none")
    row.finished = row.matches
    session.flush()
    return row


def _insert(session: Session, round_id: int, batch: Sequence[ImportedMatch], player: str, now: datetime) -> None:
    begun = [
        store.Begun(_record(match, player, now), life.IMPORT, round_id, match.index, match.tokens) for match in batch
    ]
    store.insert_matches(session, begun)
    facts = [
        {"match_id": each.record.id, "facts": match.facts}
        for each, match in zip(begun, batch, strict=True)
        if match.facts
    ]
    if facts:
        session.execute(insert(MatchSource), facts)


def _record(match: ImportedMatch, player: str, now: datetime) -> Record:
    first, second = (
        RecordSeat(seat.kind, player=None if seat.kind == PERSON else seat.player or player) for seat in match.seats
    )
    folded = engine.replay(match.events[:1])
    record = Record(new_match_id(), 0, (first, second), (Logged(0, 0, match.events[0], now),), folded)
    return record.extended(match.events[1:], now)


# ---- Out ---------------------------------------------------------------------


def games_of(session: Session, round_id: int, game: str) -> tuple[int, Iterator[ImportedMatch]]:
    """How many matches of a round are to be written, and these in the order of their index, a few at a time.

    Raises NotFound for a round that there is not, Invalid for one of another game, and Conflict for one that is not
    over yet.
    """
    row = life.get_round(session, round_id)
    if row.game != game:
        raise Invalid(f"round {round_id}: expected one of {game}, got one of {row.game}")
    over = MatchRow.round_id == round_id, MatchRow.status == "over"
    number = session.scalar(select(func.count()).select_from(MatchRow).where(*over)) or 0
    if number < row.matches:
        raise Conflict(
            f"round {round_id}: expected one of which all {row.matches} matches are over, got {number} that are;"
            f" `flask round resume {round_id}` plays the rest"
        )
    return number, _games(session, round_id)


def _games(session: Session, round_id: int) -> Iterator[ImportedMatch]:
    last = -1
    while True:
        rows = session.execute(
            select(MatchRow.id, MatchRow.index.label("place"), MatchRow.game, MatchRow.tokens, MatchSource.facts)
            .outerjoin(MatchSource, MatchSource.match_id == MatchRow.id)
            .where(MatchRow.round_id == round_id, MatchRow.index > last)
            .order_by(MatchRow.index)
            .limit(AT_ONCE)
        ).all()
        if not rows:
            return
        logs: dict[str, list[Any]] = {row.id: [] for row in rows}
        events = select(EventRow.match_id, EventRow.body).where(EventRow.match_id.in_(logs)).order_by(EventRow.seq)
        for event in session.execute(events):
            logs[event.match_id].append(from_json(event.body))
        for row in rows:
            yield ImportedMatch(row.place, row.game, {}, tuple(logs[row.id]), _SEATS, row.facts or {}, row.tokens)
        last = rows[-1].place
