"""Finding turns that nobody plays and clocks that have run out, and the lease of the one loop that looks for them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, and_, func, select, update
from sqlalchemy.orm import Session

from app.jobs import leases
from app.matches.clocks import LATE
from app.models import Lease, MatchRow

UPKEEP = "upkeep"  # the name of the upkeep loop's lease
PATIENCE = timedelta(seconds=3)  # how long a message to a worker may take before it counts as lost


def turn_is_free(now: datetime) -> ColumnElement[bool]:
    """Whether a model is to move in a live match and no worker is playing its turn, for a WHERE over MatchRow."""
    live = MatchRow.round_id.is_(None)  # rounds have leases of their own
    return and_(MatchRow.status == "playing", MatchRow.model_to_move, live, leases.free(MatchRow, now))


def take_forgotten_turns(session: Session, most: int = 500) -> Sequence[str]:
    """Ids of matches whose model turn should be sent to workers again. Marks them as sent."""
    now = datetime.now(UTC)
    heard_of = func.coalesce(MatchRow.enqueued_at, MatchRow.moved_at)
    forgotten = select(MatchRow.id).where(turn_is_free(now), heard_of < now - PATIENCE)
    # A match that is being written to is not forgotten, and a transaction that never waits is part of no deadlock.
    unlocked = forgotten.order_by(MatchRow.moved_at).limit(most).with_for_update(skip_locked=True, key_share=True)
    ids = session.scalars(unlocked).all()
    if ids:
        session.execute(update(MatchRow).where(MatchRow.id.in_(ids)).values(enqueued_at=now))
    return ids


def overdue_matches(session: Session, most: int = 500) -> Sequence[str]:
    """Ids of matches whose clock has run out, the longest overdue first."""
    overdue = and_(MatchRow.status == "playing", MatchRow.deadline <= datetime.now(UTC) - LATE)
    return session.scalars(select(MatchRow.id).where(overdue).order_by(MatchRow.deadline).limit(most)).all()


def abandoned_matches(session: Session, before: datetime, most: int = 500) -> Sequence[str]:
    """Ids of people's matches that nobody has touched since then, the longest untouched first."""
    untouched = and_(MatchRow.status == "playing", MatchRow.round_id.is_(None), MatchRow.moved_at < before)
    return session.scalars(select(MatchRow.id).where(untouched).order_by(MatchRow.moved_at).limit(most)).all()


def take_or_renew_lease(session: Session, name: str, owner: str, until: datetime) -> bool:
    """Take or renew a lease by name. False while another owner holds it, unless its lease would last more than twice as
    long as ours.
    """
    lease = session.get(Lease, name, with_for_update=True)
    if lease is None:
        session.add(Lease(name=name, owner=owner, until=until))
        session.flush()
        return True
    now = datetime.now(UTC)
    if lease.owner != owner and lease.until > now and not (until > now and lease.until > until + (until - now)):
        return False
    lease.owner, lease.until = owner, until
    return True


def held_until(session: Session, name: str) -> datetime | None:
    """When a lease ends or ended; None if nobody ever held it."""
    return session.scalar(select(Lease.until).where(Lease.name == name))
