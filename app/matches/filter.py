"""Which matches a list or an export is about: a filter, read from what was asked for, as conditions on the table."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import Session, aliased

from app.errors import Invalid, NotFound, Phrase, Verbatim, either
from app.games import find_game
from app.models import LanguageModel, MatchRow, SeatRow
from app.registry import PERSON
from app.validation import whole_number

STATUSES = ("waiting", "playing", "over")
SOURCES = ("live", "terminal", "selfplay", "import")
PEOPLES = ("live", "terminal")  # the sources in which people play
_LONGEST = 100  # characters of a value


@dataclass(frozen=True, slots=True)
class MatchFilter:
    """What a match has to be; None does not matter. `player` is a model's name or person; days are whole, in UTC."""

    game: str | None = None
    player: str | None = None
    reason: str | None = None
    status: str | None = None
    source: str | None = None
    since: date | None = None
    until: date | None = None
    match: str | None = None
    round: int | None = None


EVERYTHING = MatchFilter()
NAMES = tuple(field.name for field in fields(MatchFilter))


def read_choice(raw: Mapping[str, str]) -> MatchFilter:
    """A choice from the fields of an address or a form; empty ones do not matter.

    Raises NotFound for an unknown game, and Invalid for a value that no match can have.
    """
    given: dict[str, Any] = {name: text for name in NAMES if (text := raw.get(name, "").strip())}
    for name, text in given.items():
        if len(text) > _LONGEST or not text.isprintable():
            raise Invalid(
                name, expected=Phrase("at most %(longest)s characters on one line", longest=_LONGEST), got=text
            )
    if "game" in given:
        find_game(given["game"])
    for name, known in (("status", STATUSES), ("source", SOURCES)):
        if given.get(name, known[0]) not in known:
            raise Invalid(name, expected=either(known), got=given[name])
    if "round" in given:
        given["round"] = whole_number(given["round"], "round", 1, 2**31 - 1)
    for name in ("since", "until"):
        if name in given:
            given[name] = _day(name, given[name])
    choice = MatchFilter(**given)
    if choice.since and choice.until and choice.since > choice.until:
        raise Invalid(
            "until",
            expected=Phrase("%(since)s or later, as since is that day", since=choice.since),
            got=Verbatim(choice.until),
        )
    return choice


def check_player(session: Session, choice: MatchFilter) -> None:
    """Raises NotFound for a player whom nobody knows; a mistyped name would look like somebody who never played."""
    known = choice.player in (None, PERSON) or session.scalar(
        select(LanguageModel.id).where(LanguageModel.name == choice.player)
    )
    if not known:
        raise NotFound(
            "player",
            expected=Phrase("%(person)s or the name of a model in the registry", person=PERSON),
            got=choice.player,
        )


def conditions(choice: MatchFilter) -> list[ColumnElement[bool]]:
    """The choice for a WHERE over MatchRow."""
    found: list[ColumnElement[bool]] = []
    columns = {
        "match": MatchRow.id, "game": MatchRow.game, "reason": MatchRow.reason, "status": MatchRow.status,
        "source": MatchRow.source, "round": MatchRow.round_id,
    }  # fmt: skip
    for name, column in columns.items():
        if (wanted := getattr(choice, name)) is not None:
            found.append(column == wanted)
    if choice.player is not None:
        found.append(_played_by(choice.player))
    if choice.since is not None:
        found.append(MatchRow.started_at >= _midnight(choice.since))
    if choice.until is not None:
        found.append(MatchRow.started_at < _midnight(choice.until) + timedelta(days=1))
    return found


def _played_by(player: str) -> ColumnElement[bool]:
    # Under names of its own, because the statement around may join the same tables.
    seat, model = aliased(SeatRow), aliased(LanguageModel)
    seats = select(seat.seat).where(seat.match_id == MatchRow.id).correlate(MatchRow)
    if player == PERSON:
        return exists(seats.where(seat.kind == PERSON))
    return exists(seats.join(model, model.id == seat.language_model_id).where(model.name == player))


def _day(name: str, text: str) -> date:
    try:
        day = date.fromisoformat(text)
        if not 2000 <= day.year <= 2999:
            raise ValueError
    except ValueError:
        raise Invalid(name, expected=Phrase("a day such as 2026-01-31"), got=text) from None
    return day


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
