"""The figures of finished matches, each with its interval. Pure; docs/analysis.md defines every column.

Source: Liao, Tomlin & Klein 2024, arXiv 2406.18872 (negotiation); Cheng et al. 2024, arXiv 2404.10642 (taboo).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.analysis.bootstrap import Figure, Floats, Statistic, figures
from app.analysis.cells import Cells, Sums, gather, ratio
from app.games.match_table import NOBODY, Booleans, MatchTable
from app.games.taboo.outcomes import ATTACKER, ATTACKER_WINS, DEFENDER, DEFENDER_WINS, RULES_BROKEN, TIED
from app.rounds.above_average import above as strictly_above

ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class ModelMetrics:
    """What one of several models did, in one role where roles differ. `matches` are those it sat in so."""

    player: str
    role: str | None
    matches: int
    columns: Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class OutcomeCount:
    """How often matches ended for one reason."""

    reason: str
    matches: int
    share: Figure


@dataclass(frozen=True, slots=True)
class Metrics:
    """All figures of some matches: columns by name, outcomes, the commonest first, and parts by model."""

    columns: Mapping[str, Figure]
    outcomes: Sequence[OutcomeCount]
    parts: Sequence[ModelMetrics]


def negotiation(matches: MatchTable, lam: float) -> Metrics:
    """The figures of negotiations that were all played with this λ; by model where there are several."""
    models = range(len(matches.players)) if len(matches.players) > 1 else ()
    parts = [_ModelInSeats(code, None, (True, True)) for code in models]
    measures = ("ply", "words", "tokens", "violations", "first_proposal", "unspoken")
    return _measured(matches, measures, parts, lambda sums: _negotiation(sums, matches.reasons, lam), _scores_of)


def taboo(matches: MatchTable, roles: tuple[str, str]) -> Metrics:
    """The figures of games of taboo, by model and role."""
    parts = [
        _ModelInSeats(code, role, (seat == 0, seat == 1))
        for code in range(len(matches.players))
        for seat, role in enumerate(roles)
        if (matches.player[:, seat] == code).any()
    ]
    measures = ("ply", "turns", "words", "tokens", "violations")
    return _measured(matches, measures, parts, lambda sums: _taboo(sums, matches.reasons), _wins_of)


# ---- All together ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ModelInSeats:
    """A part that is wanted: a model, by its place among the players, in these seats."""

    player: int
    role: str | None
    seats: tuple[bool, bool]

    def held(self, cells: Cells | MatchTable) -> Booleans:
        """Which seats are its: (k, 2)."""
        seats: Booleans = (cells.player == self.player) & np.array(self.seats)
        return seats


def _measured(
    matches: MatchTable,
    measures: Sequence[str],
    asked: Sequence[_ModelInSeats],
    of_all: Callable[[Sums], dict[str, Statistic]],
    of_part: Callable[[Sums, Booleans], dict[str, Statistic]],
) -> Metrics:
    if not len(matches):
        return Metrics({}, (), ())
    number, columns, read = gather(matches, measures)

    def statistics(drawn: Floats) -> dict[str, Statistic]:
        sums = read(drawn)
        found = {f"columns/{name}": values for name, values in of_all(sums).items()}
        for code in range(len(matches.reasons)):
            found[f"reason/{code}"] = sums.share(sums.cells.reason == code)
        for place, part in enumerate(asked):
            values = of_part(sums, part.held(sums.cells)[None])
            found |= {f"part {place}/{name}": each for name, each in values.items()}
        return found

    taken = figures(statistics, number, columns, matches.units)
    outcomes = [
        OutcomeCount(reason, int((matches.reason == code).sum()), taken[f"reason/{code}"])
        for code, reason in enumerate(matches.reasons)
    ]
    parts = [
        ModelMetrics(
            matches.players[part.player], part.role, int(part.held(matches).any(1).sum()), _of(taken, f"part {place}")
        )
        for place, part in enumerate(asked)
    ]
    return Metrics(_of(taken, "columns"), sorted(outcomes, key=lambda each: (-each.matches, each.reason)), parts)


def _of(taken: Mapping[str, Figure], group: str) -> dict[str, Figure]:
    return {name.removeprefix(f"{group}/"): figure for name, figure in taken.items() if name.startswith(f"{group}/")}


# ---- Negotiation ------------------------------------------------------------------


def _negotiation(sums: Sums, reasons: Sequence[str], lam: float) -> dict[str, Statistic]:
    every = np.ones((1, len(sums.cells.agreed), 2), bool)
    above = strictly_above(sums.cells.utility, sums.cells.agreed, sums.score_mean(every).values, lam)
    number = sums.matches.sum(1)
    kept = (sums.matches[:, :, None] * above).sum((1, 2))
    all_columns = _transcripts(sums, reasons, every)
    return {
        **all_columns,
        "violations_mean": sums.mean("violations"),
        "first_proposal_mean": sums.mean("first_proposal"),
        "unspoken_rate": sums.rate("unspoken"),
        "above_share": Statistic(
            ratio(kept, 2 * number), number, number
        ),  # two transcripts of a match tell as much as one
        **{f"above_{name}": values for name, values in _transcripts(sums, reasons, above).items()},
    }


def _transcripts(sums: Sums, reasons: Sequence[str], seats: Booleans) -> dict[str, Statistic]:
    """The columns of the papers' table, of those seats' transcripts; seats (r or 1, k, 2)."""
    cells = sums.cells
    agreed = cells.agreed[:, None] & seats
    weight = seats.sum(2).astype(np.float64)  # a match counts once for each of its transcripts
    agreed_weight = weight * cells.agreed
    return {
        "score_mean": sums.score_mean(seats),
        "score_median": sums.score_median(seats),
        "messages_mean": sums.mean("ply", weight),
        "tokens_mean": sums.mean("tokens", weight),
        "words_mean": sums.mean("words", weight),
        "abort_rate": sums.share(_had(cells, reasons, ABORTED), weight),
        "agreement_rate": sums.share(cells.agreed, weight),
        "agreed_score_mean": sums.score_mean(agreed),
        "agreed_score_median": sums.score_median(agreed),
        "agreed_messages_mean": sums.mean("ply", agreed_weight),
        "agreed_tokens_mean": sums.mean("tokens", agreed_weight),
        "agreed_words_mean": sums.mean("words", agreed_weight),
        "pareto_rate": sums.share(cells.pareto, weight),
        "agreed_pareto_rate": sums.share(cells.pareto, agreed_weight),
    }


def _scores_of(sums: Sums, seats: Booleans) -> dict[str, Statistic]:
    """What a model got, in whichever seat."""
    agreed = sums.cells.agreed[:, None] & seats
    return {
        "score_mean": sums.score_mean(seats),
        "score_median": sums.score_median(seats),
        "agreed_score_mean": sums.score_mean(agreed),
        "agreed_score_median": sums.score_median(agreed),
        "first_seat_score_mean": sums.score_mean(seats & np.array([True, False])),
        "second_seat_score_mean": sums.score_mean(seats & np.array([False, True])),
    }


# ---- Taboo ------------------------------------------------------------------------


def _taboo(sums: Sums, reasons: Sequence[str]) -> dict[str, Statistic]:
    cells = sums.cells
    won = {seat: cells.winner == seat for seat in (ATTACKER, DEFENDER)}
    seats = np.ones((1, len(cells.winner), 2), bool)
    return {
        "attacker_wins_rate": sums.share(_had(cells, reasons, ATTACKER_WINS)),
        "defender_wins_rate": sums.share(_had(cells, reasons, DEFENDER_WINS)),
        "rules_broken_rate": sums.share(_had(cells, reasons, RULES_BROKEN)),
        "tied_rate": sums.share(_had(cells, reasons, TIED)),
        "abort_rate": sums.share(_had(cells, reasons, ABORTED)),
        "decided_attacker_wins_rate": sums.share(won[ATTACKER], (won[ATTACKER] | won[DEFENDER]).astype(np.float64)),
        "attacker_score_mean": sums.score_mean(seats & np.array([True, False])),
        "defender_score_mean": sums.score_mean(seats & np.array([False, True])),
        "turns_mean": sums.mean("turns"),
        "messages_mean": sums.mean("ply"),
        "tokens_mean": sums.mean("tokens"),
        "words_mean": sums.mean("words"),
        "violations_mean": sums.mean("violations"),
    }


def _wins_of(sums: Sums, seats: Booleans) -> dict[str, Statistic]:
    """What a model did in a role; seats (1, k, 2), of which at most one a match is its."""
    held = seats[0]
    mine = held.any(1).astype(np.float64)
    winner = sums.cells.winner
    won = (held & (winner[:, None] == np.array([0, 1]))).any(1)
    lost = (held & (winner[:, None] == np.array([1, 0]))).any(1)
    return {
        "score_mean": sums.score_mean(seats),
        "win_rate": sums.share(won, mine),
        "loss_rate": sums.share(lost, mine),
    }


def _had(cells: Cells, reasons: Sequence[str], reason: str) -> Booleans:
    """Which cells' matches ended for that reason."""
    had: Booleans = cells.reason == (reasons.index(reason) if reason in reasons else NOBODY)
    return had
