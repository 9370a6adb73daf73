"""Rewards: what a seat's moves are worth to a model that learns from them. Pure.

Each game defines in its package what a whole match is worth to a seat (`RewardFormula`); dividing that among the seat's
moves is the same for all games.

Source: the rewards of Self-Play of Adversarial Language Game, Cheng et al. 2024, arXiv 2404.10642.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

DECAY = 0.8  # γ in the paper
NO_REWARDS, SPAG = "none", "spag"  # which rewards the moves of a dataset have


class SeatResult(NamedTuple):
    """A finished match's result for one seat; `partner_weight` is the weight of the partner's points in `utility`."""

    role: str
    utility: float
    won: bool
    partner_weight: float = 0.0


class RewardTotals(NamedTuple):
    """Totals over all matches of a game.

    `winners` counts the seats that won, by role; `means` are mean utilities by role and `partner_weight`.
    """

    winners: Mapping[str, int]
    means: Mapping[tuple[str, float], float]


class SeatReward(NamedTuple):
    """The sum of a seat's move rewards, and the weight of each move; with weight 0, none is learnt."""

    reward: float
    weight: float


class RewardFormula(NamedTuple):
    """What a match is worth to a seat. `summary` describes it in one sentence, for pages and help texts."""

    of_seat: Callable[[SeatResult, RewardTotals], SeatReward]
    summary: str


NOTHING = SeatReward(0.0, 0.0)


def shares(moves: int, decay: float) -> list[float]:
    """The shares of a reward among a seat's moves, in order: γ^(T−t) / Σ_k γ^(T−k), t = 1…T.

    They sum to 1, and the last move has the largest.
    """
    powers = [decay ** (moves - number) for number in range(1, moves + 1)]
    return [each / sum(powers) for each in powers]
