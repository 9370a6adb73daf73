"""The rewards of Adversarial Taboo: only the winner's moves are learnt, and both roles have the same weight.

Source: Cheng et al. 2024, arXiv 2404.10642.
"""

from app.games.rewards import NOTHING, RewardFormula, RewardTotals, SeatResult, SeatReward


def of_seat(seat: SeatResult, totals: RewardTotals) -> SeatReward:
    """Reward 1 for the winner, with weight N / (2·N_role) for N decided games, of which the role won N_role."""
    if not seat.won:
        return NOTHING
    return SeatReward(1.0, sum(totals.winners.values()) / (2 * totals.winners[seat.role]))


REWARDS = RewardFormula(
    of_seat, "The winner’s moves have rewards that sum to 1; moves of losers, of ties and of broken rules weigh 0."
)
