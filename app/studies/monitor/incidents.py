"""Matches of a wave that were aborted by a model or the server."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.models import Enrolment, MatchRow, Participant, SeatRow

_FAILURES = 20  # failures shown


class BrokenMatch(NamedTuple):
    """A match that a model or the server could not continue, and the person it belonged to."""

    match_id: str
    enrolment_id: int
    code: str
    at: datetime


def broken_matches(session: Session, wave_id: int) -> tuple[int, list[BrokenMatch]]:
    """The number of a wave's matches that were not aborted by a person, and the latest of them."""
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
