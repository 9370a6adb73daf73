"""Imported games as a round of the database, and a round as games for an exporter."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Invalid, Verbatim
from app.core.extensions import Transact, in_turn
from app.datasets.importers.dialogues import Dialogues
from app.datasets.importers.lm_selfplay import LmSelfplay
from app.datasets.importers.spag import Spag
from app.datasets.records import PERSON, ImportedMatch, ImportedSeat
from app.games.base import JSON, Event
from app.jobs import states
from app.matches import engine, store
from app.matches.counts import delete_matches
from app.matches.events import Aborted, Violated, from_json
from app.matches.filter import is_over
from app.matches.stored import LoggedEvent, StoredMatch, new_match_id
from app.matches.stored import StoredSeat as RecordSeat
from app.models import EventRow, MatchRow, MatchSource, RoundRange, RoundRow
from app.rounds import ranges
from app.rounds.job import IMPORT, ROUND
from app.rounds.plan import IN_ORDER

AT_ONCE = 200  # matches in memory, and in one transaction
_SEATS = (ImportedSeat(PERSON), ImportedSeat(PERSON))  # exported formats do not name players


class ImportSource(Protocol):
    """The games of one source, as an importer provides them; it can be iterated repeatedly."""

    @property
    def game(self) -> str: ...

    def __iter__(self) -> Iterator[ImportedMatch]: ...


@dataclass(frozen=True, slots=True)
class Import:
    """A source to import: its path, its game, and the config common to all of its matches."""

    source: ImportSource
    path: Path
    game: str
    config: JSON


def lm_selfplay(folder: str, objective: str | float, limit: int) -> Import:
    """The output folder of published self-play. Raises Invalid."""
    source = LmSelfplay(folder, objective, limit)
    return Import(source, source.folder, source.game, {"objective": source.objective, "limit": limit})


def spag(file: str, rule: str) -> Import:
    """A file of recorded games of Adversarial Taboo. Raises Invalid."""
    source = Spag(file, rule)
    return Import(source, source.file, source.game, {"rule": rule})


def dialogues(file: str) -> Import:
    """A file of human dialogues on Deal or No Deal."""
    source = Dialogues(file)
    return Import(source, source.file, source.game, {"objective": "self"})


# ---- In ----------------------------------------------------------------------


def take_in(
    transact: Transact, wanted: Import, matches: Iterable[ImportedMatch], number: int, player: str, seconds: float
) -> int:
    """Store games as a finished round, and return its number.

    `matches` are those of the source, possibly wrapped in a progress bar, and `number` is how many are expected;
    `player` is the name for models without one, `seconds` how long a killed import counts as running. The games are
    stored in short transactions, so that players do not wait for them. If one fails, or the round is cancelled, all of
    them are deleted; the remains of a killed import are deleted by the next one. Raises Invalid, as reading does, and
    for no games, and Conflict if the round is cancelled.
    """
    if number == 0:
        raise Invalid(None, expected="games", got=Verbatim("none"), subject=wanted.path)
    for forgotten in transact(_forgotten):
        _remove_round(transact, forgotten)
    owner = f"import-{uuid4().hex}"
    now = datetime.now(UTC)
    round_id = transact(lambda session: _begin_round(session, wanted, number, owner, now, seconds))
    write = partial(_write_round, round_id=round_id, owner=owner, seconds=seconds, player=player, now=now)
    try:
        each = iter(matches)
        while batch := list(islice(each, AT_ONCE)):
            in_turn(transact, partial(write, batch=batch))
        transact(lambda session: _end_round(session, round_id, wanted.path))
    except BaseException:
        _remove_round(transact, round_id)
        raise
    return round_id


def _begin_round(session: Session, wanted: Import, number: int, owner: str, now: datetime, seconds: float) -> int:
    row = RoundRow(
        name=engine.readable(wanted.path.resolve().name)[:120],
        game=wanted.game,
        source=IMPORT,
        status=states.RUNNING,
        config=wanted.config,
        matches=number,
        seed=0,
        pick=IN_ORDER,
        sampling={},
        finished=0,
        aborted=0,
        moves=0,
        violations=0,
        created_at=now,
        started_at=now,
    )
    session.add(row)
    session.flush()
    until = now + timedelta(seconds=seconds)
    session.add(RoundRange(round_id=row.id, start=0, stop=number, lease_owner=owner, lease_until=until))
    return row.id


def _write_round(
    session: Session,
    *,
    round_id: int,
    owner: str,
    seconds: float,
    batch: Sequence[ImportedMatch],
    player: str,
    now: datetime,
) -> None:
    """Store some of the games, and renew the lease of the import."""
    row = session.get_one(RoundRow, round_id, with_for_update=True)
    if row.status != states.RUNNING or not ranges.renew(session, round_id, (0,), owner, seconds):
        raise Conflict(
            "round",
            expected="to take its games in",
            got=Verbatim(f"one that was {row.status} meanwhile"),
            subject=f"round {round_id}",
        )
    _insert_imported_matches(session, round_id, batch, player, now)
    events = [event for match in batch for event in match.events]
    row.finished += len(batch)
    row.aborted += sum(isinstance(event, Aborted) for event in events)
    row.moves += sum(isinstance(event, Event) for event in events)
    row.violations += sum(isinstance(event, Violated) for event in events)


def _end_round(session: Session, round_id: int, path: Path) -> None:
    row = session.get_one(RoundRow, round_id, with_for_update=True)
    if row.finished != row.matches:
        raise Invalid(
            None,
            expected=f"{row.matches} games, as when it was checked",
            got=row.finished,
            remedy="try again",
            subject=path,
        )
    row.status, row.ended_at = states.DONE, datetime.now(UTC)
    ranges.finish(session, round_id, (0,))


def _forgotten(session: Session) -> Sequence[int]:
    """Rounds whose import was killed."""
    now = datetime.now(UTC)
    left = select(RoundRow.id).where(RoundRow.source == IMPORT, RoundRow.status != states.DONE, ~ROUND.held(now))
    return session.scalars(left).all()


def _remove_round(transact: Transact, round_id: int) -> None:
    while in_turn(transact, partial(_remove_some, round_id=round_id)):
        pass
    transact(lambda session: session.execute(delete(RoundRow).where(RoundRow.id == round_id)))


def _remove_some(session: Session, round_id: int) -> int:
    some = session.scalars(select(MatchRow.id).where(MatchRow.round_id == round_id).limit(AT_ONCE)).all()
    delete_matches(session, some)
    return len(some)


def _insert_imported_matches(
    session: Session, round_id: int, batch: Sequence[ImportedMatch], player: str, now: datetime
) -> None:
    begun = [
        store.NewMatch(_record(match, player, now), IMPORT, round_id, match.index, match.tokens) for match in batch
    ]
    store.insert_matches(session, begun)
    facts = [
        {"match_id": each.record.id, "facts": match.facts}
        for each, match in zip(begun, batch, strict=True)
        if match.facts
    ]
    if facts:
        session.execute(insert(MatchSource), facts)


def _record(match: ImportedMatch, player: str, now: datetime) -> StoredMatch:
    first, second = (
        RecordSeat(seat.kind, player=None if seat.kind == PERSON else seat.player or player) for seat in match.seats
    )
    folded = engine.replay(match.events[:1])
    record = StoredMatch(new_match_id(), 0, (first, second), (LoggedEvent(0, 0, match.events[0], now),), folded)
    return record.extended(match.events[1:], now)


# ---- Out ---------------------------------------------------------------------


def games_of(session: Session, round_id: int, game: str) -> tuple[int, Iterator[ImportedMatch]]:
    """The number of matches to export from a round, and the matches in the order of their index, read in batches.

    Raises NotFound for an unknown round, Invalid for one of another game, and Conflict for one that is not over yet.
    """
    row = ROUND.get(session, round_id)
    if row.game != game:
        raise Invalid(
            "round", expected=f"one of {game}", got=Verbatim(f"one of {row.game}"), subject=f"round {round_id}"
        )
    over = MatchRow.round_id == round_id, is_over()
    number = session.scalar(select(func.count()).select_from(MatchRow).where(*over)) or 0
    if number < row.matches:
        raise Conflict(
            "round",
            expected=f"one of which all {row.matches} matches are over",
            got=Verbatim(f"{number} that are"),
            remedy=f"`flask round resume {round_id}` plays the rest",
            subject=f"round {round_id}",
        )
    return number, _read_games_of_round(session, round_id)


def _read_games_of_round(session: Session, round_id: int) -> Iterator[ImportedMatch]:
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
