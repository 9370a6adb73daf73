"""Ranges of match indices of a round, leased by workers. A single conditional UPDATE decides.

The range of a dead worker is taken by the next one that asks after its lease has expired. Nothing here commits.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast

from sqlalchemy import Table, and_, bindparam, case, exists, insert, select, update
from sqlalchemy.orm import Session

from app.jobs import leases
from app.models import RoundRange

_PARTS, _LEAST, _MOST = 64, 4, 500

# Every group of matches takes these statements: to build one anew takes ten times as long as to run it.
_TABLE = cast(Table, RoundRange.__table__)
_RANGE = _TABLE.c
_OF_ROUND = _RANGE.round_id == bindparam("of_round")
_AT_STARTS = _RANGE.start.in_(bindparam("starts", expanding=True))
_FREE = select(_RANGE.start).where(
    _OF_ROUND,
    _RANGE.done.is_(False),
    leases.free(_RANGE),
    _RANGE.start.not_in(bindparam("in_hand", expanding=True)),
)
_FIRST = _FREE.order_by(_RANGE.start).limit(1).with_for_update(skip_locked=True).scalar_subquery()
_TAKE = (
    update(_TABLE)
    .where(_OF_ROUND, _RANGE.start == _FIRST)
    .values(
        lease_owner=bindparam("owner"),
        lease_until=bindparam("until"),
        lease_count=case((_RANGE.lease_owner.is_(None), 0), else_=_RANGE.lease_count + 1),
    )
    .returning(_RANGE.start, _RANGE.stop, _RANGE.lease_count)
)
_RENEW = (
    update(_TABLE)
    .where(_OF_ROUND, _AT_STARTS, _RANGE.lease_owner == bindparam("owner"))
    .values(lease_until=bindparam("until"))
    .returning(_RANGE.start)
)
_RENEW_WITH_PROGRESS = _RENEW.values(lease_count=0)
_FINISH = update(_TABLE).where(_OF_ROUND, _AT_STARTS).values(done=True, lease_owner=None, lease_until=None)
_IS_UNDONE = select(exists().where(_OF_ROUND, _RANGE.done.is_(False)))


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
    given = {"of_round": round_id, "in_hand": [*in_hand], "owner": owner, "until": now + timedelta(seconds=seconds)}
    taken = session.execute(_TAKE, {**given, **leases.latest_ends(now)}).one_or_none()
    return None if taken is None else LeasedRange(*taken)


def renew(
    session: Session, round_id: int, starts: Collection[int], owner: str, seconds: float, *, progress: bool = False
) -> Sequence[int]:
    """Renew the leases of ranges and return those still held. `progress`: a match in them was finished."""
    until = datetime.now(UTC) + timedelta(seconds=seconds)
    given = {"of_round": round_id, "starts": [*starts], "owner": owner, "until": until}
    return session.scalars(_RENEW_WITH_PROGRESS if progress else _RENEW, given).all()


def finish(session: Session, round_id: int, starts: Collection[int]) -> None:
    """Mark all matches of these ranges as finished."""
    session.execute(_FINISH, {"of_round": round_id, "starts": [*starts]})


def release(session: Session, round_id: int, owner: str) -> None:
    """Release all ranges of a round that `owner` holds."""
    held = update(RoundRange).where(RoundRange.round_id == round_id, RoundRange.lease_owner == owner)
    session.execute(held.values(lease_owner=None, lease_until=None, lease_count=0))


def all_done(session: Session, round_id: int) -> bool:
    """Whether a round has nothing left to play."""
    return not session.scalar(_IS_UNDONE, {"of_round": round_id})


def being_played(now: datetime) -> Any:
    """Whether some worker holds a lease on a range, for a WHERE over RoundRange."""
    return and_(RoundRange.lease_owner.is_not(None), RoundRange.lease_until >= now)
