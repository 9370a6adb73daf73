"""The failures of a round: the matches that a model could not continue."""

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.matches.events import Aborted, from_json
from app.models import EventRow, MatchRow

MOST = 5


@dataclass(frozen=True, slots=True)
class AbortedMatch:
    """An aborted match, and the reason."""

    match_id: str
    index: int
    fault: str  # model | us
    detail: str


def last_broken(session: Session, round_id: int) -> list[AbortedMatch]:
    """The most recently aborted matches of a round."""
    rows = session.execute(
        select(MatchRow.id, MatchRow.index.label("place"), EventRow.body)
        .join(EventRow, (EventRow.match_id == MatchRow.id) & (EventRow.kind == "aborted"))
        .where(MatchRow.round_id == round_id, MatchRow.reason == "aborted")
        .order_by(MatchRow.index.desc())
        .limit(MOST)
    )
    found = []
    for row in rows:
        event = from_json(row.body)
        if isinstance(event, Aborted):
            found.append(AbortedMatch(row.id, row.place, event.fault, event.detail))
    return found
