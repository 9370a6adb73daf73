"""A match replayed, event by event, for experimenters: what happened, what each seat saw, what each model was asked.

None of this may reach a participant: both private views are side by side.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from app.games.base import JSON, Event
from app.matches import engine
from app.matches.events import Aborted, Violated, kind_of
from app.matches.stored import LoggedEvent, StoredMatch, move_times
from app.matches.views import seat_view
from app.models import GenerationRow


@dataclass(frozen=True, slots=True)
class TimelineStep:
    """An event of the log, and the model call that produced it, if any."""

    logged: LoggedEvent
    kind: str
    generation: GenerationRow | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """The whole log of a match in order, and the calls that failed without ending it, which left no event."""

    steps: list[TimelineStep]
    failed: list[GenerationRow]


def timeline_of(session: Session, record: StoredMatch) -> Timeline:
    """What happened in a match, and what its models were asked."""
    calls = select(GenerationRow).where(GenerationRow.match_id == record.id).options(undefer(GenerationRow.reasoning))
    rows = session.scalars(calls.order_by(GenerationRow.id)).all()
    last = {(row.seat, row.ply, row.attempt): row for row in rows}
    refused: Counter[tuple[int | None, int]] = Counter()
    found = []
    for logged in record.log:
        turn = (logged.seat, logged.ply)
        generation = None
        if logged.seat is not None and isinstance(logged.event, Event | Violated | Aborted):
            generation = last.pop((logged.seat, logged.ply, refused[turn]), None)
        if isinstance(logged.event, Violated):
            refused[turn] += 1
        found.append(TimelineStep(logged, kind_of(logged.event), generation))
    of_events = {id(step.generation) for step in found}
    return Timeline(found, [row for row in rows if row.error is not None and id(row) not in of_events])


def views_after(record: StoredMatch, seq: int) -> tuple[JSON, JSON]:
    """The views of both seats after the event `seq`."""
    log: Sequence[LoggedEvent] = record.log[: seq + 1]
    match = engine.replay(logged.event for logged in log)
    first, second = (seat_view(record.id, match, move_times(log), seat) for seat in (0, 1))
    return first, second
