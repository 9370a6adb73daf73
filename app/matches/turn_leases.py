"""The lease of a model's turn in a live match: which worker is playing it. One conditional UPDATE decides."""

import contextlib
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any, cast

import structlog
from sqlalchemy import CursorResult, Update, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.extensions import DATABASE_AWAY, reason_of, writing
from app.core.failures import OUR_FAULT
from app.jobs.context import JobContext
from app.jobs.leases import MOST_DEATHS
from app.matches import live
from app.matches.stored import load
from app.matches.sweep import turn_is_free
from app.models import MatchRow

log = structlog.get_logger()


class LeaseLost(Exception):
    """Another worker has the turn now, or the match is over."""


class Taken(Enum):
    """The result of asking for a turn."""

    OURS = auto()
    NOT_FREE = auto()  # another worker has it, or there is no turn
    GIVEN_UP = auto()  # too many workers have died at it; the match has ended


def take(session: Session, context: JobContext, match_id: str) -> Taken:
    """Take a turn that is due and free, or end the match if MOST_DEATHS workers have died at it."""
    taken = session.execute(
        update(MatchRow)
        .where(MatchRow.id == match_id, turn_is_free(datetime.now(UTC)))
        .values(**values(context), lease_count=MatchRow.lease_count + 1)
    )
    if _rows_changed(taken) == 0:
        return Taken.NOT_FREE
    count = session.scalar(select(MatchRow.lease_count).where(MatchRow.id == match_id)) or 0
    if count <= MOST_DEATHS:
        return Taken.OURS
    record = load(session, match_id, lock=True)
    live.abort(session, record, OUR_FAULT, record.match.to_move, f"{MOST_DEATHS} workers died at this turn")
    return Taken.GIVEN_UP


def guard(session: Session, context: JobContext, match_id: str) -> None:
    """Make sure that the turn is still ours, and lock its row. Raises LeaseLost."""
    _guard(session.execute(_holding(context, match_id).values(lease_owner=context.owner)))


def renew(context: JobContext, match_id: str) -> None:
    """Renew the lease of a turn, in a transaction of its own. Raises LeaseLost.

    While the database is away nobody else can take the turn either, so it goes on.
    """
    try:
        with writing(context.database) as session:
            _guard(session.execute(_holding(context, match_id).values(**values(context))))
    except DATABASE_AWAY as error:
        log.warning("the database is away, the turn goes on", match=match_id, error=reason_of(error))


def give_back(context: JobContext, match_id: str, rest: float = 0) -> None:
    """Release a turn that was not played, if that can be stored; it does not count as a worker's death.

    Nobody can take it for `rest` seconds.
    """
    until = datetime.now(UTC) + timedelta(seconds=rest) if rest else None
    free = {"lease_owner": None, "lease_until": until, "lease_count": MatchRow.lease_count - 1}
    with contextlib.suppress(SQLAlchemyError), writing(context.database) as session:
        session.execute(_holding(context, match_id).values(**free))


def values(context: JobContext) -> dict[str, Any]:
    """The columns of a match that make its turn ours for TURN_LEASE seconds from now."""
    settings: Settings = context.settings
    return {"lease_owner": context.owner, "lease_until": datetime.now(UTC) + timedelta(seconds=settings.TURN_LEASE)}


def _holding(context: JobContext, match_id: str) -> Update:
    return update(MatchRow).where(
        MatchRow.id == match_id, MatchRow.lease_owner == context.owner, MatchRow.status == "playing"
    )


def _guard(result: Any) -> None:
    if _rows_changed(result) == 0:
        raise LeaseLost


def _rows_changed(result: Any) -> int:
    return cast(CursorResult[Any], result).rowcount
