"""Matches to read: the results of a search, sorted by a figure, with the lines that match it; and a whole match.

The players, scores and ending of a blinded match (`blinding.py`) are told to nobody; such matches come last in every
order, and are left out of counts by model and by ending.

No page counts a million matches: finished matches are counted as they end (`counts.py`). Where those counts do not
suffice, as for what was said, the latest MOST_COUNTED matches are counted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Subquery, case, func, select
from sqlalchemy.orm import Session

from app.core.errors import Invalid, either
from app.core.lists import DESCENDING
from app.games.base import Event
from app.matches import counts
from app.matches.blinding import blinded_conditions, is_blinded, would_reveal
from app.matches.events import Ended, Violated, from_json
from app.matches.figures import FIGURES
from app.matches.filter import MatchFilter, conditions, unindexed
from app.matches.overview import OPEN, MatchListItem, match_items
from app.matches.stored import load
from app.matches.words import Piece, TextQuery, marked, read_query, says
from app.models import EventRow, LanguageModel, MatchRow, RoundRow, SeatRow
from app.registry import PERSON

PAGE = 20  # matches
MOST_PAGES = 250
MOST_COUNTED = 5_000  # matches counted for a page, if they have to be counted
_OVER = "over"
_SELFPLAY = "selfplay"  # the source of rounds that are played here
_PERSONS = 0  # stands for a person in place of a model's number
FACETS = ("game", "player", "source", "reason")
NEWEST = "-began"
_SHOWN_LINES = 2  # lines of a match in the list
_SHOWN_CHARACTERS = 240  # characters of such a line
_KEYS: Mapping[str, Any] = {**FIGURES, "began": MatchRow.started_at}
ORDERS = (NEWEST, "lower_score", "-lower_score", "joint_score", "-joint_score", "-refused", "-moves", "-words", "began")


@dataclass(frozen=True, slots=True)
class Hit:
    """A match that was found. `lines` are the first lines that match the search, in pieces, or its first move."""

    item: MatchListItem
    blinded: bool
    lines: Sequence[Sequence[Piece]]


@dataclass(frozen=True, slots=True)
class Found:
    """A page of hits, with the number of matches on all pages and the number of blinded ones among them.

    With `more` there are further matches beyond `total`, which are not counted.
    """

    hits: Sequence[Hit]
    total: int
    blinded: int
    more: bool = False


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
    """A match to read. `players` are by seat, None if it is blinded; `ended` is None then and before its end."""

    row: MatchRow
    roles: tuple[str, str]
    players: tuple[str, str] | None
    lines: Sequence[TranscriptLine]
    ended: Ended | None

    @property
    def blinded(self) -> bool:
        """Whether its players and its ending are hidden."""
        return self.players is None


def search(session: Session, choice: MatchFilter, order: str = NEWEST, page: int = 1) -> Found:
    """The matches of a page, from 1; `order` is one of ORDERS, and matches without the figure come last.

    Raises Invalid for another order.
    """
    _check_order(order)
    where, blinded = blinded_conditions(choice), is_blinded()
    hidden = session.scalar(select(func.count()).select_from(MatchRow).where(*unindexed(where), blinded)) or 0
    shown = _count_unblinded_matches(session, choice, hidden)
    more = shown > MOST_COUNTED and not counts.covers(choice)
    shown = MOST_COUNTED if more else shown
    first = (page - 1) * PAGE
    rows = _ordered(session, [*where, ~blinded], order, first) if first < shown else []
    told = len(rows)
    if told < PAGE and hidden:
        # Blinded matches are ordered by their start, as an order by scores would reveal these.
        last = select(MatchRow).where(*where, blinded).order_by(MatchRow.started_at.desc(), MatchRow.id)
        rows += session.scalars(last.limit(PAGE - told).offset(max(0, first - shown)))
    items = match_items(session, rows)
    lines = _lines_of(session, [row.id for row in rows], read_query(choice.text or ""))
    hits = [Hit(item, place >= told, lines[item.match.id]) for place, item in enumerate(items)]
    return Found(hits, shown + hidden, hidden, more)


def placing(order: str) -> Sequence[Any]:
    """The ORDER BY of matches; `order` is one of ORDERS, and matches without the figure come last.

    Raises Invalid for another order.
    """
    _check_order(order)
    blinded = is_blinded()
    told = case((blinded, None), else_=_KEYS[order.removeprefix(DESCENDING)])
    placed, tie = _directed(order, told)
    # Blinded matches are ordered by their start, as an order by scores would reveal these.
    return blinded, told.is_(None), placed, case((blinded, MatchRow.started_at)).desc(), tie


def _directed(order: str, key: Any) -> tuple[Any, Any]:
    """The key, then the id for equal keys: both in the same direction, as in the indexes of figures."""
    descending = order.startswith(DESCENDING)
    return (key.desc(), MatchRow.id.desc()) if descending else (key.asc(), MatchRow.id.asc())


def _ordered(session: Session, where: Sequence[Any], order: str, first: int) -> list[MatchRow]:
    """A page of matches from an offset on: those with the figure, found by its index, and then those without."""
    key = _KEYS[order.removeprefix(DESCENDING)]
    chosen = select(MatchRow).where(*where).order_by(*_directed(order, key)).limit(PAGE)
    if key is MatchRow.started_at:
        return [*session.scalars(chosen.offset(first))]
    rows = [*session.scalars(chosen.where(key.is_not(None)).offset(first))]
    if len(rows) < PAGE:
        number = select(func.count()).select_from(MatchRow).where(*where, key.is_not(None))
        passed = first if rows else session.scalar(number) or 0
        without = chosen.where(key.is_(None)).limit(PAGE - len(rows)).offset(max(0, first - passed))
        rows += session.scalars(without)
    return rows


def _check_order(order: str) -> None:
    if order not in ORDERS:
        raise Invalid("sort", expected=either(ORDERS), got=order)


def facets(session: Session, choice: MatchFilter) -> Mapping[str, Mapping[str, int]]:
    """By facet and value, the number of matches that the filter would find with that value, the largest first.

    Each facet is counted without its own condition: exactly if the counts of ended matches cover it, otherwise among
    the latest MOST_COUNTED.
    """
    found: dict[str, dict[str, int]] = {}
    columns = [name for name in FACETS if name != "player" and getattr(choice, name) is None]
    if not counts.covers(choice):  # then all facets count the same matches
        found = _among_latest(session, choice, columns)
    found |= {name: _facet(session, name, replace(choice, **{name: None})) for name in FACETS if name not in found}
    return {name: _numerous(found[name]) for name in FACETS}


def transcript(session: Session, match_id: str, query: TextQuery) -> Transcript:
    """One match, with the search terms marked. Raises NotFound."""
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


def _numerous(found: Mapping[str, int]) -> Mapping[str, int]:
    """The values with a count above zero, the largest first."""
    return {value: number for value, number in sorted(found.items(), key=lambda item: (-item[1], item[0])) if number}


def _among_latest(session: Session, choice: MatchFilter, names: Sequence[str]) -> dict[str, dict[str, int]]:
    """By facet and value, how many of the filter's latest MOST_COUNTED matches have it; endings of blinded ones are
    left out.
    """
    latest = select(MatchRow.game, MatchRow.source, case((~is_blinded(), MatchRow.reason)).label("reason"))
    some = latest.where(*blinded_conditions(choice)).order_by(MatchRow.started_at.desc()).limit(MOST_COUNTED).subquery()
    found: dict[str, dict[str, int]] = {name: {} for name in names}
    for *values, number in session.execute(select(some, func.count()).group_by(*some.c)):
        for name, value in zip(some.c.keys(), values, strict=True):
            if name in found and value is not None:
                found[name][value] = found[name].get(value, 0) + number
    return found


def _facet(session: Session, name: str, choice: MatchFilter) -> dict[str, int]:
    hides = name in ("player", "reason")
    where = [*blinded_conditions(choice), *([~is_blinded()] if hides else [])]
    if not counts.covers(choice):
        return _count_by(session, name, where, latest=MOST_COUNTED)
    found = Counter(counts.count_over_by(session, name, choice))
    found.update(_count_by(session, name, [*unindexed(where), _is_open()]))
    if hides or would_reveal(choice):
        hidden = [*unindexed([*conditions(choice), MatchRow.status == _OVER]), is_blinded()]
        found -= Counter(_count_by(session, name, hidden))
    return found


def _count_by(
    session: Session, name: str, where: Sequence[ColumnElement[bool]], latest: int | None = None
) -> dict[str, int]:
    """The number of matches by game, player, source or reason: among the `latest` ones only, if given."""
    chosen = select(MatchRow.id, MatchRow.game, MatchRow.source, MatchRow.reason, MatchRow.round_id).where(*where)
    if latest is not None:
        chosen = chosen.order_by(MatchRow.started_at.desc()).limit(latest)
    some = chosen.subquery()
    if name == "player":
        return _players_of(session, some)
    value = some.c[name]
    return dict(session.execute(select(value, func.count()).where(value.is_not(None)).group_by(value)).all())


def _players_of(session: Session, some: Subquery) -> dict[str, int]:
    """The number of matches by player, among `some` with `id`, `source` and `round_id`; imported players, who are in no
    registry, are left out.
    """
    # The round names the players of its matches. Their seats are not read: those of the latest matches among a million
    # lie far apart, as they are found by random ids.
    round_id = case((some.c.source == _SELFPLAY, some.c.round_id))

    def sat(seat: int) -> Any:
        # A subquery for each match: for a join with some thousands, PostgreSQL would read the seats of all matches.
        model = case((SeatRow.player.is_(None), func.coalesce(SeatRow.language_model_id, _PERSONS)))
        found = select(model).where(SeatRow.match_id == some.c.id, SeatRow.seat == seat).scalar_subquery()
        return case((round_id.is_(None), found))

    # Grouped here, as SQLite would look up each seat twice to group by it.
    pairs = Counter(map(tuple, session.execute(select(round_id, sat(0), sat(1)).select_from(some))))
    of = RoundRow.id, RoundRow.model_0_id, RoundRow.model_1_id
    rounds = session.execute(select(*of).where(RoundRow.id.in_({number for number, *_ in pairs} - {None})))
    models_of = {number: models for number, *models in rounds}
    # Read after the seats: on PostgreSQL, a model added in between would otherwise have no name.
    names = {row.id: row.name for row in session.execute(select(LanguageModel.id, LanguageModel.name))}
    names[_PERSONS] = PERSON
    found = Counter[str]()
    for (number, *seats), matches in pairs.items():
        models = seats if number is None else models_of[number]
        found.update(dict.fromkeys({names[model] for model in models if model is not None}, matches))
    return found


def _count_unblinded_matches(session: Session, choice: MatchFilter, hidden: int) -> int:
    """The number of matches that a filter finds and that are not blinded; MOST_COUNTED + 1 for any number above
    MOST_COUNTED, if they have to be counted. `hidden` is the number of blinded ones.
    """
    where = blinded_conditions(choice)
    if not counts.covers(choice):
        some = select(MatchRow.id).where(*where, ~is_blinded()).limit(MOST_COUNTED + 1).subquery()
        return session.scalar(select(func.count()).select_from(some)) or 0
    is_open = select(func.count()).select_from(MatchRow).where(*unindexed(where), _is_open())
    found = counts.count_over(session, choice) + (session.scalar(is_open) or 0) - hidden
    if would_reveal(choice):  # the filter then finds no blinded ones, but they are counted like all others
        secret = select(func.count()).select_from(MatchRow).where(is_blinded())
        over = unindexed([*conditions(choice), MatchRow.status == _OVER])
        found -= session.scalar(secret.where(*over)) or 0
    return found


def _is_open() -> ColumnElement[bool]:
    """Whether a match is not over: few are, so they are found by their status, whatever the other conditions."""
    return MatchRow.id.in_(select(MatchRow.id).where(MatchRow.status.in_(OPEN)))


def _lines_of(session: Session, match_ids: Sequence[str], query: TextQuery) -> Mapping[str, Sequence[Sequence[Piece]]]:
    """The lines of each match that match the search; its first move if none does."""
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
    """A line shortened for the list: it starts shortly before the first marked piece."""
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
