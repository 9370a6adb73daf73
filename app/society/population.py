"""Which model each agent of a society has. Pure."""

import math
import random
from collections.abc import Sequence

from app.society.config import SocietyConfig


def models_of_agents(config: SocietyConfig, shares: Sequence[float]) -> tuple[int, ...]:
    """The index in `shares` of each agent's model, by agent.

    The models have as many agents as their shares say, to within one, and are scattered over the grid by the seed. The
    shares need not sum to 1.
    """
    exact = [config.agents * share / sum(shares) for share in shares]
    counts = [math.floor(each) for each in exact]
    by_remainder = sorted(range(len(exact)), key=lambda place: (counts[place] - exact[place], place))
    for place in by_remainder[: config.agents - sum(counts)]:
        counts[place] += 1
    models = [place for place, count in enumerate(counts) for _ in range(count)]
    if len(shares) > 1:
        random.Random(f"models {config.seed}").shuffle(models)
    return tuple(models)
