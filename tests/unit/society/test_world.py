import math
import random

import pytest

from app.core.errors import Invalid
from app.society.config import SocietyConfig
from app.society.world import critics_of, first_memories, labels, neighbours, question_of


def grid(config: SocietyConfig) -> list[str]:
    """The labels as rows of letters."""
    letters = "".join(label[0] for label in labels(config))
    return [letters[row * config.size :][: config.size] for row in range(config.size)]


def test_all_agents_have_the_label_of_a_setting_with_one() -> None:
    assert grid(SocietyConfig(size=2, critics=3, setting="all_good")) == ["gg", "gg"]
    assert grid(SocietyConfig(size=2, critics=3, setting="all_bad")) == ["bb", "bb"]


def test_half_half_makes_the_upper_triangle_good_until_half_of_all_are() -> None:
    assert grid(SocietyConfig(size=4, critics=3, setting="half_half")) == ["gggg", "bggg", "bbgb", "bbbb"]
    assert grid(SocietyConfig(size=3, critics=3, setting="half_half")) == ["ggg", "bgb", "bbb"]


def test_mixed_half_half_draws_half_of_the_agents_by_the_seed() -> None:
    drawn = [labels(SocietyConfig(size=5, setting="mixed_half_half", seed=seed)) for seed in (1, 1, 2)]
    assert [each.count("good") for each in drawn] == [12, 12, 12]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize("radius", [None, 0.5, 1, 1.5, 3.7, 100])
@pytest.mark.parametrize("size", [2, 3, 7])
def test_neighbours_are_the_others_within_the_radius(size: int, radius: float | None) -> None:
    config = SocietyConfig(size=size, radius=radius, critics=1)
    for agent in range(config.agents):
        expected = [
            other
            for other in range(config.agents)
            if other != agent and math.dist(divmod(agent, size), divmod(other, size)) <= config.reach
        ]
        assert list(neighbours(config, agent)) == expected


def test_critics_are_as_many_as_wanted_different_and_never_the_agent_itself() -> None:
    rng = random.Random(5)
    for _ in range(200):
        size = rng.randint(2, 8)
        config = SocietyConfig(
            size=size,
            critics=rng.randint(1, size**2 - 1),
            radius=rng.choice([None, 0.5, 1, 2.5, 20]),
            global_interaction=rng.random() < 0.7,
            dropout=rng.choice([0, 0.2, 0.5, 0.99]),
            seed=rng.randrange(99),
        )
        agent, iteration = rng.randrange(config.agents), rng.randrange(9)
        critics, near = critics_of(config, iteration, agent), neighbours(config, agent)
        assert agent not in critics
        assert list(critics) == sorted(set(critics))
        assert set(critics) <= set(range(config.agents))
        if config.global_interaction:
            assert len(critics) == config.critics
            assert config.critics == 1 or not near or set(critics) & set(near)
        else:
            assert len(critics) == min(config.critics, len(near))
            assert set(critics) <= set(near)


def test_critics_do_not_depend_on_what_was_drawn_before() -> None:
    config = SocietyConfig(size=6)
    forwards = [critics_of(config, iteration, agent) for iteration in range(3) for agent in range(36)]
    random.seed(1)
    backwards = [critics_of(config, iteration, agent) for iteration in (2, 1, 0) for agent in reversed(range(36))]
    assert forwards == backwards[::-1]
    assert len(set(forwards)) > 100
    other_seed = SocietyConfig(size=6, seed=1)
    assert [critics_of(other_seed, 0, agent) for agent in range(36)] != forwards[:36]


def test_dropout_leaves_out_its_share_of_the_neighbours() -> None:
    # In the middle of a large grid 12 neighbours lie within 2; a share of 0.75 leaves 3, the rest come from far away.
    config = SocietyConfig(size=40, radius=2, critics=8, dropout=0.75, global_interaction=True)
    agent = 40 * 20 + 20
    near = set(neighbours(config, agent))
    assert len(near) == 12
    counts = [len(near & set(critics_of(config, iteration, agent))) for iteration in range(40)]
    assert min(counts) == 3
    assert sum(counts) < 40 * 3 + 10


def test_dropout_of_a_decimal_share_is_not_lost_to_rounding() -> None:
    # Ten neighbours less 80 % are two; in floating-point numbers 1 - 0.8 times ten is a little less.
    config = SocietyConfig(size=40, radius=2, critics=3, dropout=0.8, global_interaction=True)
    agent = next(agent for agent in range(1600) if len(neighbours(config, agent)) == 10)
    near = set(neighbours(config, agent))
    assert all(len(near & set(critics_of(config, iteration, agent))) >= 2 for iteration in range(30))


@pytest.mark.parametrize("preset", SocietyConfig.presets)
def test_published_settings_find_critics_for_everybody_of_the_published_grid(preset: str) -> None:
    # The reference stops at an assertion for its own 10 × 10 grid.
    config = SocietyConfig.model_validate(SocietyConfig.presets[preset])
    assert {len(critics_of(config, 0, agent)) for agent in range(config.agents)} == {config.critics}
    assert not config.global_interaction  # as the released programs are run


def test_questions_are_asked_in_order_and_again_from_the_first() -> None:
    config = SocietyConfig(size=2, critics=1)
    asked = [question_of(config, iteration, agent, 6) for iteration in range(3) for agent in range(4)]
    assert asked == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]
    assert question_of(config, 7, 3, 1) == 0


def test_no_question_is_refused_in_one_line() -> None:
    with pytest.raises(Invalid, match=r"^questions: expected at least one question, got 0$"):
        question_of(SocietyConfig(), 0, 0, 0)


def test_first_memories_are_different_ones_by_agent_and_seed() -> None:
    config = SocietyConfig(first_memories=5)
    drawn = [first_memories(config, agent, 20) for agent in (0, 0, 1)]
    assert all(len(set(each)) == 5 and set(each) <= set(range(20)) for each in drawn)
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] != first_memories(SocietyConfig(first_memories=5, seed=1), 0, 20)
    assert first_memories(SocietyConfig(first_memories=0), 0, 0) == ()


def test_too_few_memories_of_a_label_are_refused_in_one_line() -> None:
    with pytest.raises(Invalid, match=r"^first_memories: expected at most 3, the memories .* got 50; choose fewer"):
        first_memories(SocietyConfig(), 0, 3)
