"""Who plays what in which order."""

import itertools
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.studies.arms import arm_count, arms, conditions, latin_square, matches_a_person, shuffled
from app.studies.design_files import load_design
from tests.unit.studies.test_design_files import EXAMPLE


def design(plan, **factors):
    """The example with other conditions and another plan."""
    base = load_design(EXAMPLE).design
    levels = {name: {each: each for each in found} for name, found in factors.items()}
    return base.model_copy(
        update={"conditions": levels, "plan": base.plan.model_copy(update={"blocks": None, "within": (), **plan})}
    )


@given(st.integers(1, 12))
def test_each_thing_stands_once_at_each_place(count):
    square = latin_square(count)
    assert all(sorted(row) == list(range(count)) for row in square)
    assert all(sorted(column) == list(range(count)) for column in zip(*square, strict=True))


@given(st.sampled_from([2, 4, 6, 8, 10, 12]))
def test_with_an_even_number_each_thing_follows_each_other_one_once(count):
    followed = Counter(pair for row in latin_square(count) for pair in itertools.pairwise(row))
    assert set(followed.values()) == {1}
    assert len(followed) == count * (count - 1)


def test_within_persons_everybody_plays_everything_and_orders_are_balanced():
    study = load_design(EXAMPLE).design
    found = arms(study)
    assert [arm.name for arm in found] == [
        "self then coop, order 1", "self then coop, order 2", "coop then self, order 1", "coop then self, order 2",
    ]  # fmt: skip
    everything = Counter(tuple(each.items()) for each in conditions(study))
    for arm in found:
        assert Counter(tuple(each.items()) for each in arm.conditions) == everything
        assert all(len({each["objective"] for each in block}) == 1 for block in arm.blocks)
    for place in range(4):
        assert Counter(arm.conditions[place]["model"] for arm in found) == {"a": 2, "b": 2}
        assert Counter(arm.conditions[place]["objective"] for arm in found) == {"self": 2, "coop": 2}


@pytest.mark.parametrize("levels", [2, 3, 4, 6])
@pytest.mark.parametrize("blocks", [2, 3, 4])
def test_blocks_of_a_person_begin_differently_and_arms_stay_balanced(levels, blocks):
    base = load_design(EXAMPLE).design
    study = design(
        {"within": ("model", "objective"), "blocks": base.plan.blocks},
        model=[f"m{at}" for at in range(levels)],
        objective=[f"o{at}" for at in range(blocks)],
    )
    found = arms(study)
    for arm in found:
        assert len({block[0]["model"] for block in arm.blocks}) == min(levels, blocks)
    for place in range(levels * blocks):
        played = Counter(tuple(arm.conditions[place].items()) for arm in found)
        assert len(played) == levels * blocks
        assert len(set(played.values())) == 1


def test_with_more_factors_blocks_begin_with_other_levels_of_the_first():
    base = load_design(EXAMPLE).design
    study = design(
        {"within": ("model", "role", "objective"), "blocks": base.plan.blocks},
        model=["m", "n"],
        role=["x", "y"],
        objective=["self", "coop"],
    )
    assert all({block[0]["model"] for block in arm.blocks} == {"m", "n"} for arm in arms(study))


def test_between_persons_an_arm_has_one_level():
    study = design({"between": ("model",), "matches": 3}, model=["x", "y", "z"])
    assert [(arm.name, [each["model"] for each in arm.conditions]) for arm in arms(study)] == [
        ("x", ["x"] * 3), ("y", ["y"] * 3), ("z", ["z"] * 3),
    ]  # fmt: skip


@pytest.mark.parametrize("inside", ["latin square", "random", "as written"])
@pytest.mark.parametrize("levels", [2, 3, 4])
def test_arms_are_counted_without_making_them(inside, levels):
    study = design(
        {"within": ("model",), "between": ("objective",), "inside_block": inside},
        model=[f"m{at}" for at in range(levels)],
        objective=["self", "coop"],
    )
    assert len(arms(study)) == arm_count(study)
    assert {len(arm.conditions) for arm in arms(study)} == {matches_a_person(study)}


def test_orders_that_are_left_to_chance_follow_from_the_seed():
    study = design({"within": ("model",), "inside_block": "random"}, model=list("abcdefgh"))
    (arm,) = arms(study)
    first, again = (shuffled(arm, study, random.Random(3)) for _ in range(2))
    assert first == again != arm
    assert sorted(each["model"] for each in first.conditions) == list("abcdefgh")
