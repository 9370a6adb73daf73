"""Withdrawal and removal of people: stop now, delete my data. Nothing here commits.

Both can be requested again, which changes nothing. The files of datasets that become unusable are deleted by
`forget.delete_unusable_files` after the transaction, or by upkeep.
"""

from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, NotAllowed, Phrase, Verbatim
from app.matches.erasing import end_by_leaving
from app.models import MatchRow, Participant, SeatRow
from app.studies.deadlines import day_of
from app.studies.endings import COMPLETED, DECLINED, INACTIVE, REMOVED, WITHDRAWN, EndingName
from app.studies.forget import ForgetReport, forget_person
from app.studies.participant_steps import CONSENT, DEBRIEF
from app.studies.payments import read_reason, record_owed
from app.studies.progress import StudyProgress, end
from app.studies.retention import latest_day


def stop(session: Session, progress: StudyProgress, ending: EndingName = WITHDRAWN, **facts: Any) -> list[str]:
    """End a person's enrolment and its matches in progress, and record what is owed.

    Returns the ids of the matches that were ended.
    """
    under_way = (
        select(SeatRow.match_id, SeatRow.seat)
        .join(MatchRow, MatchRow.id == SeatRow.match_id)
        .where(SeatRow.enrolment_id == progress.enrolment.id, MatchRow.status != "over")
    )
    ended = [match_id for match_id, seat in session.execute(under_way) if end_by_leaving(session, match_id, seat)]
    end(session, progress, ending, **facts)
    record_owed(session, progress)
    return ended


def leave(session: Session, progress: StudyProgress, ending: EndingName = WITHDRAWN) -> list[str]:
    """End the enrolment of a person who leaves or is gone.

    A person at the debrief has completed the study; one who leaves before the consent has declined.

    Returns the ids of the matches that were ended.
    """
    if progress.step.kind == DEBRIEF:
        ending = COMPLETED
    elif progress.step.kind == CONSENT and ending != INACTIVE:
        ending = DECLINED
    return stop(session, progress, ending)


def remove(session: Session, progress: StudyProgress, reason: str, by: str | None = None) -> None:
    """End the enrolment of a person whom an experimenter removes; what was earned is still owed.

    Raises Invalid for an invalid reason, and Conflict for a person who has ended.
    """
    text = read_reason("reason", reason)
    if progress.enrolment.ending is not None:
        raise Conflict("participant", expected=Phrase("one who is under way"), got=Phrase("one who has ended"))
    stop(session, progress, REMOVED, reason=text, by=by)


def delete_data(session: Session, person: StudyProgress | Participant, *, at_debrief: bool = False) -> ForgetReport:
    """Delete all that a person wrote and answered, until the day that the design states.

    After that day, raises NotAllowed with it, except for people who are asked at the debrief, or whose data were
    already deleted.
    """
    participant_id = person.id if isinstance(person, Participant) else person.enrolment.participant_id
    participant = session.get_one(Participant, participant_id)
    day = last_day(session, participant_id)
    if not at_debrief and participant.erased_at is None and day is not None and day < datetime.now(UTC).date():
        raise NotAllowed(
            Phrase(
                "Your data could be deleted until %(day)s. They have been used since, and can no longer be taken out.",
                day=Verbatim(day.isoformat()),
            )
        )
    return forget_person(session, participant_id)


def last_day(session: Session, participant_id: int) -> date | None:
    """The last day on which a person's data can be deleted; None before it counts, or for a guest."""
    return latest_day(session, participant_id, lambda privacy, *at: day_of(privacy.delete_my_data_until, *at))
