"""The rewards of a dataset's moves, by the formulas of their games."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from app.datasets.spec import DatasetSpec
from app.games import formula_of
from app.games.rewards import RewardTotals, SeatResult, shares


class MoveRewards(NamedTuple):
    """The reward of each move of a seat, in order, and the weight common to all of them."""

    rewards: list[float]
    weight: float


class RewardCounts:
    """Inputs of reward formulas from all matches of a dataset, counted match by match."""

    def __init__(self) -> None:
        self._winners: dict[str, Counter[str]] = {}
        self._utilities: dict[str, dict[tuple[str, float], Counter[float]]] = {}

    def add(self, game: str, seat: SeatResult, *, gives_rows: bool) -> None:
        """Count a seat's score for the mean of its role, and its win if the seat gives rows."""
        scores = self._utilities.setdefault(game, {}).setdefault((seat.role, seat.partner_weight), Counter())
        scores[seat.utility] += 1
        winners = self._winners.setdefault(game, Counter())
        winners[seat.role] += seat.won and gives_rows

    def totals(self) -> Mapping[str, RewardTotals]:
        """The totals of each game. Sums are exact, so that they do not depend on the order of matches."""
        return {
            game: RewardTotals(
                +self._winners[game],
                {
                    place: math.fsum(score * number for score, number in sorted(scores.items())) / scores.total()
                    for place, scores in sorted(utilities.items())
                },
            )
            for game, utilities in sorted(self._utilities.items())
        }


def move_rewards(
    spec: DatasetSpec, game: str, seat: SeatResult | None, totals: Mapping[str, RewardTotals], moves: int
) -> MoveRewards:
    """The formula's result for a seat with this number of moves; `seat` is None for a match that was aborted.

    Moves that are not trained on have weight 0 and reward 0.
    """
    nothing = MoveRewards([0.0] * moves, 0.0)
    if seat is None:
        return nothing
    reward, weight = formula_of(game).of_seat(seat, totals[game])
    if weight == 0 or (spec.positive_only and reward <= 0):
        return nothing
    return MoveRewards([reward * share for share in shares(moves, spec.decay)], weight if spec.role_weights else 1.0)
