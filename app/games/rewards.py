"""Rewards: what the moves of a seat are worth to a model that learns from them. Pure.

Each game says in its package what a whole match is worth to a seat (`RewardFormula`); how that is shared among the
seat's moves is the same for all games.

Source: the rewards of Self-Play of Adversarial Language Game, Cheng et al. 2024, arXiv 2404.10642.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

DECAY = 0.8  # γ, of the paper
NO_REWARDS, SPAG = "none", "spag"  # which rewards the moves of a dataset have


class SeatResult(NamedTuple):
    """The result of a finished match for one seat; `partner_weight` is what the partner's points count in `utility`."""

    role: str
    utility: float
    won: bool
    partner_weight: float = 0.0


class RewardTotals(NamedTuple):
    """What is known of all matches of a game together.

    `winners` counts the seats that won, by role; `means` are mean utilities by role and `partner_weight`.
    """

    winners: Mapping[str, int]
    means: Mapping[tuple[str, float], float]


class SeatReward(NamedTuple):
    """The sum of the rewards of a seat's moves, and the weight of each of them; with weight 0 none is learnt."""

    reward: float
    weight: float


class RewardFormula(NamedTuple):
    """What a match is worth to a seat. `summary` says it in one sentence, for pages and help texts."""

    of_seat: Callable[[SeatResult, RewardTotals], SeatReward]
    summary: str


NOTHING = SeatReward(0.0, 0.0)


def shares(moves: int, decay: float) -> list[float]:
    """How a reward is shared among a seat's moves, which come in order: γ^(T−t) / Σ_k γ^(T−k), t = 1…T.

    The shares sum to 1, and the last move has the largest.
    """
    powers = [decay ** (moves - number) for number in range(1, moves + 1)]
    return [each / sum(powers) for each in powers]
