"""Which seats of finished matches were better than others: above average in figures and datasets. Pure."""

import numpy as np
from numpy.typing import NDArray

STRICT_COMPETITION = -1  # each point for the partner costs one of one's own
_NOISE = 1e-9  # utilities are points and a weight times points: closer values count as equal

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


def above_average(utilities: Floats, agreed: Booleans, partner_weight: float) -> Booleans:
    """The seats whose transcripts `above_avg` keeps: strictly above the mean over both seats of all matches.

    With a partner's weight of −1, for which the mean is always 0, both seats of a deal of 0 to 0 are also kept.
    `utilities` (n, 2) by seat, `agreed` (n,); returns (n, 2). Source: arXiv 2406.18872.
    """
    if not len(utilities):
        return np.zeros((0, 2), bool)
    kept: Booleans = above(utilities, agreed, np.array([utilities.mean()]), partner_weight)[0]
    return kept


def above(utilities: Floats, agreed: Booleans, bounds: Floats, partner_weight: float) -> Booleans:
    """The seats strictly above each of r bounds, by the rules of `above_average`: (r, n, 2)."""
    found: Booleans = utilities > bounds[:, None, None] + _NOISE
    if partner_weight == STRICT_COMPETITION:
        found |= (agreed & (utilities == 0).all(1))[:, None]
    return found
