"""How people go back on taking part: stop now, delete my data, no more training on it. Nothing here commits.

Each of the three can be asked for again, which changes nothing. The files of datasets that become unusable are deleted
by `forget.delete_unusable_files` after the transaction, or by upkeep.
"""

from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import NotAllowed, Phrase, Verbatim
from app.matches.erasing import end_by_leaving
from app.models import Enrolment, MatchRow, Participant, SeatRow, StudyVersion, Wave
from app.studies import store
from app.studies.consents import withdraw_training
from app.studies.deadlines import day_of
from app.studies.endings import COMPLETED, DECLINED, INACTIVE, WITHDRAWN, EndingName
from app.studies.forget import ForgetReport, forget_person
from app.studies.participant_steps import CONSENT, DEBRIEF
from app.studies.payments import settle
from app.studies.progress import StudyProgress, end
from app.studies.withdrawn_data import WithdrawnData


def stop(session: Session, progress: StudyProgress, ending: EndingName = WITHDRAWN, **facts: Any) -> list[str]:
    """End a person's enrolment and the matches that are under way in it, and write what is owed.

    Returns the ids of the matches that were ended.
    """
    under_way = (
        select(SeatRow.match_id, SeatRow.seat)
        .join(MatchRow, MatchRow.id == SeatRow.match_id)
        .where(SeatRow.enrolment_id == progress.enrolment.id, MatchRow.status != "over")
    )
    ended = [match_id for match_id, seat in session.execute(under_way) if end_by_leaving(session, match_id, seat)]
    end(session, progress, ending, **facts)
    settle(session, progress)
    return ended


def leave(session: Session, progress: StudyProgress, ending: EndingName = WITHDRAWN) -> list[str]:
    """Stop for a person who leaves or is gone. Whoever is at the debrief has done all there was, and has completed it;
    whoever leaves before the consent has declined.

    Returns the ids of the matches that were ended.
    """
    if progress.step.kind == DEBRIEF:
        ending = COMPLETED
    elif progress.step.kind == CONSENT and ending != INACTIVE:
        ending = DECLINED
    return stop(session, progress, ending)


def delete_data(session: Session, person: StudyProgress | Participant, *, at_debrief: bool = False) -> ForgetReport:
    """Delete all that a person wrote and answered, until the day that the design names.

    Raises NotAllowed afterwards, with that day, but for whoever is asked at the debrief, and whose data were deleted
    before.
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
    """The last day on which a person's data can be deleted; None while it does not count, or for a guest."""
    rows = session.execute(
        select(Enrolment, StudyVersion, Wave.closed_at)
        .join(StudyVersion, StudyVersion.id == Enrolment.study_version_id)
        .outerjoin(Wave, Wave.id == Enrolment.wave_id)
        .where(Enrolment.participant_id == participant_id)
    )
    found = None
    for enrolment, version, closed_at in rows:
        until = store.design_of(version).privacy.delete_my_data_until
        if (day := day_of(until, enrolment.ended_at, closed_at)) is None:
            return None
        found = day if found is None else max(day, found)
    return found


def no_more_training(session: Session, participant: Participant) -> WithdrawnData:
    """Withdraw consent to train models on what the person wrote. Returns what follows for training."""
    return withdraw_training(session, participant.id)
