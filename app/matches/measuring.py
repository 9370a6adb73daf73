"""Measure finished matches again from their logs: those that ended before Parlor had all of its present measures."""

from functools import partial

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.core.extensions import Transact, in_turn
from app.games import GAMES
from app.games.base import Event
from app.matches.events import from_json
from app.models import EventRow, MatchRow

_AT_ONCE = 200  # matches per transaction


def measure_again(transact: Transact, round_id: int | None = None) -> int:
    """Measure all finished matches, or those of a round, a batch per transaction, while Parlor runs; return their
    number.

    A match in which a person's words were deleted keeps the measures from when it ended.
    """
    after, done = "", 0
    while found := in_turn(transact, partial(_measure_next, after=after, round_id=round_id)):
        after, done = found[-1], done + len(found)
    return done


def _measure_next(session: Session, after: str, round_id: int | None) -> list[str]:
    """Measure the next matches in order of their ids; return those ids."""
    wanted = select(MatchRow.id, MatchRow.game, MatchRow.config).where(
        MatchRow.id > after, MatchRow.status == "over", MatchRow.erased_at.is_(None), MatchRow.game.in_(GAMES)
    )
    if round_id is not None:
        wanted = wanted.where(MatchRow.round_id == round_id)
    rows = session.execute(wanted.order_by(MatchRow.id).limit(_AT_ONCE)).all()
    moves: dict[str, list[Event]] = {row.id: [] for row in rows}
    logs = select(EventRow.match_id, EventRow.body).where(EventRow.match_id.in_(moves), EventRow.seat.is_not(None))
    for match_id, body in session.execute(logs.order_by(EventRow.match_id, EventRow.seq)):
        if isinstance(event := from_json(body), Event):
            moves[match_id].append(event)
    measured = [(row.id, GAMES[row.game].measures(row.config, moves[row.id])) for row in rows]
    changes = [{"id": each, "measures": dict(m) or None, "unspoken": m.get("unspoken")} for each, m in measured]
    if changes:
        session.execute(update(MatchRow), changes)
    return [row.id for row in rows]
