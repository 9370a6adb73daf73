"""The matches of tournaments, read from the rows of matches and seats in one grouped query.

A tournament is whatever models have played each other in rounds: all of a game, a cross-play, or the run of a recipe.
People are one player, and only those of studies whose file has `people_in_tournaments: true` are in it, once their
wave is frozen. Logs are not read, but for the event that broke a match off, which says whose fault it was.
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
from app.registry import PERSON
from app.registry.prices import prices_of_model
from app.registry.spending import CallSums
from app.rounds import matrix
from app.rounds.job import SELFPLAY

Kind = tuple[str, float | None]  # the game, and what a partner's point is worth
_AT_ONCE = 5_000  # rows in memory
_MODELS_FAULT = "model"
_KINDS_OF_FAULTS = ("resigned", "timeout", "aborted")  # one of them stands before the end of a match broken off
_WITHDRAWN = "withdrawn"  # the ending of who took back the consent
_SEATS = aliased(SeatRow), aliased(SeatRow)


class TournamentChoice(NamedTuple):
    """Which rounds a tournament is: those of a cross-play, those of a recipe's run, or all. None does not matter."""

    game: str | None = None
    matrix: int | None = None
    campaign: int | None = None


@dataclass(frozen=True, slots=True)
class TournamentMatches:
    """All matches of one game and one weight of the partner's points.

    `results` are those that were played to their end. `faults` counts by player and place those that the player ended
    by a fault: refused moves or no answer, a person's leaving, and a turn whose clock ran out. `lowest` and `highest`
    are what a seat can get. `prices` are US dollars a match by player, the mean over all that are over; people have
    none, and neither have models whose prices are unknown.
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
    """What the config of matches says of them: what is drawn as one, what was played, and which seat begins."""

    kind: Kind
    context: str
    piece: str
    begins: int


class _BrokenOff(NamedTuple):
    """A match that was broken off: its game and config, what that says of it, and who played it, by seat."""

    game: str
    config: str
    setting: _Setting
    players: tuple[str, str]


def tournament_matches(session: Session, choice: TournamentChoice, most: int | None = None) -> list[TournamentMatches]:
    """The matches that are over, by game and weight: of at most so many of them, drawn at random, if there is a `most`.

    Raises NotFound for a cross-play or campaign that is not there.
    """
    check_known(session, MatchFilter(campaign=choice.campaign))
    if choice.matrix is not None:
        matrix.rounds_of(session, choice.matrix)
    models = {row.id: row for row in session.scalars(select(LanguageModel))}
    names = {number: row.name for number, row in models.items()}
    chosen = _chosen(session, choice)
    wanted = select(MatchRow.id).where(*chosen)
    if most is not None:
        wanted = drawn(session, chosen, MatchFilter(game=choice.game, source=SELFPLAY), most)
    wanted = _with_untold_seats(wanted)
    settings: dict[tuple[str, str], _Setting] = {}
    ranges: dict[Kind, tuple[float, float]] = {}
    lines: dict[Kind, list[ResultLine]] = {}
    broken: dict[str, _BrokenOff] = {}
    for game, config, model_0, kind_0, model_1, kind_1, more, broken_id, matches, *points in _grouped(session, wanted):
        if kind_0 is None or kind_1 is None:  # what was removed is just coming back, and its seats come after the match
            continue
        players = _players(names, model_0, kind_0, model_1, kind_1)
        setting = settings.get((game, config))
        if setting is None:
            setting = settings[game, config] = _setting(game, json.loads(config))
        if broken_id is not None:
            broken[broken_id] = _BrokenOff(game, config, setting, players)
            continue
        if setting.kind not in ranges:
            ranges[setting.kind] = _utility_range(game, json.loads(config))
        lines.setdefault(setting.kind, []).append(_line(setting, players, more, matches, (points[0], points[1])))
    faults = _faults(session, broken, ranges)
    free = {row.name: 0.0 for row in models.values() if row.kind != "api"}
    chosen = [*chosen, untold()] if most is None else [MatchRow.id.in_(wanted)]
    paid = _prices(session, chosen, {number: row for number, row in models.items() if row.kind == "api"}, settings)
    return [
        TournamentMatches(
            *kind, results_of(lines.get(kind, ())), faults.get(kind, {}), *ranges[kind], free | paid.get(kind, {})
        )
        for kind in sorted(ranges, key=lambda kind: (kind[0], kind[1] or 0))
    ]


def _chosen(session: Session, choice: TournamentChoice) -> list[ColumnElement[bool]]:
    """Which matches are in the tournament, in a WHERE over MatchRow, if no model was told anything beside the rules."""
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


def untold() -> ColumnElement[bool]:
    """Whether no model was told anything beside the rules, for a WHERE over MatchRow: a model with a persona is another
    player than the same model without one.
    """
    seat = aliased(SeatRow)
    told = select(seat.seat).where(seat.match_id == MatchRow.id, seat.prompt.is_not(None)).correlate(MatchRow)
    return ~exists(told)


def counted_people() -> ColumnElement[bool]:
    """Whether it is a match with people that counts, for a WHERE over MatchRow: of guests, or of people in frozen waves
    who have not withdrawn; no practice, and nothing in it was erased.
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


def _with_untold_seats(wanted: Select[str]) -> Select[str]:
    """These matches with _SEATS beside them, as far as `untold` holds: asked of the seats that are read anyhow."""
    for number, seat in enumerate(_SEATS):
        # An outer join, though each match has both: with another one, SQLite would begin with all seats that there are.
        its = (seat.match_id == MatchRow.id) & (seat.seat == number)
        wanted = wanted.outerjoin(seat, its).where(seat.prompt.is_(None))
    return wanted


def _grouped(session: Session, wanted: Select[str]) -> Iterator[Any]:
    """Such matches with _SEATS, counted: game, config, players, who got more, and where it was broken off the match, of
    which each is then counted by itself; how many matches; sums of points.

    Each match and its seats are read once: among a million, rows that are drawn lie far apart.
    """
    first, second = _SEATS
    utilities = MatchRow.utility_0, MatchRow.utility_1
    more = case((utilities[0] > utilities[1], 0), (utilities[0] < utilities[1], 1), else_=TIE)
    columns = {
        "game": MatchRow.game, "config": cast(MatchRow.config, Text), "model_0": first.language_model_id,
        "kind_0": first.kind, "model_1": second.language_model_id, "kind_1": second.kind, "more": more,
        "broken": case((MatchRow.reason.in_(BROKEN_OFF), MatchRow.id)), "points_0": utilities[0],
        "points_1": utilities[1], "reason": MatchRow.reason,
    }  # fmt: skip
    match = wanted.with_only_columns(*(each.label(name) for name, each in columns.items())).subquery().c
    keys = [match[name] for name in list(columns)[:8]]
    sums = [func.coalesce(func.sum(each), 0) for each in (match.points_0, match.points_1)]
    rows = session.execute(
        select(*keys, func.count(), *sums).where(match.reason.is_not(None)).group_by(*keys),
        execution_options={"yield_per": _AT_ONCE},
    )
    for part in rows.partitions():
        yield from part


def _setting(game: str, config: Mapping[str, Any]) -> _Setting:
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


def _line(
    setting: _Setting, players: tuple[str, str], more: int, matches: int, points: tuple[float, float]
) -> ResultLine:
    """A line with who begins in front."""
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
    """Matches that a player ended by a fault, by player and place. What is known of no other match goes to `ranges`."""
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
    """What a seat of a match with each of these models has cost in US dollars, where that is known."""
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
        setting = settings.get((game, config)) or _setting(game, json.loads(config))
        before, cost = costs.get((setting.kind, number), 0.0), CallSums.of(sums).cost(prices_of_model(models[number]))
        counts[setting.kind, number] += matches
        costs[setting.kind, number] = None if before is None or cost is None else before + cost
    found: dict[Kind, dict[str, float]] = {}
    for (kind, number), cost in costs.items():
        if cost is not None:
            found.setdefault(kind, {})[models[number].name] = cost / counts[kind, number]
    return found


def _seat_at_fault(event: LogEvent) -> int | None:
    """Whose doing it was that a match was broken off; None where it was nobody's who plays."""
    match event:
        case Aborted(seat=seat, fault=fault):
            return seat if fault == _MODELS_FAULT else None
        case Resigned(seat=seat) | TimedOut(seat=seat):
            return seat
    return None


def _players(
    names: Mapping[int, str], model_0: int | None, kind_0: str, model_1: int | None, kind_1: str
) -> tuple[str, str]:
    return _player(names, model_0, kind_0), _player(names, model_1, kind_1)


def _player(names: Mapping[int, str], model: int | None, kind: str) -> str:
    return PEOPLE if kind == PERSON or model is None else names[model]


def leaderboard_of(matches: TournamentMatches, role: str = BOTH) -> Leaderboard:
    """The leaderboard of these matches in a role, or in both. Raises Invalid for a role that the game does not have."""
    bounds = matches.lowest, matches.highest
    return leaderboard(
        matches.game, matches.partner_weight, matches.results, matches.faults, bounds, matches.prices, role
    )
