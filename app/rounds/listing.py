"""Rounds for experimenters: a page of those that a filter chooses, those that are open, and how they score."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from app.core.errors import Invalid, either
from app.games import find_game
from app.jobs import states
from app.models import LanguageModel, MatchRow, RoundRange, RoundRow
from app.registry import get_model
from app.rounds import lifecycle, ranges
from app.rounds.job import ROUND

PAGE = 25  # rounds on a page


@dataclass(frozen=True, slots=True)
class RoundFilter:
    """What a round has to be; None does not matter. `model` sits in either seat."""

    game: str | None = None
    status: str | None = None
    model: str | None = None


NAMES = ("game", "status", "model")


@dataclass(frozen=True, slots=True)
class RoundListItem:
    """A round in a list, with the names of its models by seat and what its status is called.

    A whole cross-play is one line, too: `row` is its first round, `members` are all of them, `models` all who play.
    """

    row: RoundRow
    models: tuple[str, ...]
    state: str
    members: tuple[RoundRow, ...] = ()

    @property
    def rows(self) -> tuple[RoundRow, ...]:
        return self.members or (self.row,)

    @property
    def name(self) -> str:
        """What somebody has called it; the rounds of a cross-play that nobody named are named after their pairs."""
        return self.row.name if len({row.name for row in self.rows}) == 1 else ""

    @property
    def matches(self) -> int:
        return sum(row.matches for row in self.rows)

    @property
    def finished(self) -> int:
        return sum(row.finished for row in self.rows)

    @property
    def error(self) -> str | None:
        return next((row.error for row in self.rows if row.error), None)

    @property
    def percent(self) -> int:
        return 100 * self.finished // max(1, self.matches)

    @property
    def all_aborted(self) -> bool:
        return all(lifecycle.all_aborted(row) for row in self.rows)


class MeanScores(NamedTuple):
    """Of the matches of a round that are over: the mean of both seats' utilities, and the commonest way to end."""

    mean: float | None
    reason: str | None
    share: float | None  # of the matches that ended so


def read_chosen(session: Session, raw: Mapping[str, str]) -> RoundFilter:
    """A filter from an address. Raises NotFound for an unknown game or model, and Invalid for an unknown status."""
    given = {name: text for name in NAMES if (text := raw.get(name, "").strip())}
    if "game" in given:
        find_game(given["game"])
    if given.get("status", states.DONE) not in states.STATUSES:
        raise Invalid("status", expected=either(states.STATUSES), got=given["status"])
    if "model" in given:
        get_model(session, given["model"])
    return RoundFilter(**given)


def chosen_rounds(
    session: Session, chosen: RoundFilter, before: int | None = None
) -> tuple[list[RoundListItem], int | None]:
    """A page of the chosen rounds, the latest first, and the number behind which the next page begins, if any.

    A cross-play is there if any of its rounds is chosen.
    """
    wanted: list[ColumnElement[bool]] = []
    for column, value in ((_member.game, chosen.game), (_member.status, chosen.status)):
        if value is not None:
            wanted.append(column == value)
    if chosen.model is not None:
        number = get_model(session, chosen.model).id
        wanted.append((_member.model_0_id == number) | (_member.model_1_id == number))
    statement = _first_rounds(wanted).limit(PAGE + 1)
    if before is not None:
        statement = statement.where(RoundRow.id < before)
    rows = session.scalars(statement).all()
    return _with_members(session, rows[:PAGE]), rows[PAGE - 1].id if len(rows) > PAGE else None


def open_rounds(session: Session) -> list[RoundListItem]:
    """The rounds and cross-plays that are played or wait to be, the latest first; at most a page of them."""
    statement = _first_rounds([_member.status.in_(states.LIVE)]).limit(PAGE)
    return _with_members(session, session.scalars(statement).all())


def latest_rounds(session: Session, limit: int, offset: int = 0) -> tuple[list[RoundListItem], bool]:
    """So many rounds and cross-plays after the first `offset`, the latest first; and whether there are older ones."""
    rows = session.scalars(_first_rounds([]).offset(offset).limit(limit + 1)).all()
    return _with_members(session, rows[:limit]), len(rows) > limit


_member = aliased(RoundRow)


def _first_rounds(wanted: Sequence[ColumnElement[bool]]) -> Select[RoundRow]:
    """Rounds of no cross-play, and the first of each cross-play, of which one round is as `wanted`."""
    first = or_(RoundRow.matrix_id.is_(None), RoundRow.matrix_id == RoundRow.id)
    statement = select(RoundRow).where(first).order_by(RoundRow.id.desc())
    if wanted:
        belongs = or_(_member.id == RoundRow.id, _member.matrix_id == RoundRow.id)
        statement = statement.where(exists().where(belongs, *wanted))
    return statement


def _with_members(session: Session, rows: Sequence[RoundRow]) -> list[RoundListItem]:
    """These rounds as lines of a list, cross-plays with all of their rounds."""
    numbers = [row.id for row in rows if row.matrix_id is not None]
    members: dict[int | None, list[RoundListItem]] = {number: [] for number in numbers}
    found = session.scalars(select(RoundRow).where(RoundRow.matrix_id.in_(numbers)).order_by(RoundRow.id)).all()
    for line in list_items(session, found):
        members[line.row.matrix_id].append(line)
    return [
        cross_play_item(members[line.row.id]) if line.row.id in members else line for line in list_items(session, rows)
    ]


def cross_play_item(members: Sequence[RoundListItem]) -> RoundListItem:
    """All rounds of a cross-play as one line."""
    models = tuple(dict.fromkeys(name for line in members for name in line.models))
    state = min((line.state for line in members), key=_FOREMOST.index)
    return RoundListItem(members[0].row, models, state, tuple(line.row for line in members))


# What is said of a cross-play: the first of these that one of its rounds is.
_FOREMOST = (
    states.RUNNING, states.CANCELLING, states.WAITING, states.FAILED, states.INTERRUPTED, states.CANCELLED, states.DONE,
)  # fmt: skip


def waits_behind(session: Session, rows: Sequence[RoundRow]) -> dict[int, list[int]]:
    """The numbers of the rounds that workers play while a round waits for them, by its number.

    The list is empty for a round that does not wait for that.
    """
    now = datetime.now(UTC)
    waiting = {
        row.id
        for row in rows
        if row.queued and row.status == states.WAITING and (row.retry_at is None or row.retry_at <= now)
    }
    played: Sequence[int] = ()
    if waiting:
        held = select(RoundRange.round_id).where(ranges.being_played(now))
        found = select(RoundRow.id).where(RoundRow.queued, RoundRow.id.in_(held)).order_by(RoundRow.id)
        played = session.scalars(found).all()
    return {row.id: [number for number in played if row.id in waiting and number != row.id] for row in rows}


def list_items(session: Session, rows: Sequence[RoundRow]) -> list[RoundListItem]:
    """Rounds as lines of a list."""
    numbers = {number for row in rows for number in (row.model_0_id, row.model_1_id) if number is not None}
    found = session.execute(select(LanguageModel.id, LanguageModel.name).where(LanguageModel.id.in_(numbers)))
    names = {row.id: row.name for row in found}
    found_states = ROUND.states_of(session, rows)
    return [
        RoundListItem(
            row,
            tuple(names[number] for number in (row.model_0_id, row.model_1_id) if number is not None),
            found_states[row.id],
        )
        for row in rows
    ]


def score(session: Session, round_id: int) -> MeanScores:
    """How the matches of a round have ended so far."""
    counted = session.execute(
        select(MatchRow.reason, func.count(), func.avg((MatchRow.utility_0 + MatchRow.utility_1) / 2))
        .where(MatchRow.round_id == round_id, MatchRow.status == "over")
        .group_by(MatchRow.reason)
        .order_by(func.count().desc(), MatchRow.reason)
    ).all()
    total = sum(row[1] for row in counted)
    if not total:
        return MeanScores(None, None, None)
    scored = [row for row in counted if row[2] is not None]
    mean = sum(row[1] * float(row[2]) for row in scored) / max(1, sum(row[1] for row in scored))
    return MeanScores(mean if scored else None, counted[0][0], counted[0][1] / total)
