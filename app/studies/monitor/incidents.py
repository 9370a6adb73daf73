"""Matches of a wave that were broken off without anybody's doing."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.models import Enrolment, MatchRow, Participant, SeatRow

_FAILURES = 20  # failures that are shown


class BrokenMatch(NamedTuple):
    """A match that a model or the server could not go on with, and whose it was."""

    match_id: str
    enrolment_id: int
    code: str
    at: datetime


def broken_matches(session: Session, wave_id: int) -> tuple[int, list[BrokenMatch]]:
    """How many matches of a wave were broken off without a person's doing, and the latest of them."""
    broken = (
        select(MatchRow.id, Enrolment.id, Participant.code, MatchRow.moved_at, func.count().over())
        .join(SeatRow, SeatRow.match_id == MatchRow.id)
        .join(Enrolment, Enrolment.id == SeatRow.enrolment_id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .where(Enrolment.wave_id == wave_id, MatchRow.reason == "aborted")
        .order_by(MatchRow.moved_at.desc())
        .limit(_FAILURES)
    )
    rows = session.execute(broken).all()
    return (rows[0][-1] if rows else 0), [BrokenMatch(*row[:-1]) for row in rows]
