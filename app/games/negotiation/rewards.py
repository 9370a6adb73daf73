"""The rewards of Deal or No Deal: how far a score lies above the role's average under the objective."""

from app.games.rewards import RewardFormula, RewardTotals, SeatResult, SeatReward

POINTS = 10  # that all items together are worth to a seat


def of_seat(seat: SeatResult, totals: RewardTotals) -> SeatReward:
    """Reward (u − mean of role and λ) / 10, with weight 1."""
    return SeatReward((seat.utility - totals.means[seat.role, seat.partner_weight]) / POINTS, 1.0)


REWARDS = RewardFormula(
    of_seat,
    "A seat’s moves have rewards that sum to a tenth of its score less the mean score of its role and objective.",
)
