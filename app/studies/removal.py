"""Removing somebody from a wave, by an experimenter and for a reason. Nothing here commits."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Invalid, Phrase, Verbatim
from app.matches.erasing import end_by_leaving
from app.models import MatchRow, SeatRow
from app.studies import payments
from app.studies.endings import REMOVED
from app.studies.progress import StudyProgress, end

LONGEST_REASON = 200


def remove(session: Session, progress: StudyProgress, reason: str, by: str | None = None) -> None:
    """End an enrolment as removed, with the matches that are under way in it; what was earned is owed all the same.

    Raises Invalid for an invalid reason, and Conflict for somebody who has ended.
    """
    text = " ".join(reason.split())
    if not 0 < len(text) <= LONGEST_REASON:
        expected = Phrase("1 to %(most)s characters that say why", most=LONGEST_REASON)
        raise Invalid("reason", expected=expected, got=Verbatim(f"{len(text)}"))
    if not end(session, progress, REMOVED, reason=text, by=by):
        raise Conflict("participant", expected=Phrase("one who is under way"), got=Phrase("one who has ended"))
    under_way = (
        select(SeatRow.match_id, SeatRow.seat)
        .join(MatchRow, MatchRow.id == SeatRow.match_id)
        .where(SeatRow.enrolment_id == progress.enrolment.id, MatchRow.status != "over")
    )
    for match_id, seat in session.execute(under_way).all():
        end_by_leaving(session, match_id, seat)
    session.flush()
    payments.settle(session, progress)
