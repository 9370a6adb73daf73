"""The figures of finished matches, each with its interval. Pure; each game defines its own figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.analysis.bootstrap import Figure, Floats, Statistic, figures
from app.analysis.cells import gather
from app.games.match_table import Booleans, MatchTable
from app.games.metrics import GameMetrics


@dataclass(frozen=True, slots=True)
class ModelMetrics:
    """The figures of one of several models, in one role where roles differ. `matches` counts its matches there."""

    player: str
    role: str | None
    matches: int
    columns: Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class OutcomeCount:
    """How many matches ended for one reason."""

    reason: str
    matches: int
    share: Figure


@dataclass(frozen=True, slots=True)
class Metrics:
    """All figures of some matches: columns by name, outcomes, most frequent first, and parts by model."""

    columns: Mapping[str, Figure]
    outcomes: Sequence[OutcomeCount]
    parts: Sequence[ModelMetrics]


def measure(
    matches: MatchTable, defined: GameMetrics, roles: tuple[str, str], partner_weight: float | None = None
) -> Metrics:
    """The figures of matches of one game, all with this weight of the partner's points, if the game has one.

    They are split by model and role where roles differ, else by model where there are several.
    """
    if not len(matches):
        return Metrics({}, (), ())
    parts = _models_in_seats(matches, roles)
    number, columns, read = gather(matches, [*defined.columns.values(), *defined.of_models], partner_weight or 0)

    def statistics(drawn: Floats) -> dict[str, Statistic]:
        sums = read(drawn)
        cells = sums.cells.matches
        every = np.ones((1, len(cells), 2), bool)
        found = {f"columns/{name}": sums.of(each, every) for name, each in defined.columns.items()}
        for code in range(len(matches.reasons)):
            found[f"reason/{code}"] = sums.share(cells.reason == code)
        for place, part in enumerate(parts):
            held = part.held(cells)[None]
            found |= {f"part {place}/{each.name}": sums.of(each, held) for each in defined.of_models}
        return found

    seated = matches.player[:, 0] * len(matches.players) + matches.player[:, 1]
    taken = figures(statistics, number, columns, matches.units, seated)
    outcomes = [
        OutcomeCount(reason, int((matches.reason == code).sum()), taken[f"reason/{code}"])
        for code, reason in enumerate(matches.reasons)
    ]
    of_models = [
        ModelMetrics(
            matches.players[part.player],
            part.role,
            int(part.held(matches).any(1).sum()),
            _figures_of_group(taken, f"part {place}"),
        )
        for place, part in enumerate(parts)
    ]
    return Metrics(
        _figures_of_group(taken, "columns"), sorted(outcomes, key=lambda each: (-each.matches, each.reason)), of_models
    )


@dataclass(frozen=True, slots=True)
class _ModelInSeats:
    """A part to measure: a model, by its place among the players, in these seats."""

    player: int
    role: str | None
    seats: tuple[bool, bool]

    def held(self, matches: MatchTable) -> Booleans:
        """Which seats the model holds: (k, 2)."""
        seats: Booleans = (matches.player == self.player) & np.array(self.seats)
        return seats


def _models_in_seats(matches: MatchTable, roles: tuple[str, str]) -> list[_ModelInSeats]:
    models = range(len(matches.players))
    if roles[0] == roles[1]:
        return [_ModelInSeats(code, None, (True, True)) for code in models if len(models) > 1]
    return [
        _ModelInSeats(code, role, (seat == 0, seat == 1))
        for code in models
        for seat, role in enumerate(roles)
        if (matches.player[:, seat] == code).any()
    ]


def _figures_of_group(taken: Mapping[str, Figure], group: str) -> dict[str, Figure]:
    return {name.removeprefix(f"{group}/"): figure for name, figure in taken.items() if name.startswith(f"{group}/")}
