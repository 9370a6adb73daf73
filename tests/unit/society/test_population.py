"""Which model each agent has: as many as the shares say, whatever they are."""

import random
from collections import Counter

from app.society.config import SocietyConfig
from app.society.population import models_of_agents


def test_every_model_has_its_share_of_the_agents_to_within_one() -> None:
    rng = random.Random(1)
    for _ in range(200):
        shares = [rng.uniform(0.01, 9) for _ in range(rng.randint(1, 6))]
        config = SocietyConfig(size=rng.randint(3, 12), seed=rng.randrange(100))
        found = models_of_agents(config, shares)
        counts = Counter(found)
        assert len(found) == config.agents
        for place, share in enumerate(shares):
            assert abs(counts[place] - config.agents * share / sum(shares)) < 1


def test_the_seed_decides_who_has_which_model() -> None:
    one, same, other = (models_of_agents(SocietyConfig(size=6, seed=seed), [1, 1]) for seed in (1, 1, 2))
    assert one == same != other
    assert one != tuple(sorted(one))
