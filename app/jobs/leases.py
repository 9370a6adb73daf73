"""Leases of rows: whether one is free or held, and ending those that reach too far ahead.

When a worker dies, its lease expires. Work whose workers die repeatedly is passed on after a growing pause: the cause
may be gone by then, and work that itself kills its worker does less harm.

All functions work on mapped classes of `app/models` and on their rows. Nothing here commits.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, bindparam, case, literal, or_, select, update
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Phrase
from app.jobs import states

MOST_DEATHS = 10  # workers that may die at one piece of work without progress before it is given up
_PAUSES = (0, 0, 1, 2, 4, 8, 16, 32)  # seconds after the end of a lease, by the number of workers that have died
_LONGEST_PAUSE = 60


def free(table: Any, now: datetime | None = None) -> ColumnElement[bool]:
    """Whether the lease of a row is free and the pause before the next one is over, for a WHERE.

    Without `now`, for a statement that is built once and run with the parameters of `latest_ends`.
    """
    moment, ends = table.lease_until.type, latest_ends(now or datetime.now(UTC))
    moments = [bindparam(name, type_=moment) if now is None else literal(end, moment) for name, end in ends.items()]
    since = case(dict(enumerate(moments[:-1])), value=table.lease_count, else_=moments[-1])
    return or_(table.lease_until.is_(None), table.lease_until < since)


def latest_ends(now: datetime) -> dict[str, datetime]:
    """The moments before which a lease must have ended to be free at `now`, by the number of dead workers; the last one
    is for any higher number.
    """
    pauses = (*_PAUSES, _LONGEST_PAUSE)
    return {f"ended_{deaths}": now - timedelta(seconds=pause) for deaths, pause in enumerate(pauses)}


def is_held(row: Any) -> bool:
    """Whether the lease of a row is currently held."""
    return row.lease_until is not None and row.lease_until >= datetime.now(UTC)


def end_distant(session: Session, table: Any, seconds: float, *which: ColumnElement[bool]) -> None:
    """End leases that reach further ahead than twice their length, `seconds`.

    They result from a clock jump: such a lease would block everyone else for as long as the clock was wrong. Its holder
    writes nothing once another worker has taken it, as with an expired lease.
    """
    now = datetime.now(UTC)
    far = update(table).where(*which, table.lease_until > now + timedelta(seconds=2 * seconds))
    session.execute(far.values(lease_until=now), execution_options={"synchronize_session": False})


def mark_enqueued(session: Session, table: Any, waits: ColumnElement[bool], now: datetime) -> Sequence[int]:
    """Ids of the waiting rows, marked as enqueued; rows that another process is currently marking are left out."""
    ids = session.scalars(select(table.id).where(waits).with_for_update(skip_locked=True, key_share=True)).all()
    if ids:
        marked = update(table).where(table.id.in_(ids)).values(enqueued_at=now)
        session.execute(marked, execution_options={"synchronize_session": False})
    return ids


def request_stop(session: Session, row: Any, subject: Phrase, expected: Phrase) -> None:
    """Set a row to cancelling, unless it is that already, or cancelled. Raises Conflict when it is over.

    `subject` and `expected` are its name and what it should have been: round 7, one that is being played.
    """
    session.refresh(row, with_for_update=True)
    if row.status in (states.CANCELLING, states.CANCELLED):
        return
    if row.status not in states.OPEN:
        raise Conflict(
            None,
            expected=expected,
            got=Phrase("one that is %(status)s", status=Phrase(row.status)),
            subject=subject,
        )
    row.status = states.CANCELLING
    session.flush()
