"""Matches to read: those that a search finds, in the order of a figure, with the lines that say it, and one as a whole.

Of a match that is blinded (`blinding.py`) nobody is told who played it, its scores or its ending; such matches come
last in every order, and are counted by no model and no ending.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, case, distinct, func, select
from sqlalchemy.orm import Session

from app.core.errors import Invalid, either
from app.core.lists import DESCENDING
from app.games.base import Event
from app.matches.blinding import blinded_conditions, is_blinded
from app.matches.events import Ended, Violated, from_json
from app.matches.figures import FIGURES
from app.matches.filter import MatchFilter
from app.matches.overview import MatchListItem, match_items
from app.matches.stored import load
from app.matches.words import Piece, TextQuery, marked, read_query, says
from app.models import EventRow, LanguageModel, MatchRow, SeatRow
from app.registry import PERSON

PAGE = 20  # matches
MOST_PAGES = 500
FACETS = ("game", "player", "source", "reason")
NEWEST = "-began"
_SHOWN_LINES = 2  # of a match in the list
_SHOWN_CHARACTERS = 240  # of such a line
_KEYS: Mapping[str, Any] = {**FIGURES, "began": MatchRow.started_at}
ORDERS = (NEWEST, "lower_score", "-lower_score", "joint_score", "-joint_score", "-refused", "-moves", "-words", "began")


@dataclass(frozen=True, slots=True)
class Hit:
    """A match that was found. `lines` are the first that say what is searched for, in pieces; or its first move."""

    item: MatchListItem
    blinded: bool
    lines: Sequence[Sequence[Piece]]


@dataclass(frozen=True, slots=True)
class Found:
    """A page of hits; how many matches there are on all pages, and how many of these are blinded."""

    hits: Sequence[Hit]
    total: int
    blinded: int


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """A line of a transcript: an accepted move, or a refused one with the reason. `seq` is its place in the log."""

    seq: int
    seat: int
    kind: str
    pieces: Sequence[Piece]
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """A match to read. `players` are by seat, None where it is blinded; `ended` is None there and before its end."""

    row: MatchRow
    roles: tuple[str, str]
    players: tuple[str, str] | None
    lines: Sequence[TranscriptLine]
    ended: Ended | None

    @property
    def blinded(self) -> bool:
        """Whether it is not told who played and how it ended."""
        return self.players is None


def search(session: Session, choice: MatchFilter, order: str = NEWEST, page: int = 1) -> Found:
    """The matches of a page, from 1, in one of ORDERS. Raises Invalid for another."""
    where = blinded_conditions(choice)
    blinded = is_blinded()
    rows = session.execute(
        select(MatchRow, blinded.label("blinded"))
        .where(*where)
        .order_by(*placing(order))
        .limit(PAGE)
        .offset((page - 1) * PAGE)
    ).all()
    items = match_items(session, [row.MatchRow for row in rows])
    lines = _lines_of(session, [row.MatchRow.id for row in rows], read_query(choice.text or ""))
    hits = [Hit(item, bool(row.blinded), lines[item.match.id]) for item, row in zip(items, rows, strict=True)]
    return Found(hits, _count(session, where), _count(session, [*where, blinded]))


def placing(order: str) -> Sequence[Any]:
    """What matches are ordered by; `order` is one of ORDERS, without figures last. Raises Invalid for another."""
    if order not in ORDERS:
        raise Invalid("sort", expected=either(ORDERS), got=order)
    blinded = is_blinded()
    told = case((blinded, None), else_=_KEYS[order.removeprefix(DESCENDING)])
    placed = told.desc() if order.startswith(DESCENDING) else told.asc()
    # The order among blinded matches is that of their beginnings: a score would tell on them.
    return blinded, told.is_(None), placed, MatchRow.started_at.desc(), MatchRow.id


def facets(session: Session, choice: MatchFilter) -> Mapping[str, Mapping[str, int]]:
    """By facet and value, how many matches the choice would find with that value; the most numerous ones first.

    Each facet is counted without its own condition.
    """
    return {name: _facet(session, name, replace(choice, **{name: None})) for name in FACETS}


def transcript(session: Session, match_id: str, query: TextQuery) -> Transcript:
    """One match, with what is searched for marked. Raises NotFound."""
    record = load(session, match_id)
    row = session.get_one(MatchRow, match_id)
    blinded = session.scalar(select(MatchRow.id).where(MatchRow.id == match_id, is_blinded())) is not None
    names = tuple(seat.player or (PERSON if seat.spec is None else seat.spec.name) for seat in record.seats)
    lines = [
        TranscriptLine(
            logged.seq,
            event.seat,
            event.kind if isinstance(event, Event) else "violation",
            marked(event.text, query),
            event.reason if isinstance(event, Violated) else None,
        )
        for logged in record.log
        if isinstance(event := logged.event, Event | Violated)
    ]
    players = None if blinded else (names[0], names[1])
    return Transcript(row, record.match.game.roles, players, lines, None if blinded else record.match.ended)


def _facet(session: Session, name: str, choice: MatchFilter) -> Mapping[str, int]:
    where = blinded_conditions(choice)
    number = func.count(distinct(MatchRow.id))
    if name == "player":
        value: Any = func.coalesce(LanguageModel.name, SeatRow.player, PERSON)
        chosen = (
            select(value, number)
            .select_from(MatchRow)
            .join(SeatRow, SeatRow.match_id == MatchRow.id)
            .outerjoin(LanguageModel, LanguageModel.id == SeatRow.language_model_id)
            .where(SeatRow.player.is_(None))  # imported players are in no registry, by which the filter knows them
        )
    else:
        value = getattr(MatchRow, name)
        chosen = select(value, number).where(value.is_not(None))
    if name in ("player", "reason"):
        chosen = chosen.where(~is_blinded())
    counted = chosen.where(*where).group_by(value).order_by(number.desc(), value)
    found: dict[str, int] = dict(session.execute(counted).all())
    return found


def _count(session: Session, where: Sequence[ColumnElement[bool]]) -> int:
    return session.scalar(select(func.count()).select_from(MatchRow).where(*where)) or 0


def _lines_of(session: Session, match_ids: Sequence[str], query: TextQuery) -> Mapping[str, Sequence[Sequence[Piece]]]:
    """The lines that say what is searched for, of each match; its first move where none does."""
    said: dict[str, list[str]] = {match_id: [] for match_id in match_ids}
    moves = select(EventRow.match_id, EventRow.body).where(EventRow.match_id.in_(match_ids), EventRow.seat.is_not(None))
    for match_id, body in session.execute(moves.order_by(EventRow.match_id, EventRow.seq)):
        event = from_json(body)
        if isinstance(event, Event | Violated):
            said[match_id].append(event.text)
    return {each: [_cut(marked(line, query)) for line in _telling(texts, query)] for each, texts in said.items()}


def _telling(texts: Sequence[str], query: TextQuery) -> Sequence[str]:
    return [text for text in texts if says(text, query)][:_SHOWN_LINES] or texts[:1]


def _cut(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """A line as the list has room for it: from shortly before what is marked first."""
    first = next((number for number, piece in enumerate(pieces) if piece.marked), 0)
    before = "".join(piece.text for piece in pieces[:first])
    lead = [Piece(f"…{before[-60:]}" if len(before) > 60 else before, marked=False)] if before else []
    found, room = lead, _SHOWN_CHARACTERS
    for piece in pieces[first:]:
        if room <= 0:
            return [*found, Piece("…", marked=False)]
        shown = piece.text if len(piece.text) <= room else f"{piece.text[:room]}…"
        found, room = [*found, Piece(shown, piece.marked)], room - len(piece.text)
    return found
