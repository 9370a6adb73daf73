"""Simulated tournaments, whose players have strengths that are known."""

import itertools
import math
import random
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from app.analysis.results import FIRST, SECOND, TIE, ResultLine, Results, results_of

NAMES = ("ada", "ben", "cleo", "dan", "eve")
TIES = 0.6  # how likely ties are between equals, beside a win of either


def chances(lead: float, ties: float = TIES) -> tuple[float, float, float]:
    """How likely who begins wins, the other wins, and nobody does."""
    first, second = math.exp(lead / 2), math.exp(-lead / 2)
    whole = first + second + ties
    return first / whole, second / whole, ties / whole


def won_and_lost(strengths: Sequence[float], contexts: int, seed: int, spread: float = 0.0) -> Results:
    """Each against each other and itself from both places, on each context; contexts favour who begins more or less."""
    rng = random.Random(seed)
    return results_of(_won_and_lost(strengths, contexts, rng, spread))


def _won_and_lost(strengths: Sequence[float], contexts: int, rng: random.Random, spread: float) -> Iterator[ResultLine]:
    for context in range(contexts):
        favour = 0.3 + spread * rng.gauss(0, 1)
        for one, other in itertools.product(range(len(strengths)), repeat=2):
            likely = chances(strengths[one] - strengths[other] + favour)
            more = rng.choices((FIRST, SECOND, TIE), likely)[0]
            points = {FIRST: (1.0, -1.0), SECOND: (-1.0, 1.0), TIE: (0.0, 0.0)}[more]
            yield ResultLine((NAMES[one], NAMES[other]), context, ((context, 0), (context, 1)), more, 1, points)


def points_won(players: Sequence[float], partners: Sequence[float], contexts: int, seed: int) -> Results:
    """The same with points: player + partner + place + context, and noise that both of a match share in part."""
    rng = random.Random(seed)
    lines = []
    for context in range(contexts):
        worth = rng.gauss(0, 2), rng.gauss(0, 2)
        for one, other in itertools.product(range(len(players)), repeat=2):
            shared = rng.gauss(0, 1)
            first = 5 + players[one] + partners[other] + worth[0] + shared + rng.gauss(0, 1)
            second = 4.5 + players[other] + partners[one] + worth[1] - shared + rng.gauss(0, 1)
            more = FIRST if first > second else SECOND
            sides = (context, 0), (context, 1)
            lines.append(ResultLine((NAMES[one], NAMES[other]), context, sides, more, 1, (first, second)))
    return results_of(lines)


def centred(values: Sequence[float]) -> NDArray[np.float64]:
    """Their distances from their mean."""
    distances: NDArray[np.float64] = np.array(values) - np.mean(values)
    return distances
