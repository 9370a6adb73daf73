"""Whose games were in which push. Nothing here commits."""

from collections.abc import Collection, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import Publication, PublishedPerson


def note_people(session: Session, number: int, participants: Collection[int]) -> None:
    """Record whose games a push holds; people recorded by an earlier try stay."""
    known = select(PublishedPerson.participant_id).where(PublishedPerson.publication_id == number)
    for person in sorted({*participants} - {*session.scalars(known)}):
        session.add(PublishedPerson(publication_id=number, participant_id=person))
    session.flush()


def published_with(session: Session, participant_id: int) -> Sequence[Publication]:
    """The pushes that hold a person's games or learned from them, in the order in which they were sent."""
    own = select(PublishedPerson.publication_id).where(PublishedPerson.participant_id == participant_id)
    rows = select(Publication).where(Publication.id.in_(own), Publication.sent_at.is_not(None))
    return session.scalars(rows.order_by(Publication.sent_at, Publication.id)).all()
