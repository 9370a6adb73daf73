"""Finished matches as columns of numbers, from which all figures are computed. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
NOBODY = -1


class FinishedMatch(NamedTuple):
    """A finished match. Utilities and players are by seat; None is a value that was not counted.

    Matches of the same `pair` are one game from either side; None is a match on its own.
    """

    utilities: tuple[float, float]
    players: tuple[str, str]
    reason: str
    ply: int
    words: int | None = None
    tokens: int | None = None
    violations: int = 0
    first_proposal: int | None = None
    winner: int | None = None
    agreed: bool | None = None
    pareto: bool | None = None
    unspoken: bool | None = None
    pair: int | None = None
    measures: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class MatchTable:
    """n finished matches. `reason` and `player` are indices into `reasons` and `players`; NaN is a value not
    counted.
    """

    utility: Floats  # (n, 2) by seat
    player: Integers  # (n, 2) by seat
    reason: Integers  # (n,)
    winner: Integers  # (n,) seat, or NOBODY
    agreed: Booleans  # (n,)
    pareto: Booleans  # (n,)
    ply: Floats  # (n,) accepted moves
    words: Floats  # (n,) of accepted moves
    tokens: Floats  # (n,) of accepted moves
    violations: Floats  # (n,) refused moves
    first_proposal: Floats  # (n,) accepted moves before it
    unspoken: Floats  # (n,) 1 for a deal whose split was never named in the talk, 0 for one whose was
    players: tuple[str, ...]
    reasons: tuple[str, ...]
    pair: Integers | None = None  # (n,) numbered from 0; None where each match stands alone
    # Known only from more than a match's row; None if that was not read.
    joint_share: Floats | None = None  # (n,) what both got, as a share of the most that they could have together
    seat_violations: Floats | None = None  # (n, 2) refused moves by seat
    measures: Mapping[str, Floats] = field(default_factory=dict)  # (n,) what the game measures of a match, by name

    def __len__(self) -> int:
        return len(self.ply)

    def ended(self, reason: str) -> Booleans:
        """(n,) Which matches ended for that reason."""
        ended: Booleans = self.reason == (self.reasons.index(reason) if reason in self.reasons else NOBODY)
        return ended

    def take(self, places: Integers) -> "MatchTable":
        """The matches at these indices, in their order."""
        taken: dict[str, Any] = {
            each.name: values[places]
            for each in fields(self)
            if isinstance(values := getattr(self, each.name), np.ndarray)
        }
        return replace(self, **taken, measures={name: values[places] for name, values in self.measures.items()})

    def measure(self, name: str) -> Floats:
        """(n,) The game's measure of that name, NaN if a match does not have it or was not measured."""
        return self.measures[name] if name in self.measures else np.full(len(self), np.nan)

    def measure_by_seat(self, names: tuple[str, str]) -> Floats:
        """(n, 2) The game's measures of these names, one for each seat."""
        return np.stack([self.measure(name) for name in names], axis=1)

    @property
    def won(self) -> Booleans:
        """(n, 2) Which seat won."""
        won: Booleans = self.winner[:, None] == np.array([0, 1])
        return won

    @property
    def lost(self) -> Booleans:
        """(n, 2) Which seat's partner won."""
        return self.won[:, ::-1]

    @property
    def decided(self) -> Booleans:
        """(n,) Which matches have a winner."""
        decided: Booleans = self.winner != NOBODY
        return decided

    @property
    def turns(self) -> Floats:
        """(n,) Turns of the seat that began."""
        return np.ceil(self.ply / 2)

    @property
    def units(self) -> Integers | None:
        """(n,) The independently drawn units that resampling draws, or None if each match is one."""
        return self.pair


class MatchTableBuilder:
    """Builds a MatchTable from batches of rows."""

    def __init__(self) -> None:
        self._players: dict[str, int] = {}
        self._reasons: dict[str, int] = {}
        self._pairs: dict[int, int] = {}
        self._integers = [np.empty((0, 5), np.int64)]
        self._flags = [np.empty((0, 2), np.bool_)]
        self._floats = [np.empty((0, 8))]
        self._measures: dict[str, list[tuple[int, float]]] = {}  # by name: place of the match, value
        self._number = 0

    def add(self, rows: Sequence[FinishedMatch]) -> None:
        """Add a batch of rows."""
        if not rows:
            return
        integers = [
            (
                *self._seats(row.players),
                self._reason_number(row.reason),
                _value_or_default(row.winner, NOBODY),
                self._pair(row.pair),
            )
            for row in rows
        ]
        self._integers.append(np.array(integers, np.int64))
        self._flags.append(np.array([(bool(row.agreed), bool(row.pareto)) for row in rows], np.bool_))
        floats = [
            (*row.utilities, row.ply, row.words, row.tokens, row.violations, row.first_proposal, row.unspoken)
            for row in rows
        ]
        self._floats.append(np.array(floats, np.float64))  # None becomes NaN
        for place, row in enumerate(rows, self._number):
            for name, value in (row.measures or {}).items():
                self._measures.setdefault(name, []).append((place, value))
        self._number += len(rows)

    def matches(self) -> MatchTable:
        """The table of all rows added."""
        integers, flags = np.concatenate(self._integers), np.concatenate(self._flags)
        floats = np.concatenate(self._floats)
        return MatchTable(
            utility=floats[:, :2],
            player=integers[:, :2],
            reason=integers[:, 2],
            winner=integers[:, 3],
            agreed=flags[:, 0],
            pareto=flags[:, 1],
            ply=floats[:, 2],
            words=floats[:, 3],
            tokens=floats[:, 4],
            violations=floats[:, 5],
            first_proposal=floats[:, 6],
            unspoken=floats[:, 7],
            players=tuple(self._players),
            reasons=tuple(self._reasons),
            pair=integers[:, 4] if self._pairs else None,
            measures={name: self._column_of_measure(found) for name, found in self._measures.items()},
        )

    def _column_of_measure(self, found: Sequence[tuple[int, float]]) -> Floats:
        column = np.full(self._number, np.nan)
        places, values = zip(*found, strict=True)
        column[list(places)] = values
        return column

    def _seats(self, players: tuple[str, str]) -> tuple[int, int]:
        first, second = (self._players.setdefault(name, len(self._players)) for name in players)
        return first, second

    def _pair(self, pair: int | None) -> int:
        return NOBODY if pair is None else self._pairs.setdefault(pair, len(self._pairs))

    def _reason_number(self, name: str) -> int:
        return self._reasons.setdefault(name, len(self._reasons))


def of_rows(rows: Iterable[FinishedMatch]) -> MatchTable:
    """These rows as columns."""
    columns = MatchTableBuilder()
    columns.add(list(rows))
    return columns.matches()


def _value_or_default(value: int | None, instead: int) -> int:
    return instead if value is None else value
