"""The layout of a society: positions, critics, questions and first memories. Pure.

Everything follows from the config and the numbers of the iteration and the agent: each draw has its own generator,
seeded with them, so the result is the same in any order and after any interruption.

Source: Liu et al. 2023, arXiv 2305.16960. Departure: critics drawn from anywhere leave room for at least one local
critic if there is one, and the draw never fails because there are too many.
"""

import random

from app.core.errors import Invalid, Phrase
from app.society.config import BAD, GOOD, Label, SocietyConfig

_ROUNDING = 1e-9  # (1 - 0.8) * 10 is 1.9999999999999996


def labels(config: SocietyConfig) -> tuple[Label, ...]:
    """The label of each agent: whether it remembers good or bad answers at the start.

    In the settings with two halves, floor(agents / 2) are good: in `half_half` the first ones on or above the diagonal
    of the grid, in `mixed_half_half` randomly drawn ones.
    """
    good = config.agents // 2
    match config.setting:
        case "all_good":
            return (GOOD,) * config.agents
        case "all_bad":
            return (BAD,) * config.agents
        case "half_half":
            above = [agent for agent in range(config.agents) if agent // config.size <= agent % config.size]
            chosen = set(above[:good])
        case "mixed_half_half":
            chosen = set(random.Random(f"labels {config.seed}").sample(range(config.agents), good))
    return tuple(GOOD if agent in chosen else BAD for agent in range(config.agents))


def neighbours(config: SocietyConfig, agent: int) -> tuple[int, ...]:
    """The other agents within the radius, in ascending order. The grid does not wrap around at its edges."""
    row, column = divmod(agent, config.size)
    reach = int(min(config.reach, config.size))
    rows = range(max(0, row - reach), min(config.size, row + reach + 1))
    columns = range(max(0, column - reach), min(config.size, column + reach + 1))
    square = config.reach**2
    return tuple(
        other
        for r in rows
        for c in columns
        if (r - row) ** 2 + (c - column) ** 2 <= square and (other := r * config.size + c) != agent
    )


def critics_of(config: SocietyConfig, iteration: int, agent: int) -> tuple[int, ...]:
    """The agents that rate an agent's draft in an iteration: distinct, in ascending order, never the agent itself.

    Without global interaction they are neighbours, at most `config.critics` of them, and none if the agent has no
    neighbours. With it, some neighbours are left out, and agents from anywhere make up the number.
    """
    rng = random.Random(f"critics {config.seed} {iteration} {agent}")
    near = neighbours(config, agent)
    if not config.global_interaction:
        return tuple(sorted(rng.sample(near, min(config.critics, len(near)))))
    staying = max(1, int((1 - config.dropout) * len(near) + _ROUNDING))
    local = rng.sample(near, min(staying, config.critics - 1, len(near)))
    taken = {agent, *local}
    anywhere = [other for other in range(config.agents) if other not in taken]
    return tuple(sorted([*local, *rng.sample(anywhere, config.critics - len(local))]))


def question_of(config: SocietyConfig, iteration: int, agent: int, questions: int) -> int:
    """The index, in a list of `questions` questions, of the one an agent is asked in an iteration.

    The list is used in order, then again from its beginning. Raises Invalid for an empty list.
    """
    if questions < 1:
        raise Invalid("questions", expected=Phrase("at least one question"), got=questions)
    return (iteration * config.agents + agent) % questions


def first_memories(config: SocietyConfig, agent: int, label_count: int) -> tuple[int, ...]:
    """The indices of an agent's first memories among the `label_count` ones of its label, without repeats.

    Raises Invalid if there are fewer than each agent should have.
    """
    if label_count < config.first_memories:
        raise Invalid(
            "first_memories",
            expected=Phrase("at most %(count)s, the memories available for a label", count=label_count),
            got=config.first_memories,
            remedy=Phrase("choose fewer first memories or a file with more"),
        )
    rng = random.Random(f"memories {config.seed} {agent}")
    return tuple(rng.sample(range(label_count), config.first_memories))
