"""Deletes what people wrote in matches: in the log and in the prompts of the models that read it. Nothing commits.

The match stays, marked as erased, with the parts of its moves that are not words and with its result; so does what
partners wrote.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import delete, select
from sqlalchemy.orm import Session, undefer

from app.games.base import Event
from app.matches import live
from app.matches.codings import forget_codes
from app.matches.events import LogEvent, Violated, from_json, to_json
from app.matches.text_index import index_again
from app.models import EventRow, GenerationRow, MatchRow, MatchSource, SeatRow

_ASSISTANT = "assistant"  # the role of the model's own texts
_AT_ONCE = 500  # events or calls in memory at once


class ErasedTexts(NamedTuple):
    """What was emptied: moves in logs, and model calls whose prompts contained them."""

    events: int = 0
    prompts: int = 0


def end_by_leaving(session: Session, match_id: str, seat: int) -> bool:
    """End a match in progress because the person in the seat leaves. False if it is over."""
    if session.get_one(MatchRow, match_id).status == "over":
        return False
    return bool(live.submit(session, live.MoveSubmission(match_id, seat, None), instant=False).new)


def erase_texts(session: Session, match_id: str, seats: Collection[int]) -> ErasedTexts:
    """Empty what the people in these seats of a finished match wrote. A second call finds nothing.

    The match may not be used for training from then on.
    """
    match = session.get_one(MatchRow, match_id, with_for_update=True)
    match.erased_at = match.erased_at or datetime.now(UTC)
    for row in session.scalars(select(SeatRow).where(SeatRow.match_id == match_id, SeatRow.seat.in_(seats))):
        row.training_consent = False
    session.execute(delete(MatchSource).where(MatchSource.match_id == match_id))
    found = ErasedTexts(_empty_events(session, match_id, seats), empty_prompts(session, match_id))
    index_again(session, [match_id])
    forget_codes(session, match_id)
    return found


def empty_prompts(session: Session, match_id: str) -> int:
    """Empty all that models were told and thought in a match, as any of it may quote a person.

    Returns the number of these calls.
    """
    emptied = 0
    calls = select(GenerationRow).where(GenerationRow.match_id == match_id).options(undefer(GenerationRow.reasoning))
    for row in session.scalars(calls, execution_options={"yield_per": _AT_ONCE}):
        prompt = [each if each["role"] == _ASSISTANT else {**each, "content": ""} for each in row.prompt]
        if prompt != row.prompt or row.reasoning is not None:
            row.prompt, row.reasoning = prompt, None
            emptied += 1
    return emptied


def _empty_events(session: Session, match_id: str, seats: Collection[int]) -> int:
    emptied = 0
    own = select(EventRow).where(EventRow.match_id == match_id, EventRow.seat.in_(seats))
    for row in session.scalars(own, execution_options={"yield_per": _AT_ONCE}):
        body = to_json(_without_words(from_json(row.body)))
        if body != row.body or row.timing is not None:
            row.body, row.timing = body, None
            emptied += 1
    return emptied


def _without_words(event: LogEvent) -> LogEvent:
    """A move reduced to its figures, from which the game reaches the same state; any other event unchanged."""
    if isinstance(event, Event):
        return replace(event, text="", data=_without_texts(event.data))
    return replace(event, text="", reason="") if isinstance(event, Violated) else event


def _without_texts(value: Any) -> Any:
    """JSON with its texts emptied."""
    if isinstance(value, str):
        return ""
    if isinstance(value, list | tuple):
        return [_without_texts(each) for each in value]
    return {name: _without_texts(each) for name, each in value.items()} if isinstance(value, dict) else value
