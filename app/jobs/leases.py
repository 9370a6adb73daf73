"""Leases of rows: whether one is free or held, and what to do about those that reach too far ahead.

A worker that dies leaves its lease to run out. Work whose workers die again and again is given on after a pause that
grows each time: whatever kills them may be over by then, and work that itself kills its worker does less harm.

Each works on mapped classes of `app/models` and on their rows. Nothing here commits.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, case, literal, or_, select, update
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Phrase
from app.jobs import states

MOST_DEATHS = 10  # of workers at one piece of work without progress, after which it is given up
_PAUSES = (0, 0, 1, 2, 4, 8, 16, 32)  # seconds from the end of a lease, by how many workers have died
_LONGEST_PAUSE = 60


def free(table: Any, now: datetime) -> ColumnElement[bool]:
    """Whether nobody holds the lease of a row, and it is time for the next one, for a WHERE."""
    moment = table.lease_until.type
    moments = [literal(now - timedelta(seconds=pause), moment) for pause in (*_PAUSES, _LONGEST_PAUSE)]
    since = case(dict(enumerate(moments[:-1])), value=table.lease_count, else_=moments[-1])
    return or_(table.lease_until.is_(None), table.lease_until < since)


def is_held(row: Any) -> bool:
    """Whether somebody holds the lease of a row just now."""
    return row.lease_until is not None and row.lease_until >= datetime.now(UTC)


def end_distant(session: Session, table: Any, seconds: float, *which: ColumnElement[bool]) -> None:
    """End the leases that reach further ahead than twice the `seconds` that they are given for.

    Somebody's clock has jumped: that lease would keep everybody else away for as long as it was wrong. Whoever still
    holds it writes nothing once another has taken it, as with a lease that ran out.
    """
    now = datetime.now(UTC)
    far = update(table).where(*which, table.lease_until > now + timedelta(seconds=2 * seconds))
    session.execute(far.values(lease_until=now), execution_options={"synchronize_session": False})


def mark_enqueued(session: Session, table: Any, waits: ColumnElement[bool], now: datetime) -> Sequence[int]:
    """Ids of the rows that wait, marked as enqueued; rows that another process is marking just now are left out."""
    ids = session.scalars(select(table.id).where(waits).with_for_update(skip_locked=True, key_share=True)).all()
    if ids:
        marked = update(table).where(table.id.in_(ids)).values(enqueued_at=now)
        session.execute(marked, execution_options={"synchronize_session": False})
    return ids


def request_stop(session: Session, row: Any, subject: Phrase, expected: Phrase) -> None:
    """Call a row being cancelled, unless it is so already, or cancelled. Raises Conflict when it is over.

    `subject` and `expected` name it and what it would have to be: round 7, one that is being played.
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
