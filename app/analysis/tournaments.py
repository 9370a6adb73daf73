"""The matches of tournaments, read from the rows of matches and seats in one grouped query.

A tournament is any set of matches that models played against each other in rounds: all of a game, a cross-play, or a
recipe's run. People are one player, and only those of studies whose file has `people_in_tournaments: true` count, once
their wave is frozen. Logs are not read, except for the event that broke a match off, which says whose fault it was.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Text, case, cast, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from app.analysis.leaderboard import BOTH, Leaderboard, leaderboard
from app.analysis.reading import PEOPLE, drawn
from app.analysis.results import FIRST, SECOND, TIE, ResultLine, Results, results_of
from app.games import GAMES, find_game, partner_weight_of
from app.matches.engine import BROKEN_OFF
from app.matches.events import Aborted, LogEvent, Resigned, TimedOut, from_json
from app.matches.filter import PEOPLES, MatchFilter, check_known, conditions, is_over
from app.matches.held_out import piece_key
from app.models import (
    Arm,
    Enrolment,
    EventRow,
    GenerationRow,
    LanguageModel,
    MatchRow,
    RoundRow,
    SeatRow,
    StudyVersion,
    Wave,
)
from app.registry.prices import prices_of_model
from app.registry.spending import CallSums
from app.rounds import matrix
from app.rounds.job import SELFPLAY

Kind = tuple[str, float | None]  # the game, and what a partner's point is worth
_AT_ONCE = 5_000  # rows in memory
_MODELS_FAULT = "model"
_KINDS_OF_FAULTS = ("resigned", "timeout", "aborted")  # one of these precedes the end of a match aborted
_WITHDRAWN = "withdrawn"  # the ending when consent was withdrawn
_PERSON = 0  # in place of a model's number
_ROUND = aliased(RoundRow)


class TournamentChoice(NamedTuple):
    """The rounds of a tournament: those of a cross-play, those of a recipe's run, or all. None: no restriction."""

    game: str | None = None
    matrix: int | None = None
    campaign: int | None = None


@dataclass(frozen=True, slots=True)
class TournamentMatches:
    """All matches of one game and one weight of the partner's points.

    `results` are those played to their end. `faults` counts by player and place those that the player ended by a fault:
    refused moves or no answer, a person's leaving, and a turn whose clock ran out. `lowest` and `highest` are the
    bounds of a seat's score. `prices` are US dollars per match by player, the mean over all finished matches; people
    have none, nor do models with unknown prices.
    """

    game: str
    partner_weight: float | None
    results: Results
    faults: Mapping[str, tuple[int, int]]
    lowest: float
    highest: float
    prices: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Setting:
    """The facts in a match's config: the context drawn as one, the piece played, and the seat that begins."""

    kind: Kind
    context: str
    piece: str
    begins: int


class _BrokenOff(NamedTuple):
    """A match that was aborted: its game and config, the facts in the config, and its players, by seat."""

    game: str
    config: str
    setting: _Setting
    players: tuple[str, str]


def tournament_matches(session: Session, choice: TournamentChoice, most: int | None = None) -> list[TournamentMatches]:
    """The finished matches, by game and weight; with `most`, at most that many, drawn at random.

    Raises NotFound for an unknown cross-play or campaign.
    """
    check_known(session, MatchFilter(campaign=choice.campaign))
    if choice.matrix is not None:
        matrix.rounds_of(session, choice.matrix)
    models = {row.id: row for row in session.scalars(select(LanguageModel))}
    names = {_PERSON: PEOPLE, **{number: row.name for number, row in models.items()}}
    chosen = _tournament_conditions(session, choice)
    wanted = select(MatchRow.id).where(*chosen)
    if most is not None:
        wanted = drawn(session, chosen, MatchFilter(game=choice.game, source=SELFPLAY), most)
    wanted = _untold_with_rounds(wanted)
    settings: dict[tuple[str, str], _Setting] = {}
    ranges: dict[Kind, tuple[float, float]] = {}
    lines: dict[Kind, list[ResultLine]] = {}
    broken: dict[str, _BrokenOff] = {}
    for game, config, model_0, model_1, more, broken_id, matches, *points in _grouped(session, wanted):
        if model_0 is None or model_1 is None:  # a restore in progress: seats come after the match
            continue
        players = names[model_0], names[model_1]
        setting = settings.get((game, config))
        if setting is None:
            setting = settings[game, config] = _setting_of_config(game, json.loads(config))
        if broken_id is not None:
            broken[broken_id] = _BrokenOff(game, config, setting, players)
            continue
        if setting.kind not in ranges:
            ranges[setting.kind] = _utility_range(game, json.loads(config))
        lines.setdefault(setting.kind, []).append(_result_line(setting, players, more, matches, (points[0], points[1])))
    faults = _faults(session, broken, ranges)
    free = {row.name: 0.0 for row in models.values() if row.kind != "api"}
    chosen = [*chosen, has_no_system_prompt()] if most is None else [MatchRow.id.in_(wanted)]
    paid = _prices(session, chosen, {number: row for number, row in models.items() if row.kind == "api"}, settings)
    return [
        TournamentMatches(
            *kind, results_of(lines.get(kind, ())), faults.get(kind, {}), *ranges[kind], free | paid.get(kind, {})
        )
        for kind in sorted(ranges, key=lambda kind: (kind[0], kind[1] or 0))
    ]


def _tournament_conditions(session: Session, choice: TournamentChoice) -> list[ColumnElement[bool]]:
    """The WHERE conditions over MatchRow for a tournament's matches, if no model was told more than the rules."""
    found = conditions(MatchFilter(game=choice.game, campaign=choice.campaign))
    if choice.matrix is not None:
        found.append(MatchRow.round_id.in_(select(RoundRow.id).where(RoundRow.matrix_id == choice.matrix)))
    of_models = MatchRow.source == SELFPLAY
    arms = _arms_with_people(session)
    known = MatchRow.game.in_(GAMES)
    return [*found, known, is_over(), (of_models | _of_people(arms)) if arms else of_models]


def _arms_with_people(session: Session) -> list[int]:
    """The arms of studies whose file says that people take part in tournaments."""
    opened = select(Wave.study_version_id).where(Wave.frozen_at.is_not(None), Wave.rehearsal.is_(False))
    versions = session.execute(
        select(StudyVersion.id, StudyVersion.design).where(StudyVersion.id.in_(opened)).order_by(StudyVersion.id)
    )
    found = [number for number, stored in versions if json.loads(stored["design"]).get("people_in_tournaments") is True]
    return list(session.scalars(select(Arm.id).where(Arm.study_version_id.in_(found)).order_by(Arm.id)))


def _of_people(arms: Iterable[int]) -> ColumnElement[bool]:
    """Matches of these arms that count."""
    return MatchRow.arm_id.in_(list(arms)) & counted_people()


def has_no_system_prompt() -> ColumnElement[bool]:
    """Whether no model was told more than the rules, for a WHERE over MatchRow.

    A model with a persona is a different player from the same model without one.
    """
    seat = aliased(SeatRow)
    told = select(seat.seat).where(seat.match_id == MatchRow.id, seat.prompt.is_not(None)).correlate(MatchRow)
    return ~exists(told)


def counted_people() -> ColumnElement[bool]:
    """Whether a match with people counts, for a WHERE over MatchRow.

    It does if it is of guests, or of people in frozen waves who have not withdrawn, is no practice, and nothing in it
    was erased.
    """
    seat = aliased(SeatRow)
    closed = Wave.frozen_at.is_not(None) & Wave.rehearsal.is_(False)
    out = (
        select(seat.seat)
        .join(Enrolment, Enrolment.id == seat.enrolment_id)
        .outerjoin(Wave, Wave.id == Enrolment.wave_id)
        .where(seat.match_id == MatchRow.id, or_(Wave.id.is_(None), ~closed, Enrolment.ending == _WITHDRAWN))
        .correlate(MatchRow)
    )
    return (
        MatchRow.source.in_(PEOPLES)
        & (MatchRow.arm_id.is_(None) | MatchRow.position.is_not(None))
        & MatchRow.erased_at.is_(None)
        & ~exists(out)
    )


def _untold_with_rounds(wanted: Select[str]) -> Select[str]:
    """The matches for which `untold` holds, joined with _ROUND where a round's models were told nothing.

    No seats are read for the latter, as seats lie apart in the second largest table.
    """
    tells = (_ROUND.id == MatchRow.round_id) & _tells_players(_ROUND)
    # Use a list of such rounds: from a join, PostgreSQL expects hardly any matches and sorts all to draw some.
    of_round = MatchRow.round_id.in_(select(RoundRow.id).where(_tells_players(RoundRow)))
    # Count, because PostgreSQL may evaluate NOT EXISTS over all seats at once; and test for NULL, because it expects
    # few rows that equal a value.
    untold_seats = _of_seats(case((func.count(SeatRow.prompt) == 0, 1)))
    return wanted.outerjoin(_ROUND, tells).where(case((of_round, 1), else_=untold_seats).is_not(None))


def _tells_players(rounds: type[RoundRow]) -> ColumnElement[bool]:
    """Whether a round determines who sits in its matches and its models were told nothing."""
    return (rounds.source == SELFPLAY) & rounds.prompts.is_(None)


def _model_of(number: int) -> ColumnElement[Any]:
    """The number of the model in a seat of such matches, or _PERSON; None without that seat."""
    own = _ROUND.model_0_id, _ROUND.model_1_id
    model = case((_ROUND.swap_seats & (MatchRow.index % 2 == 1), own[1 - number]), else_=own[number])
    # One lookup per match: with a join, PostgreSQL would read the seats of all matches to get some thousands.
    seated = _of_seats(func.coalesce(SeatRow.language_model_id, _PERSON), SeatRow.seat == number)
    return case((_ROUND.id.is_not(None), model), else_=seated)


def _of_seats(value: ColumnElement[Any], *which: ColumnElement[bool]) -> ColumnElement[Any]:
    """A value computed from a match's seats, for a statement over MatchRow."""
    return select(value).where(SeatRow.match_id == MatchRow.id, *which).correlate(MatchRow).scalar_subquery()


def _grouped(session: Session, wanted: Select[str]) -> Iterator[Any]:
    """These matches with their players, counted: the keys, the number of matches, and the sums of points.

    The keys are game, config, players, who got more, and, for a match aborted, its id, so that it is counted on its
    own. Each match is read once: among a million, the drawn rows lie far apart.
    """
    utilities = MatchRow.utility_0, MatchRow.utility_1
    more = case((utilities[0] > utilities[1], 0), (utilities[0] < utilities[1], 1), else_=TIE)
    columns = {
        "game": MatchRow.game, "config": cast(MatchRow.config, Text), "model_0": _model_of(0), "model_1": _model_of(1),
        "more": more, "broken": case((MatchRow.reason.in_(BROKEN_OFF), MatchRow.id)), "points_0": utilities[0],
        "points_1": utilities[1], "reason": MatchRow.reason,
    }  # fmt: skip
    match = wanted.with_only_columns(*(each.label(name) for name, each in columns.items())).subquery().c
    keys = [match[name] for name in list(columns)[:6]]
    sums = [func.coalesce(func.sum(each), 0) for each in (match.points_0, match.points_1)]
    rows = session.execute(
        select(*keys, func.count(), *sums).where(match.reason.is_not(None)).group_by(*keys),
        execution_options={"yield_per": _AT_ONCE},
    )
    for part in rows.partitions():
        yield from part


def _setting_of_config(game: str, config: Mapping[str, Any]) -> _Setting:
    found = find_game(game)
    kind = found.material
    piece = None if kind is None else kind.piece_of(config)
    if piece is None:
        piece = {name: config.get(name) for name in found.drawn}
        context = json.dumps(piece)
    else:
        context = piece_key(game, piece)
    begins = 0 if found.first_field is None else int(config.get(found.first_field) or 0)
    return _Setting((game, partner_weight_of(game, config)), context, json.dumps(piece), begins)


def _result_line(
    setting: _Setting, players: tuple[str, str], more: int, matches: int, points: tuple[float, float]
) -> ResultLine:
    """A line with the beginning player first."""
    seats = setting.begins, 1 - setting.begins
    return ResultLine(
        (players[seats[0]], players[seats[1]]),
        setting.context,
        ((setting.piece, seats[0]), (setting.piece, seats[1])),
        TIE if more == TIE else (FIRST, SECOND)[seats.index(more)],
        matches,
        (float(points[seats[0]]), float(points[seats[1]])),
    )


def _utility_range(game: str, config: Mapping[str, Any]) -> tuple[float, float]:
    low, high = find_game(game).utility_range(config)
    return float(low), float(high)


def _faults(
    session: Session, broken: Mapping[str, _BrokenOff], ranges: MutableMapping[Kind, tuple[float, float]]
) -> dict[Kind, dict[str, tuple[int, int]]]:
    """Matches that a player ended by a fault, by player and place. Kinds missing from `ranges` are added to it."""
    found: dict[Kind, dict[str, tuple[int, int]]] = {}
    ids = list(broken)
    for start in range(0, len(ids), _AT_ONCE):
        logged = EventRow.match_id.in_(ids[start : start + _AT_ONCE]), EventRow.kind.in_(_KINDS_OF_FAULTS)
        for match_id, body in session.execute(select(EventRow.match_id, EventRow.body).where(*logged)):
            seat = _seat_at_fault(from_json(body))
            if seat is None:
                continue
            game, config, setting, players = broken[match_id]
            if setting.kind not in ranges:
                ranges[setting.kind] = _utility_range(game, json.loads(config))
            counts = found.setdefault(setting.kind, {})
            first_place, second_place = counts.get(players[seat], (0, 0))
            began = seat == setting.begins
            counts[players[seat]] = first_place + began, second_place + (not began)
    return found


def _prices(
    session: Session,
    chosen: Iterable[ColumnElement[bool]],
    models: Mapping[int, LanguageModel],
    settings: Mapping[tuple[str, str], _Setting],
) -> dict[Kind, dict[str, float]]:
    """The cost of a match seat with each of these models in US dollars, where known."""
    if not models:
        return {}
    keys = GenerationRow.language_model_id, GenerationRow.seat, MatchRow.game, cast(MatchRow.config, Text)
    rows = session.execute(
        select(*keys, func.count(GenerationRow.match_id.distinct()), *CallSums.columns())
        .join(MatchRow, MatchRow.id == GenerationRow.match_id)
        .where(*chosen, GenerationRow.language_model_id.in_(list(models)))
        .group_by(*keys)
    )
    counts: Counter[tuple[Kind, int]] = Counter()
    costs: dict[tuple[Kind, int], float | None] = {}
    for number, _seat, game, config, matches, *sums in rows:
        setting = settings.get((game, config)) or _setting_of_config(game, json.loads(config))
        before, cost = costs.get((setting.kind, number), 0.0), CallSums.of(sums).cost(prices_of_model(models[number]))
        counts[setting.kind, number] += matches
        costs[setting.kind, number] = None if before is None or cost is None else before + cost
    found: dict[Kind, dict[str, float]] = {}
    for (kind, number), cost in costs.items():
        if cost is not None:
            found.setdefault(kind, {})[models[number].name] = cost / counts[kind, number]
    return found


def _seat_at_fault(event: LogEvent) -> int | None:
    """The seat whose player caused the match to be aborted; None if no player did."""
    match event:
        case Aborted(seat=seat, fault=fault):
            return seat if fault == _MODELS_FAULT else None
        case Resigned(seat=seat) | TimedOut(seat=seat):
            return seat
    return None


def leaderboard_of(matches: TournamentMatches, role: str = BOTH) -> Leaderboard:
    """The leaderboard of these matches in a role, or in both. Raises Invalid for a role that the game does not have."""
    bounds = matches.lowest, matches.highest
    return leaderboard(
        matches.game, matches.partner_weight, matches.results, matches.faults, bounds, matches.prices, role
    )
