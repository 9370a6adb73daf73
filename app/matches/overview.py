"""What goes on right now, for experimenters: the matches that are played, the latest ones, and today in figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from app.models import LanguageModel, Lease, MatchRow, SeatRow

QUIET = timedelta(minutes=10)  # a match in which nothing has happened for so long is open, not live
MOST = 30  # matches in a list


@dataclass(frozen=True, slots=True)
class Player:
    """Who sits in a seat: its role, and the model's name; None is a person."""

    role: str
    model: str | None


@dataclass(frozen=True, slots=True)
class Line:
    """A match in a list, with its players by seat."""

    match: MatchRow
    players: tuple[Player, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """The figures of the overview. `broken_off` counts today's matches that a model or we could not go on with."""

    live: int
    left_open: int
    today: int
    broken_off: int
    upkeep_until: datetime | None


def overview(session: Session, now: datetime) -> Overview:
    """The figures at this moment; a day begins at midnight UTC."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    open_matches = select(func.count()).select_from(MatchRow).where(MatchRow.status != "over")
    today = select(func.count()).select_from(MatchRow).where(MatchRow.started_at >= midnight)
    return Overview(
        live=_number(session, open_matches.where(MatchRow.moved_at >= now - QUIET)),
        left_open=_number(session, open_matches.where(MatchRow.moved_at < now - QUIET)),
        today=_number(session, today),
        broken_off=_number(session, today.where(MatchRow.reason == "aborted")),
        upkeep_until=session.scalar(select(Lease.until).where(Lease.name == "upkeep")),
    )


def live_matches(session: Session, now: datetime) -> list[Line]:
    """The matches that are played now, the latest move first."""
    playing = select(MatchRow).where(MatchRow.status != "over", MatchRow.moved_at >= now - QUIET)
    return _lines(session, session.scalars(playing.order_by(MatchRow.moved_at.desc()).limit(MOST)).all())


def latest_matches(session: Session) -> list[Line]:
    """The matches that began last."""
    return _lines(session, session.scalars(select(MatchRow).order_by(MatchRow.started_at.desc()).limit(MOST)).all())


def _number(session: Session, statement: Select[int]) -> int:
    return cast(int, session.scalar(statement))


def _lines(session: Session, matches: Sequence[MatchRow]) -> list[Line]:
    players: dict[str, list[Player]] = {match.id: [] for match in matches}
    seats = session.execute(
        select(SeatRow.match_id, SeatRow.role, LanguageModel.name)
        .outerjoin(LanguageModel, LanguageModel.id == SeatRow.language_model_id)
        .where(SeatRow.match_id.in_(players))
        .order_by(SeatRow.match_id, SeatRow.seat)
    )
    for seat in seats:
        players[seat.match_id].append(Player(seat.role, seat.name))
    return [Line(match, tuple(players[match.id])) for match in matches]
