"""Rounds for experimenters: a page of those that match a filter, the open ones, and their scores."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Integer, Select, case, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from app.core.errors import Invalid, Phrase, either
from app.core.lists import NOWHERE, PAGES, ListColumn, Listing, State, attribute, of_other
from app.games import find_game
from app.jobs import states
from app.jobs.listing import MARKS, job_columns
from app.matches.counts import EndedAs, endings_of_rounds
from app.models import LanguageModel, MatchCount, RoundRange, RoundRow
from app.registry import get_model
from app.registry.listing import game_cell, model_name
from app.rounds import lifecycle, ranges
from app.rounds.job import IMPORT, ROUND

CROSS_PLAY = "cross-play"  # what the line of a cross-play leads to
MOST_OPEN = 25  # rounds in the list of open ones


@dataclass(frozen=True, slots=True)
class RoundFilter:
    """Conditions on rounds; None matches any. `model` sits in either seat."""

    game: str | None = None
    status: str | None = None
    model: str | None = None


NAMES = ("game", "status", "model")


@dataclass(frozen=True, slots=True)
class RoundListItem:
    """A round in a list, with the names of its models by seat and the label of its status.

    A whole cross-play is also one line: `row` is its first round, `members` are all of them, `models` all its players.
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
        """The given name; rounds of an unnamed cross-play are named after their pairs, so it has none."""
        return self.row.name if len({row.name for row in self.rows}) == 1 else ""

    @property
    def matches(self) -> int:
        return sum(row.matches for row in self.rows)

    @property
    def finished(self) -> int:
        return sum(row.finished for row in self.rows)

    @property
    def done(self) -> int:
        return self.finished

    @property
    def of(self) -> int:
        return self.matches

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
    """For the finished matches of a round: the mean of both seats' utilities, and the most common ending."""

    mean: float | None
    reason: str | None
    share: float | None  # the share of matches that ended so


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


def conditions(session: Session, chosen: RoundFilter) -> list[ColumnElement[bool]]:
    """The filter for a WHERE over the list. A cross-play is included if any of its rounds matches."""
    wanted: list[ColumnElement[bool]] = []
    for column, value in ((_member.game, chosen.game), (_member.status, chosen.status)):
        if value is not None:
            wanted.append(column == value)
    if chosen.model is not None:
        number = get_model(session, chosen.model).id
        wanted.append((_member.model_0_id == number) | (_member.model_1_id == number))
    belongs = or_(_member.id == RoundRow.id, _member.matrix_id == RoundRow.id)
    return [exists().where(belongs, *wanted)] if wanted else []


def open_rounds(session: Session) -> list[RoundListItem]:
    """The rounds and cross-plays that are running or waiting, latest first; at most MOST_OPEN."""
    live = select(func.coalesce(_member.matrix_id, _member.id)).where(_member.status.in_(states.LIVE))
    is_open = RoundRow.id.in_(live)  # a subquery, as few rounds are live: row by row, all rounds would be read
    return _with_members(session, LIST.read(session, LIST.order(""), MOST_OPEN, where=[is_open]).rows)


_member = aliased(RoundRow)


def _first_rounds() -> Select[RoundRow]:
    """Rounds outside any cross-play, and the first of each cross-play."""
    return select(RoundRow).where(or_(RoundRow.matrix_id.is_(None), RoundRow.matrix_id == RoundRow.id))


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


# A cross-play's state is the first of these that one of its rounds has.
_FOREMOST = (
    states.RUNNING, states.CANCELLING, states.WAITING, states.FAILED, states.INTERRUPTED, states.CANCELLED, states.DONE,
    states.REMOVED,
)  # fmt: skip


def waits_behind(session: Session, rows: Sequence[RoundRow]) -> dict[int, list[int]]:
    """The numbers of the rounds that workers are playing while a round waits for them, by its number.

    The list is empty for a round that does not wait for workers.
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


def _name_or_players(line: RoundListItem) -> str:
    """The name of a round or cross-play in a list; by default, its players."""
    return line.name or (" – " if not line.members else ", ").join(dict.fromkeys(line.models))


def _round_state(line: RoundListItem) -> State:
    return State("done, all aborted", "bad") if line.all_aborted else State(line.state, MARKS.get(line.state, ""))


def _notes(line: RoundListItem) -> list[Phrase]:
    found = [Phrase("imported")] if line.row.source == IMPORT else []
    return [*found, Phrase("%(count)s rounds", count=len(line.members))] if line.members else found


def _players_cell(line: RoundListItem) -> list[str | Phrase] | Phrase:
    """The players, one per line; for a cross-play, in one line."""
    if not line.models:
        return Phrase("imported players")
    if line.members:
        return [", ".join(line.models)]
    first, last = line.models[0], line.models[-1]
    return [first, Phrase("in both seats")] if first == last else [first, last]


def _mean_scores_of_rounds(session: Session, lines: Sequence[RoundListItem]) -> list[float | None]:
    """The mean score over both seats of each round; none for a cross-play, which has one for each pair."""
    found = endings_of_rounds(session, [line.row.id for line in lines if not line.members])
    return [_mean_over_seats(found.get(line.row.id, ())) for line in lines]


def _mean_over_seats(ended: Sequence[EndedAs]) -> float | None:
    """The mean score over both seats."""
    scored = sum(each.scored for each in ended)
    return sum(each.points_0 + each.points_1 for each in ended) / 2 / scored if scored else None


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
    """The scores and endings of a round's matches so far."""
    ended = endings_of_rounds(session, [round_id])[round_id]
    by_reason: Counter[str] = Counter()
    for each in ended:
        by_reason[each.reason or ""] += each.matches
    total = by_reason.total()
    if not total:
        return MeanScores(None, None, None)
    commonest = min(by_reason, key=lambda reason: (-by_reason[reason], reason))
    return MeanScores(_mean_over_seats(ended), commonest, by_reason[commonest] / total)


# As _mean_scores_of_rounds computes it for the rows of a page.
_MEAN_SCORE = case(
    (
        RoundRow.matrix_id.is_(None),
        of_other(
            func.sum(MatchCount.points_0 + MatchCount.points_1)
            / 2
            / func.nullif(func.sum(MatchCount.scored), 0, type_=Integer),
            MatchCount.round_id == RoundRow.id,
        ),
    )
)

LIST: Listing[RoundRow] = Listing(
    name=ROUND.plural,
    table=RoundRow,
    columns=job_columns(
        ROUND,
        ListColumn(
            "score",
            Phrase("Score or outcome"),
            values=_mean_scores_of_rounds,
            sort=_MEAN_SCORE,
            none=Phrase("none yet"),
            seen=PAGES,
        ),
        ListColumn("game", Phrase("Game"), lambda line: game_cell(line.row.game), sort=RoundRow.game),
        ListColumn("models", Phrase("Models"), _players_cell, sort=model_name(RoundRow.model_0_id)),
        ListColumn("rounds", Phrase("Rounds"), lambda line: len(line.members) or None, numeric=True, seen=NOWHERE),
        attribute(RoundRow.seed, Phrase("Seed"), seen=NOWHERE),
        title=Phrase("Round"),
        done=Phrase("Finished matches"),
        name=_name_or_players,
        subject=lambda line: (
            Phrase("cross-play %(number)s", number=line.row.id) if line.members else ROUND.subject(line.row.id)
        ),
        leads_to=lambda line: CROSS_PLAY if line.members else ROUND.name,
        sort_done=RoundRow.finished,
        state=_round_state,
        notes=_notes,
    ),
    items=_with_members,
    start=_first_rounds,
)
