"""Consents: to take part, to the training of models on what people write, and to its publication.

Nothing here commits.

Each answer is a row with the hash of the text that was read. The latest answer counts, also for earlier matches. A
match is used for training only if every person in it agreed, because the rows also contain what the partner wrote.
"""

import hashlib
import secrets
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, or_, select, update
from sqlalchemy.orm import Session

from app.models import Consent, Enrolment, MatchRow, Participant, SeatRow
from app.studies.progress import StudyProgress, log_event
from app.studies.withdrawn_data import WithdrawnData, withdraw_matches

PARTICIPATION, TRAINING, PUBLICATION = "participation", "training", "publication"


def give(
    session: Session,
    progress: StudyProgress,
    *,
    participation: bool,
    training: bool | None,
    publication: bool | None = None,
    text: str,
) -> None:
    """Record a person's answers to a consent text, at the first step and at the debrief; the same answer adds nothing.

    `training` and `publication` are None if they were not asked. A no to either also applies to what was played before.
    """
    participant_id = progress.enrolment.participant_id
    asked = {PARTICIPATION: participation, TRAINING: training, PUBLICATION: publication}
    answers = {kind: given for kind, given in asked.items() if given is not None}
    new = [kind for kind, given in answers.items() if _add_answer(session, participant_id, kind, given, text)]
    if new:
        log_event(session, progress, "consent", {kind: answers[kind] for kind in new})
    if TRAINING in new:
        set_seats(session, participant_id, agreed=bool(training))


def training_consent(session: Session, participant_id: int) -> bool | None:
    """Whether the person currently agrees to training on what they write; None if that was not asked."""
    return _agrees(session, participant_id, TRAINING)


def publication_consent(session: Session, participant_id: int) -> bool | None:
    """Whether the person currently agrees to publication of what they write; None if that was not asked."""
    return _agrees(session, participant_id, PUBLICATION)


def withdraw_publication(session: Session, participant_id: int) -> None:
    """Withdraw consent to publish what the person wrote: no more of it is published. Published copies remain public."""
    _withdraw_consent(session, participant_id, PUBLICATION)


def withdraw_training(session: Session, participant_id: int) -> WithdrawnData:
    """Withdraw consent to train models on what the person wrote, and so to publish it.

    Returns the consequences for training.
    """
    _withdraw_consent(session, participant_id, TRAINING)
    _withdraw_consent(session, participant_id, PUBLICATION)
    return set_seats(session, participant_id, agreed=False)


def set_seats(session: Session, participant_id: int, *, agreed: bool) -> WithdrawnData:
    """Set the consent on the person's seats, except in matches with deleted parts, which stay excluded.

    Returns the consequences of a no for training.
    """
    seats = select(SeatRow).join(MatchRow, MatchRow.id == SeatRow.match_id).where(seats_of(participant_id))
    rows = session.scalars(seats.where(MatchRow.erased_at.is_(None)) if agreed else seats).all()
    for row in rows:
        row.training_consent = agreed
    session.flush()
    return WithdrawnData() if agreed else withdraw_matches(session, [row.match_id for row in rows])


def seats_of(participant_id: int) -> ColumnElement[bool]:
    """The seats of a person, for a WHERE over SeatRow."""
    enrolments = select(Enrolment.id).where(Enrolment.participant_id == participant_id)
    return or_(SeatRow.participant_id == participant_id, SeatRow.enrolment_id.in_(enrolments))


# ---- Guests ---------------------------------------------------------------------


def find_guest(session: Session, code: str) -> Participant | None:
    """The guest with that code, if there is one whose data were not deleted."""
    guests = select(Participant).where(Participant.study_id.is_(None), Participant.erased_at.is_(None))
    return session.scalar(guests.where(Participant.code == code))


def find_or_add_guest(session: Session, code: str | None) -> Participant:
    """The guest with that code, or a new one if it does not exist or its data were deleted."""
    row = None if code is None else find_guest(session, code)
    if row is None:
        row = Participant(code=f"guest-{secrets.token_hex(8)}", created_at=datetime.now(UTC))
        session.add(row)
        session.flush()
    return row


def answer_of_guest(session: Session, guest: Participant, training: bool, text: str) -> None:
    """Record a guest's answer to the question about training; the same answer again changes nothing."""
    if _add_answer(session, guest.id, TRAINING, training, text):
        set_seats(session, guest.id, agreed=training)


# ---- Answers --------------------------------------------------------------------


def _agrees(session: Session, participant_id: int, kind: str) -> bool | None:
    latest = _latest_consent(session, participant_id, kind)
    return None if latest is None else latest.given and latest.withdrawn_at is None


def _withdraw_consent(session: Session, participant_id: int, kind: str) -> None:
    given = (Consent.participant_id == participant_id, Consent.kind == kind, Consent.given.is_(True))
    now = datetime.now(UTC)
    session.execute(update(Consent).where(*given, Consent.withdrawn_at.is_(None)).values(withdrawn_at=now))


def _latest_consent(session: Session, participant_id: int, kind: str) -> Consent | None:
    rows = select(Consent).where(Consent.participant_id == participant_id, Consent.kind == kind)
    return session.scalar(rows.order_by(Consent.id.desc()).limit(1))


def _add_answer(session: Session, participant_id: int, kind: str, given: bool, text: str) -> bool:
    """Add an answer. False if it is the one that already counts."""
    version = hashlib.sha256(text.encode()).hexdigest()
    latest = _latest_consent(session, participant_id, kind)
    same = latest is not None and (latest.given, latest.text_version) == (given, version)
    if latest is not None and same and latest.withdrawn_at is None:
        return False
    now = datetime.now(UTC)
    session.add(Consent(participant_id=participant_id, kind=kind, text_version=version, given=given, at=now))
    session.flush()
    return True
