"""The filter that selects the matches of a list, an export, a dataset or an analysis: parsed from a request, and turned
into conditions on the table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, exists, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session, aliased
from sqlalchemy.sql.functions import FunctionElement

from app.core.errors import Invalid, NotFound, Phrase, Verbatim, either
from app.core.validation import whole_number
from app.games import GAMES, find_game
from app.matches.figures import read_figures
from app.matches.text_index import said_conditions
from app.matches.words import read_query
from app.models import (
    Arm,
    Campaign,
    LanguageModel,
    MatchRow,
    RecipeStep,
    RoundRow,
    SeatRow,
    Study,
    StudyVersion,
)
from app.registry import PERSON
from app.registry.prompts import find_prompt

_ROUND = "round"  # the kind of recipe steps that are rounds

STATUSES = ("waiting", "playing", "over")
REHEARSAL = "rehearsal"  # bots and previews of studies, left out unless a filter asks for them
SOURCES = ("live", "terminal", "selfplay", "import", REHEARSAL)
GIVEN, MISSING = "given", "missing"  # whether all people in it agreed that models learn from it
CONSENTS = (GIVEN, MISSING)
REHEARSAL_SUFFIX = f"-{REHEARSAL}"  # ends the name of a study's copy for bots
PEOPLES = ("live", "terminal")  # the sources in which people play
_LONGEST = 100  # characters in a value
_TEXT = "text"


@dataclass(frozen=True, slots=True)
class MatchFilter:
    """The criteria a match has to meet; None means any.

    `player` is a model's name or person; `role` is the role of that player, or without a player a role that either seat
    has. `campaign` selects its rounds and its evaluations, `study` and `arm` are names, `consent` says whether every
    person in the match agreed that models learn from it; days are whole, in UTC. Rehearsal matches are selected only by
    source, by id, or by the name of a study's copy that bots go through. `text` is what was said in the match, as
    `app.matches.words.read_query` reads it, and `figures` are bounds on its figures, as
    `app.matches.figures.read_figures` reads them; both match finished matches only. `prompt` is the prompt that a model
    in the match was given beside the rules: NAME, which means all its versions, or NAME@VERSION.
    """

    game: str | None = None
    player: str | None = None
    role: str | None = None
    reason: str | None = None
    status: str | None = None
    source: str | None = None
    since: date | None = None
    until: date | None = None
    match: str | None = None
    round: int | None = None
    campaign: int | None = None
    study: str | None = None
    arm: str | None = None
    consent: str | None = None
    text: str | None = None
    figures: str | None = None
    prompt: str | None = None


EVERYTHING = MatchFilter()
NAMES = tuple(field.name for field in fields(MatchFilter))


def read_choice(raw: Mapping[str, str]) -> MatchFilter:
    """The filter from the fields of an address or a form; empty fields are ignored.

    Raises NotFound for an unknown game, and Invalid for a value that no match can have.
    """
    given: dict[str, Any] = {name: text for name in NAMES if (text := raw.get(name, "").strip())}
    for name, text in given.items():
        if name != _TEXT and (len(text) > _LONGEST or not text.isprintable()):
            raise Invalid(
                name, expected=Phrase("at most %(longest)s characters on one line", longest=_LONGEST), got=text
            )
    if "game" in given:
        find_game(given["game"])
    for name, known in (("status", STATUSES), ("source", SOURCES), ("consent", CONSENTS)):
        if given.get(name, known[0]) not in known:
            raise Invalid(name, expected=either(known), got=given[name])
    if "role" in given:
        check_role(given["role"], given.get("game"))
    for name in (each for each in _READ if each in given):
        given[name] = _READ[name](name, given[name])
    choice = MatchFilter(**given)
    if choice.since and choice.until and choice.since > choice.until:
        raise Invalid(
            "until",
            expected=Phrase("%(since)s or later, not before since", since=choice.since),
            got=Verbatim(choice.until),
        )
    return choice


def check_role(role: str, game: str | None) -> None:
    """Raises Invalid for a role that the game does not have, or that no game has if `game` is None."""
    games = GAMES.values() if game is None else [find_game(game)]
    roles = list(dict.fromkeys(each for found in games for each in found.roles))
    if role not in roles:
        raise Invalid("role", expected=either(roles), got=role)


def check_known(session: Session, choice: MatchFilter) -> None:
    """Raises NotFound for a player, a study, an arm, a round or a campaign that does not exist: a typing error would
    otherwise look like one without matches.
    """
    known = choice.player in (None, PERSON) or session.scalar(
        select(LanguageModel.id).where(LanguageModel.name == choice.player)
    )
    if not known:
        raise NotFound(
            "player",
            expected=Phrase("%(person)s or the name of a model in the registry", person=PERSON),
            got=choice.player,
        )
    if choice.prompt is not None:
        find_prompt(session, choice.prompt)
    if choice.study is not None and session.scalar(select(Study.id).where(Study.name == choice.study)) is None:
        raise NotFound("study", expected=Phrase("the name of one that exists"), got=choice.study)
    if choice.arm is not None and session.scalar(_select_arm_ids(choice.study, choice.arm).limit(1)) is None:
        raise NotFound("arm", expected=Phrase("the name of one that exists"), got=choice.arm)
    for name, table, number in (("round", RoundRow, choice.round), ("campaign", Campaign, choice.campaign)):
        if number is not None and session.get(table, number) is None:
            raise NotFound(
                name,
                expected=Phrase("the number of one that exists"),
                got=number,
                remedy=Phrase("`flask %(kind)s list` shows them", kind=name),
            )


def in_words(choice: MatchFilter) -> str:
    """The filter as it was given, such as "source live, player person"."""
    given = ((name, getattr(choice, name)) for name in NAMES)
    return ", ".join(f"{name} {value}" for name, value in given if value is not None) or "all matches"


def conditions(choice: MatchFilter) -> list[ColumnElement[bool]]:
    """The filter as WHERE conditions over MatchRow."""
    found: list[ColumnElement[bool]] = [] if asks_for_rehearsals(choice) else [MatchRow.source != REHEARSAL]
    columns = {
        "match": MatchRow.id, "game": MatchRow.game, "reason": MatchRow.reason, "status": MatchRow.status,
        "source": MatchRow.source, "round": MatchRow.round_id,
    }  # fmt: skip
    for name, column in columns.items():
        if (wanted := getattr(choice, name)) is not None:
            found.append(column == wanted)
    if choice.role is not None and choice.game is None:  # implied by the role, but served by an index
        found.append(MatchRow.game.in_([name for name, game in GAMES.items() if choice.role in game.roles]))
    if choice.player is not None or choice.role is not None:
        found.append(_played_by(choice.player, choice.role))
    if choice.campaign is not None:
        found.append(_of_campaign(choice.campaign))
    if choice.study is not None or choice.arm is not None:
        found.append(MatchRow.arm_id.in_(_select_arm_ids(choice.study, choice.arm)))
    if choice.consent is not None:
        unasked = _played_by(PERSON, None, consented=False)
        found.append(unasked if choice.consent == MISSING else _played_by(PERSON, None) & ~unasked)
    if choice.since is not None:
        found.append(MatchRow.started_at >= _midnight(choice.since))
    if choice.until is not None:
        found.append(MatchRow.started_at < _midnight(choice.until) + timedelta(days=1))
    return found + _of_its_course(choice)


def unindexed(wanted: Sequence[ColumnElement[bool]]) -> list[ColumnElement[bool]]:
    """The same conditions, written so that no database uses an index on their columns.

    For a WHERE in which another condition already leaves few rows.
    """
    return [case((and_(*wanted), 1), else_=0) == 1] if wanted else []


class _Unsearched(FunctionElement[Any]):
    """A column whose index SQLite does not use: without statistics here, SQLite cannot tell which index leaves few
    rows.

    PostgreSQL has statistics on the column, but would have none on an expression: it would take a value that nearly all
    rows have for a rare one.
    """

    inherit_cache = True
    name = "unsearched"


@compiles(_Unsearched)
def _as_it_is(element: Any, compiler: Any, **more: Any) -> str:
    return str(compiler.process(element.clauses, **more))


@compiles(_Unsearched, "sqlite")
def _unsearched_on_sqlite(element: Any, compiler: Any, **more: Any) -> str:
    return f"coalesce({compiler.process(element.clauses, **more)}, NULL)"


def is_over() -> ColumnElement[bool]:
    """Whether a match is over, for a WHERE in which another condition already leaves few rows.

    Otherwise SQLite would read all finished matches by the index of those under way.
    """
    return _Unsearched(MatchRow.status) == "over"


def _of_its_course(choice: MatchFilter) -> list[ColumnElement[bool]]:
    """Conditions on what was said in the match, on the prompt of a model in it, and on its figures."""
    said = [] if choice.text is None else said_conditions(read_query(choice.text))
    before = [] if choice.prompt is None else [_was_given_prompt(choice.prompt)]
    return said + before + [each.condition for each in read_figures(choice.figures or "")]


def asks_for_rehearsals(choice: MatchFilter) -> bool:
    """Whether a filter may select matches of bots and previews."""
    of_copy = choice.study is not None and choice.study.endswith(REHEARSAL_SUFFIX)
    return choice.match is not None or choice.source is not None or of_copy


def _played_by(player: str | None, role: str | None, *, consented: bool = True) -> ColumnElement[bool]:
    """Whether the player had a seat in the match, in that role; with `consented` false, a seat without consent to
    training.
    """
    # Aliased, because the enclosing statement may join the same table.
    seat = aliased(SeatRow)
    seats = select(seat.seat).where(seat.match_id == MatchRow.id).correlate(MatchRow)
    if role is not None:
        seats = seats.where(seat.role == role)
    if not consented:
        seats = seats.where(seat.training_consent.is_not(True))
    if player == PERSON:
        seats = seats.where(seat.kind == PERSON)
    elif player is not None:
        named = select(LanguageModel.id).where(LanguageModel.name == player).scalar_subquery()
        # A match has two seats; by the index of models, SQLite would read all of a model's seats for each match.
        seats = seats.where(_Unsearched(seat.language_model_id) == named)
    return exists(seats)


def _was_given_prompt(prompt: str) -> ColumnElement[bool]:
    """Whether a model in the match was given that prompt beside the rules."""
    seat = aliased(SeatRow)
    named = seat.prompt == prompt if "@" in prompt else seat.prompt.startswith(f"{prompt}@", autoescape=True)
    return exists(select(seat.seat).where(seat.match_id == MatchRow.id, named).correlate(MatchRow))


def _select_arm_ids(study: str | None, arm: str | None) -> Select[int]:
    found = select(Arm.id)
    if arm is not None:
        found = found.where(Arm.name == arm)
    if study is not None:
        versions = select(StudyVersion.id).join(Study, Study.id == StudyVersion.study_id).where(Study.name == study)
        found = found.where(Arm.study_version_id.in_(versions))
    return found


def _of_campaign(number: int) -> ColumnElement[bool]:
    rounds = select(RecipeStep.number).where(RecipeStep.campaign_id == number, RecipeStep.kind == _ROUND)
    return MatchRow.round_id.in_(rounds)


def _day(name: str, text: str) -> date:
    try:
        day = date.fromisoformat(text)
        if not 2000 <= day.year <= 2999:
            raise ValueError
    except ValueError:
        raise Invalid(name, expected=Phrase("a day such as 2026-01-31"), got=text) from None
    return day


def _read_id(name: str, text: str) -> int:
    return whole_number(text, name, 1, 2**31 - 1)


def _read_text(_name: str, text: str) -> str:
    """The text to search for. Any text is allowed; characters that are not printable are treated as blanks.

    No line shows them, and not every database stores them.
    """
    text = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    read_query(text)
    return text


def _read_figures(_name: str, text: str) -> str:
    return " ".join(map(str, read_figures(text)))


_READ: Mapping[str, Callable[[str, str], Any]] = {
    "round": _read_id, "campaign": _read_id, "since": _day, "until": _day, _TEXT: _read_text, "figures": _read_figures,
}  # fmt: skip


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
