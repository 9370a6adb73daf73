"""The figures of models in a setting, with intervals, and how each model compares with the base. Pure.

The resampled units are those drawn independently: for matches between models the seed, so that all matches of a seed,
whichever model played them and from whichever seat, are drawn together; the person, with all of their matches; for two
people the pair. Differences, ratios and their tests use the same resamples, so models are paired wherever they share a
unit.

Shares of two models that played the same material, one match per seed, are tested by McNemar's exact test. Source:
McNemar 1947, Psychometrika 12; the exact form is the binomial test of the pairs in which the two differ.

A share that is the same in every resample, such as one of 100 %, says nothing about its uncertainty. Its difference
from another share has Newcombe's interval by units; the ratio has no interval, and there is no test by resampling.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from app.analysis.bootstrap import (
    LEAST,
    NEAR_ZERO,
    RESAMPLES,
    SAME_IN_ALL,
    Booleans,
    Figure,
    Floats,
    Integers,
    Statistic,
    newcombe,
    resample,
    wilson,
)
from app.analysis.cells import Sums, gather, ratio
from app.analysis.side_by_side.settings import CROSS_PLAY, FEW, OF_MODELS, SELF_PLAY, Seats, SettingMatches, seats_of
from app.games.match_table import MatchTable
from app.games.metrics import PART, GameMetrics, Metric

MCNEMAR, RESAMPLING = "McNemar", "resampling"
_PARTS = ("value", "base", "difference", "ratio")  # of a comparison


class AgainstBase(NamedTuple):
    """One figure of a model beside the base's: both, their difference and ratio, and a test of no difference.

    `pairs` is the number of units that both have; a test by resampling needs none. In cross-play, all cover only
    partners that both have met. A ratio is None where the base's figure is not above 0.
    """

    value: float | None
    base: float | None
    difference: Figure
    ratio: Figure
    test: str | None
    pairs: int
    p: float | None


@dataclass(frozen=True, slots=True)
class PlayerFigures:
    """A player in one setting, in one role where roles differ. `units` counts what was drawn independently."""

    player: str
    role: str | None
    setting: str
    matches: int
    units: int
    columns: Mapping[str, Figure]
    against_base: Mapping[str, AgainstBase]
    results: Mapping[str, int]  # its matches by result, counted once for each seat that it had


def figures_in(
    played: SettingMatches,
    players: Sequence[str],
    base: str,
    defined: GameMetrics,
    roles: tuple[str, str],
    partner_weight: float | None,
) -> list[PlayerFigures]:
    """Each player with matches in the setting, in each role; the base is not compared with anyone."""
    table, metrics = played.table, defined.side_by_side
    wanted = [each for each in seats_of(players, roles) if _held(each, table).any()]
    of_base = {each.role: each for each in wanted if each.player == base and played.setting in OF_MODELS}
    compared = {
        place: (each, of_base[each.role])
        for place, each in enumerate(wanted)
        if each.player != base and each.role in of_base and _met(played, each, of_base[each.role]) is not None
    }
    clustered = [_is_clustered(table, each) for each in wanted]
    number, columns, read = gather(table, metrics, partner_weight or 0)

    def statistics(drawn: Floats) -> dict[str, Statistic]:
        sums, found = read(drawn), {}
        cells = sums.cells.matches
        for place, each in enumerate(wanted):
            held = _held(each, cells)[None]
            for metric in metrics:
                found[f"{place}/{metric.name}"] = _of_units(sums, metric, held, clustered=clustered[place])
        for place, both in compared.items():
            partners = _met(played, *both)
            mine, other = (_held(each, cells, partners)[None] for each in both)
            for metric in metrics:
                one, two = (_of_units(sums, metric, held, clustered=True) for held in (mine, other))
                matches = np.minimum(one.matches, two.matches)
                found[f"{place}/{metric.name}/value"] = one
                found[f"{place}/{metric.name}/base"] = two
                found[f"{place}/{metric.name}/difference"] = Statistic(one.values - two.values, matches)
                found[f"{place}/{metric.name}/ratio"] = Statistic(ratio(one.values, two.values), matches)
        return found

    seated = table.player[:, 0] * len(table.players) + table.player[:, 1]
    taken = resample(statistics, number, columns, table.units, seated)
    found = []
    for place, each in enumerate(wanted):
        units = _units(table, each)
        own = {
            metric.name: _with_checked_interval(taken.figures[f"{place}/{metric.name}"], metric, played, units)
            for metric in metrics
        }
        versus = {}
        if place in compared:
            pair = compared[place]
            of_both = units, _units(table, pair[1])
            for metric in metrics:
                name = f"{place}/{metric.name}"
                parts = [taken.figures[f"{name}/{part}"] for part in _PARTS]
                draws = {part: taken.draws[f"{name}/{part}"] for part in _PARTS}
                versus[metric.name] = _comparison_with_base(played, metric, pair, parts, draws, of_both)
        rows = int(_held(each, table).any(1).sum())
        found.append(
            PlayerFigures(
                each.player, each.role, played.setting, rows, units, own, versus, _count_seats_by_result(table, each)
            )
        )
    return found


def exact_mcnemar(first: int, second: int) -> float:
    """Two-sided p of McNemar's exact test: `first` pairs are true of only the first, `second` of the second.

    It equals that of the binomial test with 1/2.
    """
    number, fewer = first + second, min(first, second)
    places = np.arange(1, fewer + 1)
    logs = np.concatenate(([0.0], np.cumsum(np.log(number - places + 1) - np.log(places)))) - number * np.log(2)
    return float(min(1.0, 2 * np.exp(logs).sum()))


def resampled_p(differences: Floats) -> float:
    """Two-sided p of no difference: twice the share of resamples on the rarer side of 0, counting 0 on both.

    It is below 0.05 where the 95 % interval excludes 0. Source: Davison & Hinkley 1997, Bootstrap Methods and their
    Application, section 4.4, for the 1 that is added to both counts.
    """
    rarer = min((differences <= 0).sum(), (differences >= 0).sum())
    return float(min(1.0, 2 * (rarer + 1) / (len(differences) + 1)))


# ---- Which seats, partners and units ---------------------------------------------


def _held(each: Seats, table: MatchTable, partners: Integers | None = None) -> Booleans:
    """The player's seats in that role, against those partners if given: (k, 2)."""
    place = table.players.index(each.player) if each.player in table.players else -1
    held: Booleans = (table.player == place) & np.array(each.seats)
    return held if partners is None else held & np.isin(table.player[:, ::-1], partners)


def _met(played: SettingMatches, each: Seats, base: Seats) -> Integers | None:
    """The partners that both have met in these roles; None without any. In self-play each is its own partner."""
    table = played.table
    mine, other = (np.unique(table.player[:, ::-1][_held(who, table)]) for who in (each, base))
    partners = np.union1d(mine, other) if played.setting == SELF_PLAY else np.intersect1d(mine, other)
    return partners if len(partners) else None


def _units(table: MatchTable, each: Seats) -> int:
    units = table.units
    return 0 if units is None else len(np.unique(units[_held(each, table).any(1)]))


def _is_clustered(table: MatchTable, each: Seats) -> bool:
    """Whether some of the player's matches were drawn together."""
    return _units(table, each) < int(_held(each, table).any(1).sum())


def _of_units(sums: Sums, metric: Metric, held: Booleans, *, clustered: bool) -> Statistic:
    """A metric, without Wilson's interval if `clustered`: it would be too narrow for matches drawn together."""
    found = sums.of(metric, held)
    return found._replace(effective=None) if clustered else found


def _with_checked_interval(figure: Figure, metric: Metric, played: SettingMatches, units: int) -> Figure:
    """Drop the interval of too few units; give a share of 0 or 1, which never varies, Wilson's for its units."""
    if figure.value is None:
        return figure
    if metric.aggregate == PART and figure.value in (0, 1):
        return Figure(figure.value, *wilson(figure.value, min(units, figure.n)), figure.n)
    if units < LEAST and (figure.low is None or metric.aggregate != PART or units < figure.n):
        return Figure(figure.value, n=figure.n, no_interval=FEW[played.unit])
    return figure


# ---- Against the base --------------------------------------------------------------


def _comparison_with_base(
    played: SettingMatches,
    metric: Metric,
    both: tuple[Seats, Seats],
    parts: Sequence[Figure],
    draws: Mapping[str, Floats],
    units: tuple[int, int],
) -> AgainstBase:
    value, base, difference, times = parts
    if difference.value is None:
        return AgainstBase(value.value, base.value, Figure(None), Figure(None), None, 0, None)
    lacking = FEW[played.unit] if min(units) < LEAST else None
    same = metric.aggregate == PART and any(_never_varies(draws[part]) for part in ("value", "base"))
    if lacking is not None:
        difference = Figure(difference.value, n=difference.n, no_interval=lacking)
        times = Figure(times.value, n=times.n, no_interval=None if times.value is None else lacking)
    elif same and value.value is not None and base.value is not None:
        numbers = [min(number, of.n) for number, of in zip(units, (value, base), strict=True)]
        ends = newcombe(value.value, numbers[0], base.value, numbers[1])
        difference = Figure(difference.value, *ends, difference.n)
        times = Figure(times.value, n=times.n, no_interval=None if times.value is None else SAME_IN_ALL)
    elif times.value is not None and np.isnan(draws["ratio"]).any():
        times = Figure(times.value, n=times.n, no_interval=NEAR_ZERO)
    shared = _shared_units(played, both)
    if metric.aggregate == PART and played.setting in (SELF_PLAY, CROSS_PLAY):
        pairs = _paired_truths(played, metric, both)
        if pairs is not None and len(pairs):
            one, two = (int(count) for count in ((pairs[:, 0] > pairs[:, 1]).sum(), (pairs[:, 0] < pairs[:, 1]).sum()))
            return AgainstBase(value.value, base.value, difference, times, MCNEMAR, len(pairs), exact_mcnemar(one, two))
    drawn = draws["difference"]
    known = drawn[~np.isnan(drawn)]
    if same or difference.low is None or len(known) < RESAMPLES // 2:
        return AgainstBase(value.value, base.value, difference, times, None, shared, None)
    return AgainstBase(value.value, base.value, difference, times, RESAMPLING, shared, resampled_p(known))


def _never_varies(drawn: Floats) -> bool:
    known = drawn[~np.isnan(drawn)]
    return bool(len(known)) and bool(np.ptp(known) < 1e-12)


def _shared_units(played: SettingMatches, both: tuple[Seats, Seats]) -> int:
    table, partners = played.table, _met(played, *both)
    units = table.units if table.units is not None else np.arange(len(table))
    mine, other = (np.unique(units[_held(each, table, partners).any(1)]) for each in both)
    return len(np.intersect1d(mine, other))


def _paired_truths(played: SettingMatches, metric: Metric, both: tuple[Seats, Seats]) -> Floats | None:
    """(pairs, 2) The values of the model and the base in the same material, seat and partner.

    None where two pairs were drawn together, or a model has such a match twice, because the test takes pairs to be
    independent.
    """
    if metric.value is None:
        return None
    table, values = played.table, np.asarray(metric.value(played.table), np.float64)
    among = np.ones(len(table), bool) if metric.among is None else metric.among(table)
    partners = _met(played, *both)
    found: list[dict[tuple[int, int, int], float]] = []
    for each in both:
        held = _held(each, table, partners) & among[:, None]
        if played.setting == SELF_PLAY and not metric.by_seat:
            held = held & np.array([held[:, 0].any(), not held[:, 0].any()])  # a match counts once
        own: dict[tuple[int, int, int], float] = {}
        for row, seat in np.argwhere(held):
            value = values[row, seat] if metric.by_seat else values[row]
            partner = -1 if played.setting == SELF_PLAY else int(table.player[row, 1 - seat])
            key = int(played.material[row]), int(seat), partner
            if np.isnan(value):
                continue
            if key in own:
                return None
            own[key] = float(value)
        found.append(own)
    shared = sorted(found[0].keys() & found[1].keys())
    if len({material for material, *_ in shared}) < len(shared):
        return None
    return np.array([(found[0][key], found[1][key]) for key in shared]).reshape(-1, 2)


# ---- How matches ended -------------------------------------------------------------

WON, LOST = "won", "lost"


def _count_seats_by_result(table: MatchTable, each: Seats) -> dict[str, int]:
    """How its matches ended for it: won or lost where there are winners, otherwise by reason."""
    held = _held(each, table)
    won, lost = int((held & table.won).sum()), int((held & table.lost).sum())
    open_ended = {
        reason: int((held & (~table.decided & table.ended(reason))[:, None]).sum()) for reason in table.reasons
    }
    found = {WON: won, LOST: lost} if table.decided.any() else {}
    return found | {reason: number for reason, number in sorted(open_ended.items()) if number}
