"""Deletes data automatically on its due day. Upkeep runs it once an hour; nothing here commits."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.matches.erasing import empty_prompts
from app.models import Enrolment, MatchRow, Participant, RecruitmentIdentity, StudyVersion, Submission, Wave
from app.studies.deadlines import day_of, last_linked_day
from app.studies.design import Privacy
from app.studies.forget import remove_identities, unpaid
from app.studies.store import design_of

LEASE = "retention"  # the lease that keeps everybody from running it again within the hour
EVERY = timedelta(hours=1)


def remove_what_is_due(session: Session, today: date | None = None) -> int:
    """Set the missing removal days of recruiters' ids, and remove ids whose day has passed; the number removed."""
    set_days(session)
    day = today or datetime.now(UTC).date()
    passed = select(RecruitmentIdentity.participant_id).where(RecruitmentIdentity.remove_on < day)
    return remove_identities(session, {*session.scalars(passed), *_paid_and_erased(session)})


def set_days(session: Session) -> None:
    """Set the removal day of each recruiter's id that has none, if it is known."""
    undated = session.scalars(select(RecruitmentIdentity).where(RecruitmentIdentity.remove_on.is_(None))).all()
    for identity in undated:
        identity.remove_on = latest_day(session, identity.participant_id, _day_of_ids)
    session.flush()


def unlinked_people(session: Session, today: date | None = None) -> list[int]:
    """The participants whose keyed hash must be removed.

    The last day of each of their enrolments has passed, and each wave is closed, because nothing else prevents a person
    from entering again.
    """
    day = today or datetime.now(UTC).date()
    rows = session.execute(
        select(Enrolment.participant_id, Enrolment.ended_at, StudyVersion, Wave.closed_at)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .join(StudyVersion, StudyVersion.id == Enrolment.study_version_id)
        .join(Wave, Wave.id == Enrolment.wave_id)
        .where(Participant.person_hash.is_not(None)),
        execution_options={"yield_per": 1000},
    )
    due: dict[int, bool] = {}
    for participant_id, ended_at, version, closed_at in rows:
        last = last_linked_day(design_of(version).privacy.link_deleted, ended_at, closed_at)
        due[participant_id] = due.get(participant_id, True) and last is not None and last < day
    return [participant_id for participant_id, passed in due.items() if passed]


def linked_until(session: Session, participant_id: int) -> date | None:
    """The last day on which a person's keyed hash is kept; None if it is not known yet, or if there is no enrolment."""
    return latest_day(session, participant_id, lambda privacy, *at: last_linked_day(privacy.link_deleted, *at))


def unlink(session: Session, participant_ids: Sequence[int]) -> None:
    """Remove the keyed hashes of participants, after which nobody can tell that one of them takes part again."""
    session.execute(update(Participant).where(Participant.id.in_(participant_ids)).values(person_hash=None))


def _day_of_ids(privacy: Privacy, took_part: datetime | None, closed: datetime | None) -> date | None:
    return day_of(privacy.vendor_ids_deleted, took_part, closed)


def latest_day(
    session: Session, participant_id: int, day: Callable[[Privacy, datetime | None, datetime | None], date | None]
) -> date | None:
    """The latest day of a person's enrolments; None while one of them does not count yet, or where there is none.

    `day` takes a design's privacy, when the person took part, and when the wave closed.
    """
    rows = session.execute(
        select(Enrolment.ended_at, StudyVersion, Wave.closed_at)
        .join(StudyVersion, StudyVersion.id == Enrolment.study_version_id)
        .outerjoin(Wave, Wave.id == Enrolment.wave_id)
        .where(Enrolment.participant_id == participant_id)
    )
    days = [day(design_of(version).privacy, ended_at, closed_at) for ended_at, version, closed_at in rows]
    known = [day for day in days if day is not None]
    return max(known) if known and len(known) == len(days) else None


def _paid_and_erased(session: Session) -> Sequence[int]:
    """People whose data were deleted, who still have an id stored, and who have been paid since."""
    named = select(RecruitmentIdentity.participant_id).union(
        select(Enrolment.participant_id)
        .join(Submission, Submission.enrolment_id == Enrolment.id)
        .where(Submission.external_id.is_not(None))
    )
    erased = select(Participant.id).where(Participant.erased_at.is_not(None), Participant.id.in_(named))
    return [number for number in session.scalars(erased) if not unpaid(session, number)]


def empty_late_prompts(session: Session) -> int:
    """Empty the prompts of models again in matches with recent deletions; the number of calls emptied.

    A model that was called before the deletion may have answered since.
    """
    lately = datetime.now(UTC) - 2 * EVERY
    matches = session.scalars(select(MatchRow.id).where(MatchRow.erased_at >= lately)).all()
    return sum(empty_prompts(session, match_id) for match_id in matches)
