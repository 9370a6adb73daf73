"""All that is known of one person in a wave."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import NotFound, Phrase
from app.models import Arm, Consent, Enrolment, MatchRow, Participant, Payment, SeatRow, StudyEvent, Submission
from app.studies.monitor.waves import FoundWave, wave_by_id

_EVENTS = 500  # events shown of a person


class PersonMatch(NamedTuple):
    """A match of a person. `position` counts from 0; None is practice."""

    row: MatchRow
    seat: int


class PersonDetail(NamedTuple):
    """Everything that is known about a person in a wave, except their identity."""

    enrolment: Enrolment
    participant: Participant
    found: FoundWave
    arm: Arm | None
    events: Sequence[StudyEvent]
    matches: Sequence[PersonMatch]
    payments: Sequence[Payment]
    consents: Sequence[Consent]
    submissions: Sequence[Submission]


def person(session: Session, enrolment_id: int) -> PersonDetail:
    """A person by enrolment id. Raises NotFound if the enrolment does not exist or is in no wave."""
    enrolment = session.get(Enrolment, enrolment_id)
    if enrolment is None or enrolment.wave_id is None:
        raise NotFound("enrolment", expected=Phrase("one that exists"), got=enrolment_id)
    matches = session.execute(
        select(MatchRow, SeatRow.seat)
        .join(SeatRow, SeatRow.match_id == MatchRow.id)
        .where(SeatRow.enrolment_id == enrolment_id)
        .order_by(MatchRow.started_at, MatchRow.id)
    )
    events = select(StudyEvent).where(StudyEvent.enrolment_id == enrolment_id).order_by(StudyEvent.id.desc())
    consents = select(Consent).where(Consent.participant_id == enrolment.participant_id).order_by(Consent.id)
    return PersonDetail(
        enrolment,
        session.get_one(Participant, enrolment.participant_id),
        wave_by_id(session, enrolment.wave_id),
        None if enrolment.arm_id is None else session.get_one(Arm, enrolment.arm_id),
        session.scalars(events.limit(_EVENTS)).all()[::-1],
        [PersonMatch(*row) for row in matches],
        session.scalars(select(Payment).where(Payment.enrolment_id == enrolment_id).order_by(Payment.id)).all(),
        session.scalars(consents).all(),
        session.scalars(select(Submission).where(Submission.enrolment_id == enrolment_id)).all(),
    )
