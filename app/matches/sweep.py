"""Finding model turns that nobody plays, and the lease of the one loop that looks for them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from app.models import Lease, MatchRow

PATIENCE = timedelta(seconds=3)  # how long a ring may take to be heard before it counts as lost


def take_forgotten_turns(session: Session, most: int = 500) -> Sequence[str]:
    """Ids of matches whose model turn should be rung for again. Marks them as rung."""
    now = datetime.now(UTC)
    heard_of = func.coalesce(MatchRow.rung_at, MatchRow.moved_at)
    free = or_(MatchRow.lease_until.is_(None), MatchRow.lease_until < now)
    ids = session.scalars(
        select(MatchRow.id)
        .where(MatchRow.status == "playing", MatchRow.model_to_move, free, heard_of < now - PATIENCE)
        .order_by(MatchRow.moved_at)
        .limit(most)
    ).all()
    if ids:
        session.execute(update(MatchRow).where(MatchRow.id.in_(ids)).values(rung_at=now))
    return ids


def hold_lease(session: Session, name: str, owner: str, until: datetime) -> bool:
    """Take or renew a lease by name. False while somebody else holds it."""
    lease = session.get(Lease, name, with_for_update=True)
    if lease is None:
        session.add(Lease(name=name, owner=owner, until=until))
        session.flush()
        return True
    if lease.owner != owner and lease.until > datetime.now(UTC):
        return False
    lease.owner, lease.until = owner, until
    return True
