"""The leaderboard of models: their ratings in a game, their cross-play, and what would settle their order.

It is computed off the event loop, and again when more matches have finished; with very many matches, not each time.
"""

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flask import Response, render_template, request
from flask.typing import ResponseReturnValue
from flask_babel import gettext
from gevent.lock import BoundedSemaphore
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure
from app.analysis.leaderboard import BOTH, Leaderboard, Standing, key_of, roles_of
from app.analysis.leaderboard_charts import leaderboard_charts
from app.analysis.leaderboard_table import LEADERBOARD_COLUMNS, leaderboard_rows
from app.analysis.rating_models import MIDDLE
from app.analysis.ratings import FEW, POINTS, CrossPlayCell, Neighbours, Rating, Ratings
from app.analysis.tournaments import TournamentChoice, TournamentMatches, leaderboard_of, tournament_matches
from app.core.csv_tables import to_csv
from app.core.errors import Invalid, NotFound, Verbatim
from app.core.extensions import db
from app.core.validation import whole_number
from app.games import find_game
from app.jobs import states
from app.jobs.kind import LARGEST
from app.models import LanguageModel, MatchRow, Participant, RoundRow, StudyVersion, Wave
from app.web.admin.blueprint import blueprint
from app.web.admin.rounds_analysis import with_specs
from app.web.admin.rounds_result import IntervalBar, drawn_interval
from app.web.chart_language import page_language
from app.web.csv_exports import csv_flags
from app.web.downloads import download
from app.web.threads import in_worker_thread
from app.web.translations import game_titles

_MOST_KEPT = 8  # tournaments in memory
_LONG = 0.5  # seconds of reading; if it takes longer, it is not repeated for each further match
SAMPLE = 5_000  # matches that a page counts of all, as many as of a round or a list
_PAUSE = 20  # nothing is read again for this many times as long


@dataclass(slots=True)
class _KeptMatches:
    """The matches of a tournament as last read, and the leaderboards computed from them, by part and role."""

    version: tuple[Any, ...]
    good_until: float  # on a monotonic clock
    matches: list[TournamentMatches]
    boards: dict[tuple[str, str], Leaderboard] = field(default_factory=dict)


_kept: OrderedDict[tuple[str, TournamentChoice], _KeptMatches] = OrderedDict()
_one_at_a_time = BoundedSemaphore(1)  # so that ten pages that ask for the same compute it once


class PlayerLine(NamedTuple):
    """A player in the table; without a rating its place is None."""

    name: str
    model_id: int | None
    place: int | None
    rating: Rating | None
    drawn: IntervalBar | None
    standing: Standing | None
    price: float | None  # US dollars per match
    matches: int


class ShadedCell(NamedTuple):
    """A cell of the cross-play with its shade, from 1 to 7; None: the two have not met."""

    cell: CrossPlayCell | None
    shade: int | None
    is_self: bool
    is_few: bool


class NeighbourLine(NamedTuple):
    """Two neighbours with the interval of their gap."""

    found: Neighbours
    drawn: IntervalBar | None
    model_ids: tuple[int | None, int | None]
    cost: float | None  # US dollars for the matches that would settle their order


@blueprint.get("/models/leaderboard")
def leaderboard() -> ResponseReturnValue:
    """The ratings in one game and role; the default is the game with the most matches, and both roles."""
    given = _asked_for()
    try:
        choice = _tournament_choice(given)
        boards, model_ids, is_live = _boards(choice, given.get("part"), given.get("role"))
    except (Invalid, NotFound) as error:
        return render_template("admin/leaderboard.html", given={}, board=None, refused=error, is_live=False), 400
    common = {"given": given, "refused": None, "is_live": is_live}
    if not boards:
        return render_template("admin/leaderboard.html", board=None, **common)
    shown, *others = boards
    return render_template(
        "admin/leaderboard.html",
        board=shown,
        titles=game_titles(),
        kinds=sorted(((each.key, each) for each in boards), key=lambda each: each[0]),
        roles=_role_names(shown.game),
        by_points=shown.ratings.by == POINTS,
        players=_player_lines(shown, model_ids),
        top=[each.player for each in shown.ratings.ratings if each.best_place == 1],
        axis=_rating_axis_limits(shown.ratings),
        cross_plays=[(each, _role_names(each.game)[each.role], _cross_play_rows(each)) for each in (shown, *others)],
        charts=[with_specs(each) for each in leaderboard_charts(shown, page_language())],
        neighbours=_neighbour_lines(shown, model_ids),
        few=FEW,
        **common,
    )


@blueprint.get("/models/leaderboard.csv")
def leaderboard_csv() -> Response:
    """The part that the page shows, in the form of `flask model leaderboard --csv`. Raises NotFound, Invalid."""
    given = _asked_for()
    boards, _, _ = _boards(_tournament_choice(given), given.get("part"), given.get("role"))
    rows = to_csv(LEADERBOARD_COLUMNS, leaderboard_rows(boards[:1]), **csv_flags(request.args))
    return download(rows, "leaderboard.csv", "text/csv")


def _asked_for() -> dict[str, str]:
    """The URL parameters that choose the tournament and what to show of it."""
    names = ("part", "role", "matrix", "campaign")
    return {name: request.args[name] for name in names if request.args.get(name)}


def _tournament_choice(given: Mapping[str, str]) -> TournamentChoice:
    numbers = {
        name: whole_number(given[name], name, 1, LARGEST) if name in given else None for name in ("matrix", "campaign")
    }
    return TournamentChoice(matrix=numbers["matrix"], campaign=numbers["campaign"])


def _boards(
    choice: TournamentChoice, part: str | None, role: str | None
) -> tuple[list[Leaderboard], dict[str, int], bool]:
    """The leaderboard to show, followed by those of the other games and weights; the numbers of models by name; and
    whether rounds are being played.

    Raises NotFound for a missing part, and Invalid for a role that its game does not have.
    """
    engine = db.engine
    version, model_ids, is_live = in_worker_thread(engine, _read_version_and_models)
    kept = _kept_matches(choice, version)
    found = kept.matches
    if not found:
        return [], model_ids, is_live
    known = {key_of(each.game, each.partner_weight): each for each in found}
    if part is not None and part not in known:
        raise NotFound("part", expected=Verbatim(", ".join(known)), got=part)
    shown = part or max(known, key=lambda key: known[key].results.matches.sum())
    boards = []
    for key in (shown, *(each for each in known if each != shown)):
        wanted = (role or BOTH) if key == shown else _usual_role(known[key].game)
        if (key, wanted) not in kept.boards:
            kept.boards[key, wanted] = in_worker_thread(engine, _leaderboard_for_role, known[key], wanted)
        boards.append(kept.boards[key, wanted])
    return boards, model_ids, is_live


def _kept_matches(choice: TournamentChoice, version: tuple[Any, ...]) -> _KeptMatches:
    """The matches of a tournament, read again when there are new ones, but less often if reading takes long.

    Only those of the few most recently used tournaments are kept: a hundred thousand matches take some megabytes.
    """
    engine = db.engine
    place = str(engine.url), choice
    with _one_at_a_time:
        kept = _kept.get(place)
        begun = time.monotonic()
        fresh = kept is not None and (kept.version == version or begun < kept.good_until)
        if kept is None or not fresh:
            most = None if choice.matrix or choice.campaign else SAMPLE
            found = in_worker_thread(engine, tournament_matches, choice, most)
            took = time.monotonic() - begun
            kept = _KeptMatches(version, begun + (_PAUSE * took if took > _LONG else 0), found)
        _kept[place] = kept
        _kept.move_to_end(place)
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
        return kept


def _leaderboard_for_role(_session: Session, matches: TournamentMatches, role: str) -> Leaderboard:
    return leaderboard_of(matches, role)


def _usual_role(game: str) -> str:
    """The role from whose view a cross-play is shown: the first one, or both seats if the game has only one role."""
    first, second = find_game(game).roles
    return BOTH if first == second else first


def _read_version_and_models(session: Session) -> tuple[tuple[Any, ...], dict[str, int], bool]:
    """A version that changes whenever tournaments or prices do; the models; and whether any round is being played."""
    rounds = session.execute(select(func.count(), func.sum(RoundRow.finished), func.max(RoundRow.created_at))).one()
    frozen = select(func.count(), func.max(Wave.frozen_at)).where(Wave.frozen_at.is_not(None))
    people = session.execute(frozen).one()
    erased = (
        session.scalar(select(func.count(Participant.erased_at))),
        session.scalar(select(func.count()).select_from(MatchRow).where(MatchRow.erased_at.is_not(None))),
    )
    versions = session.scalar(select(func.max(StudyVersion.id)))
    rows = session.execute(select(LanguageModel.id, LanguageModel.name, LanguageModel.options)).all()
    models, prices = {row.name: row.id for row in rows}, tuple(str(row.options) for row in rows)
    is_live = session.scalar(select(RoundRow.id).where(RoundRow.status.in_(states.OPEN)).limit(1)) is not None
    return (*rounds, *people, *erased, versions, prices), models, is_live


def _role_names(game: str) -> dict[str, str]:
    """The display names of a game's roles, and of both together."""
    found = find_game(game)
    first, second = roles_of(game)
    if found.roles[0] == found.roles[1]:
        return {BOTH: gettext("Both seats"), first: gettext("Who begins"), second: gettext("Who follows")}
    return {BOTH: gettext("Both roles"), first: gettext(first), second: gettext(second)}


def _rating_axis_limits(ratings: Ratings) -> tuple[float, float] | None:
    """Round numbers that all ratings and their intervals lie between."""
    ends = [end for each in ratings.ratings for end in (each.low, each.value, each.high) if end is not None]
    if not ends:
        return None
    step = 1 if ratings.by == POINTS else 50
    low, high = (min(ends) // step) * step, -(-max(ends) // step) * step
    return low, high if high > low else low + step


def _player_lines(board: Leaderboard, model_ids: Mapping[str, int]) -> list[PlayerLine]:
    axis = _rating_axis_limits(board.ratings)
    middle = 0 if board.ratings.by == POINTS else MIDDLE  # position of the axis's dashed line
    places = {each.player: (place, each) for place, each in enumerate(board.ratings.ratings, 1)}
    lines = []
    for name in board.names:
        place, rating = places.get(name, (None, None))
        drawn = None
        if rating is not None and axis is not None:
            low, high = (None if each is None else each - middle for each in (rating.low, rating.high))
            drawn = drawn_interval(Figure(rating.value - middle, low, high), axis[0] - middle, axis[1] - middle)
        standing = board.standings.get(name)
        price, matches = board.prices.get(name), board.matches_of(name)
        lines.append(PlayerLine(name, model_ids.get(name), place, rating, drawn, standing, price, matches))
    return lines


def _cross_play_rows(board: Leaderboard) -> list[tuple[str, list[ShadedCell]]]:
    """The rows of the cross-play, in the order of the ratings."""
    known = {(each.row, each.column): each for each in board.ratings.cells}
    values = [each.value for each in known.values()] if board.ratings.by == POINTS else [0.0, 1.0]
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    names = board.names
    return [(row, [_shaded(known.get((row, column)), row == column, low, high) for column in names]) for row in names]


def _shaded(cell: CrossPlayCell | None, is_self: bool, low: float, high: float) -> ShadedCell:
    if cell is None:
        return ShadedCell(None, None, is_self, is_few=False)
    shade = 4 if high <= low else 1 + round(6 * (cell.value - low) / (high - low))
    return ShadedCell(cell, shade, is_self, cell.matches < FEW)


def _neighbour_lines(board: Leaderboard, model_ids: Mapping[str, int]) -> Sequence[NeighbourLine]:
    neighbours = board.ratings.neighbours
    ends = [end for each in neighbours for end in (each.low, each.gap, each.high) if end is not None]
    low, high = min([*ends, 0]), max([*ends, 0])
    if high <= low:
        high = low + 1
    return [
        NeighbourLine(
            each,
            drawn_interval(Figure(each.gap, each.low, each.high), low, high),
            (model_ids.get(each.ahead), model_ids.get(each.behind)),
            board.cost_to_settle(each),
        )
        for each in neighbours
    ]
