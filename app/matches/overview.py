"""Matches for experimenters: those being played now, the latest ones, those that a filter selects, and today's
figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from sqlalchemy import ColumnElement, Select, case, func, select
from sqlalchemy.orm import Session

from app.matches.blinding import blinded_of
from app.matches.filter import PEOPLES, REHEARSAL, MatchFilter, asks_for_rehearsals
from app.matches.sweep import UPKEEP, held_until
from app.models import LanguageModel, MatchRow, Participant, RoundRow, SeatRow, Study

OPEN = ("waiting", "playing")
QUIET = timedelta(minutes=10)  # a match in which nothing has happened for so long is open, not live
MOST = 30  # matches in a list of the overview


@dataclass(frozen=True, slots=True)
class ListedPlayer:
    """The player in a seat: its role, and the name of the model or the imported player; None is a person."""

    role: str
    model: str | None


@dataclass(frozen=True, slots=True)
class MatchListItem:
    """A match in a list, with its players by seat, and the names of its people's study and of its round.

    A blinded match has no players here, and its row is not asked for how it ended.
    """

    match: MatchRow
    players: tuple[ListedPlayer, ...]
    study: str | None
    blinded: bool = False
    round_name: str | None = None

    @property
    def row(self) -> MatchRow:
        return self.match


@dataclass(frozen=True, slots=True)
class Overview:
    """The figures of the overview, of matches of people. `broken_off` counts today's matches that were aborted because
    of a model or of us.
    """

    live: int
    left_open: int
    today: int
    broken_off: int
    upkeep_until: datetime | None


def overview(session: Session, now: datetime, midnight: datetime) -> Overview:
    """The figures at this moment, and of the day that began at that midnight."""
    open_matches = select(func.count()).select_from(MatchRow).where(*_open_of_people())
    # Read from the index alone, like the charts and the people of the day: no row of a day with many matches is read.
    aborted = func.count(case((MatchRow.reason == "aborted", 1)))
    began_today = MatchRow.source.in_(PEOPLES), MatchRow.started_at >= midnight
    today, broken_off = session.execute(select(func.count(), aborted).where(*began_today)).one()
    return Overview(
        live=_read_count(session, open_matches.where(MatchRow.moved_at >= now - QUIET)),
        left_open=_read_count(session, open_matches.where(MatchRow.moved_at < now - QUIET)),
        today=today,
        broken_off=broken_off,
        upkeep_until=held_until(session, UPKEEP),
    )


def _open_of_people() -> tuple[ColumnElement[bool], ...]:
    """Conditions for matches of people that are not over: searched by status, which few have, and not by source."""
    return MatchRow.status.in_(OPEN), func.coalesce(MatchRow.source, "").in_(PEOPLES)


def live_matches(session: Session, now: datetime) -> list[MatchListItem]:
    """The matches that people play now, the latest move first."""
    playing = select(MatchRow).where(*_open_of_people(), MatchRow.moved_at >= now - QUIET)
    return match_items(session, session.scalars(playing.order_by(MatchRow.moved_at.desc()).limit(MOST)).all())


def latest_matches(session: Session) -> list[MatchListItem]:
    """The matches of people that began last."""
    latest = select(MatchRow).where(MatchRow.source.in_(PEOPLES)).order_by(MatchRow.started_at.desc()).limit(MOST)
    return match_items(session, session.scalars(latest).all())


def leaves_out_rehearsals(session: Session, choice: MatchFilter) -> bool:
    """Whether there are matches of bots or previews, and the filter excludes them."""
    some = select(MatchRow.id).where(MatchRow.source == REHEARSAL).limit(1)
    return not asks_for_rehearsals(choice) and session.scalar(some) is not None


def reasons(session: Session) -> list[str]:
    """How matches have ended so far, in the games' words."""
    # Steps from one reason to the next by the index, so that a million matches take no longer than one of each reason.
    found = select(func.min(MatchRow.reason).label("reason")).cte("found", recursive=True)
    following = select(func.min(MatchRow.reason)).where(MatchRow.reason > found.c.reason).scalar_subquery()
    found = found.union_all(select(following).where(found.c.reason.is_not(None)))
    return list(session.scalars(select(found.c.reason).where(found.c.reason.is_not(None)).order_by(found.c.reason)))


def _read_count(session: Session, statement: Select[int]) -> int:
    return cast(int, session.scalar(statement))


def match_items(session: Session, matches: Sequence[MatchRow]) -> list[MatchListItem]:
    """Matches as items of a list, with the same number of statements for one match as for many."""
    players: dict[str, list[ListedPlayer]] = {match.id: [] for match in matches}
    seats = session.execute(
        select(SeatRow.match_id, SeatRow.role, func.coalesce(LanguageModel.name, SeatRow.player).label("name"))
        .outerjoin(LanguageModel, LanguageModel.id == SeatRow.language_model_id)
        .where(SeatRow.match_id.in_(players))
        .order_by(SeatRow.match_id, SeatRow.seat)
    )
    for seat in seats:
        players[seat.match_id].append(ListedPlayer(seat.role, seat.name))
    of_studies = (
        select(SeatRow.match_id, Study.name)
        .join(Participant, Participant.id == SeatRow.participant_id)
        .join(Study, Study.id == Participant.study_id)
        .where(SeatRow.match_id.in_(players))
    )
    studies = {row.match_id: row.name for row in session.execute(of_studies)}
    blinded = blinded_of(session, [*studies])
    rounds = {match.round_id for match in matches} - {None}
    names = dict(session.execute(select(RoundRow.id, RoundRow.name).where(RoundRow.id.in_(rounds))).all())
    return [
        MatchListItem(
            match,
            () if match.id in blinded else tuple(players[match.id]),
            studies.get(match.id),
            match.id in blinded,
            None if match.round_id is None else names.get(match.round_id),
        )
        for match in matches
    ]
