"""Ranges of match indices of a round, leased by workers. A single conditional UPDATE decides.

The range of a dead worker is taken by the next one that asks after its lease has expired. Nothing here commits.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import and_, case, exists, insert, select, update
from sqlalchemy.orm import Session

from app.jobs import leases
from app.models import RoundRange

_PARTS, _LEAST, _MOST = 64, 4, 500


class LeasedRange(NamedTuple):
    """The matches from `start` up to but not `stop`; `leases` expired on it since a match in it was finished."""

    start: int
    stop: int
    leases: int = 0


def parts(matches: int) -> Iterator[LeasedRange]:
    """About sixty ranges, so that several workers can share them, but none too small or too large."""
    size = min(_MOST, max(_LEAST, -(-matches // _PARTS)))
    for start in range(0, matches, size):
        yield LeasedRange(start, min(start + size, matches))


def make_all(session: Session, rounds: Mapping[int, int]) -> None:
    """Insert the ranges of new rounds, given as the number of matches by round number."""
    rows = [
        {"round_id": round_id, "start": each.start, "stop": each.stop, "done": False, "lease_count": 0}
        for round_id, matches in rounds.items()
        for each in parts(matches)
    ]
    session.execute(insert(RoundRange), rows)


def take(
    session: Session, round_id: int, owner: str, seconds: float, in_hand: Collection[int] = ()
) -> LeasedRange | None:
    """Lease the first free range of a round for `seconds`; None if none is free at the moment.

    `in_hand` are the starts of the ranges that `owner` is already playing, however long ago their leases expired: a
    machine may have been asleep.
    """
    now = datetime.now(UTC)
    free = select(RoundRange.start).where(
        RoundRange.round_id == round_id,
        RoundRange.done.is_(False),
        leases.free(RoundRange, now),
        RoundRange.start.not_in(in_hand),
    )
    first = free.order_by(RoundRange.start).limit(1).with_for_update(skip_locked=True).scalar_subquery()
    taken = session.execute(
        update(RoundRange)
        .where(RoundRange.round_id == round_id, RoundRange.start == first)
        .values(
            lease_owner=owner,
            lease_until=now + timedelta(seconds=seconds),
            lease_count=case((RoundRange.lease_owner.is_(None), 0), else_=RoundRange.lease_count + 1),
        )
        .returning(RoundRange.start, RoundRange.stop, RoundRange.lease_count)
        .execution_options(synchronize_session=False)
    ).one_or_none()
    return None if taken is None else LeasedRange(*taken)


def renew(
    session: Session, round_id: int, starts: Collection[int], owner: str, seconds: float, *, progress: bool = False
) -> Sequence[int]:
    """Renew the leases of ranges and return those still held. `progress`: a match in them was finished."""
    values = {"lease_until": datetime.now(UTC) + timedelta(seconds=seconds)}
    if progress:
        values["lease_count"] = 0  # type: ignore[assignment]
    return session.scalars(
        update(RoundRange)
        .where(_held_by(round_id, owner), RoundRange.start.in_(starts))
        .values(**values)
        .returning(RoundRange.start)
        .execution_options(synchronize_session=False)
    ).all()


def finish(session: Session, round_id: int, starts: Collection[int]) -> None:
    """Mark all matches of these ranges as finished."""
    session.execute(
        update(RoundRange)
        .where(RoundRange.round_id == round_id, RoundRange.start.in_(starts))
        .values(done=True, lease_owner=None, lease_until=None)
    )


def release(session: Session, round_id: int, owner: str) -> None:
    """Release all ranges of a round that `owner` holds."""
    session.execute(
        update(RoundRange).where(_held_by(round_id, owner)).values(lease_owner=None, lease_until=None, lease_count=0)
    )


def all_done(session: Session, round_id: int) -> bool:
    """Whether a round has nothing left to play."""
    undone = exists().where(RoundRange.round_id == round_id, RoundRange.done.is_(False))
    return not session.scalar(select(undone))


def being_played(now: datetime) -> Any:
    """Whether some worker holds a lease on a range, for a WHERE over RoundRange."""
    return and_(RoundRange.lease_owner.is_not(None), RoundRange.lease_until >= now)


def _held_by(round_id: int, owner: str) -> Any:
    return and_(RoundRange.round_id == round_id, RoundRange.lease_owner == owner)
