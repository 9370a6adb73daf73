"""A cross-play as a matrix: the score of each model against each other model, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure, Floats, Integers, mean_figure
from app.analysis.reading import matches_of
from app.core.errors import NotFound
from app.games import find_game
from app.games.match_table import MatchTable
from app.models import RoundRow
from app.rounds import lifecycle


@dataclass(frozen=True, slots=True)
class Cell:
    """The mean score of `row` against `column`; `row` has that role where roles differ."""

    row: str
    column: str
    role: str | None
    matches: int
    score: Figure


@dataclass(frozen=True, slots=True)
class CrossPlay:
    """All pairs of some models, as far as they have played; a pair that has not met yet has no cell."""

    matrix_id: int
    game: str
    rounds: Sequence[int]
    planned: int
    matches: int
    players: Sequence[str]
    roles: Sequence[str | None]
    cells: Sequence[Cell]

    @property
    def complete(self) -> bool:
        """Whether the figures include all of its matches."""
        return self.matches == self.planned

    def to_json(self) -> dict[str, Any]:
        """The matrix under the names of docs/analysis.md."""
        return {
            "matrix_id": self.matrix_id,
            "game": self.game,
            "rounds": list(self.rounds),
            "complete": self.complete,
            "planned": self.planned,
            "matches": self.matches,
            "models": list(self.players),
            "cells": [
                {
                    "row": cell.row,
                    "column": cell.column,
                    "role": cell.role,
                    "matches": cell.matches,
                    "score": cell.score._asdict(),
                }
                for cell in self.cells
            ],
        }


def cross_play(session: Session, matrix_id: int) -> CrossPlay:
    """The matrix of a cross-play, numbered by its first round. Raises NotFound."""
    rows = session.scalars(select(RoundRow).where(RoundRow.matrix_id == matrix_id).order_by(RoundRow.id)).all()
    if not rows:
        raise NotFound("cross-play", expected="the number of one that exists", got=matrix_id)
    matches = matches_of(session, [row.id for row in rows])
    first, second = find_game(rows[0].game).roles
    roles: Sequence[str | None] = (None,) if first == second else (first, second)
    seated = [model.name for row in rows for model in lifecycle.seated(session, row)]
    players = tuple(dict.fromkeys(seated))
    return CrossPlay(
        matrix_id=matrix_id,
        game=rows[0].game,
        rounds=[row.id for row in rows],
        planned=sum(row.matches for row in rows),
        matches=len(matches),
        players=players,
        roles=roles,
        cells=cells(matches, players, roles),
    )


def cells(matches: MatchTable, players: Sequence[str], roles: Sequence[str | None]) -> list[Cell]:
    """The cells of all pairs that met. One role, None, stands for either seat; two are those of seats 0 and 1."""
    places = [matches.players.index(name) if name in matches.players else -1 for name in players]
    found = []
    for seat, role in enumerate(roles):
        seats = (0, 1) if role is None else (seat,)
        for row, row_place in zip(players, places, strict=True):
            for column, column_place in zip(players, places, strict=True):
                scores, units = _pair_scores(matches, row_place, column_place, seats)
                if len(scores):
                    found.append(Cell(row, column, role, len(scores), mean_figure(scores, units)))
    return found


def _pair_scores(matches: MatchTable, row: int, column: int, seats: Sequence[int]) -> tuple[Floats, Integers | None]:
    """The score of `row` in each match against `column` (its seats' mean if itself), and the units to resample."""
    sat = [(matches.player[:, seat] == row) & (matches.player[:, 1 - seat] == column) for seat in seats]
    held = np.stack(sat, axis=1)
    met = held.any(1)
    scores: Floats = (matches.utility[:, list(seats)] * held)[met].sum(1) / held[met].sum(1)
    return scores, None if matches.units is None else matches.units[met]
