"""The arms of a design, each an order in which a person plays the conditions. Pure.

Between-person factors make groups; within a group, each order of blocks and of conditions inside a block is an arm of
its own, so balancing persons over the arms balances the orders.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import NamedTuple

from app.studies.design import AS_WRITTEN, COUNTERBALANCED, LATIN_SQUARE, RANDOM, Level, StudyDesign

MOST_ARMS = 240
MOST_MATCHES = 200  # for each person
_ALL_ORDERS = 3  # up to so many blocks are played in all orders; more in those of a Latin square

Condition = Mapping[str, str]  # factor → label of its level


class PlannedArm(NamedTuple):
    """A plan: its name, and the condition of each match, block by block."""

    name: str
    blocks: tuple[tuple[Condition, ...], ...]

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of all matches, in order."""
        return tuple(condition for block in self.blocks for condition in block)


def conditions(design: StudyDesign) -> list[Condition]:
    """All conditions: the levels of all factors, crossed."""
    factors = list(design.conditions)
    return [
        dict(zip(factors, labels, strict=True)) for labels in product(*(design.levels(factor) for factor in factors))
    ]


def level_of(design: StudyDesign, condition: Condition, factor: str, otherwise: Level | None = None) -> Level | None:
    """The level of a factor in a condition; `otherwise` if the design does not vary the factor."""
    return design.levels(factor)[condition[factor]] if factor in condition else otherwise


def between(design: StudyDesign) -> list[str]:
    """The factors of which each person plays only one level."""
    return [factor for factor in design.conditions if factor not in design.plan.within]


def matches_a_person(design: StudyDesign) -> int:
    """The number of matches that count that each person plays."""
    count = design.plan.matches
    for factor in design.plan.within:
        count *= len(design.levels(factor))
    return count


def blocks_a_person(design: StudyDesign) -> int:
    """The number of blocks each person plays; a plan without blocks has one."""
    return len(design.levels(design.plan.blocks.by)) if design.plan.blocks else 1


def attention_checks(design: StudyDesign) -> int:
    """The maximum number of attention checks a person is asked."""
    times = {"after each match": matches_a_person(design), "after each block": blocks_a_person(design)}
    return sum(
        times.get(part, 1)
        for part, questions in design.survey.parts.items()
        for question in questions
        if question.attention is not None
    )


def arm_count(design: StudyDesign) -> int:
    """The number of arms of a design, without building them."""
    plan = design.plan
    groups = 1
    for factor in between(design):
        groups *= len(design.levels(factor))
    blocks = blocks_a_person(design)
    inside = matches_a_person(design) // plan.matches // blocks
    return (
        groups
        * _order_count(blocks, plan.blocks.order if plan.blocks else AS_WRITTEN)
        * (inside if plan.inside_block == LATIN_SQUARE else 1)
    )


def arms(design: StudyDesign) -> list[PlannedArm]:
    """The arms in order. Random orders are left as written: `shuffled` draws each person's."""
    return list(_planned_arms(design))


def shuffled(arm: PlannedArm, design: StudyDesign, rng: random.Random) -> PlannedArm:
    """The arm with its random orders drawn."""
    blocks = [list(block) for block in arm.blocks]
    if design.plan.inside_block == RANDOM:
        for block in blocks:
            rng.shuffle(block)
    if design.plan.blocks is not None and design.plan.blocks.order == RANDOM:
        rng.shuffle(blocks)
    return PlannedArm(arm.name, tuple(map(tuple, blocks)))


def latin_square(count: int) -> list[tuple[int, ...]]:
    """Orders in which each of `count` things is once at each place.

    With an even number each also follows each other one once. Source: Williams 1949, the first of his two designs.
    """
    first = [0]
    for step in range(1, count):
        first.append((first[-1] + (step if step % 2 else count - step)) % count)
    return [tuple((place + row) % count for place in first) for row in range(count)]


def _planned_arms(design: StudyDesign) -> Iterator[PlannedArm]:
    plan = design.plan
    within = [factor for factor in design.conditions if factor in plan.within]
    by = plan.blocks.by if plan.blocks else None
    inner = [factor for factor in within if factor != by]
    inside = [dict(zip(inner, labels, strict=True)) for labels in product(*(design.levels(each) for each in inner))]
    outside = [{by: label} for label in design.levels(by)] if by else [{}]
    rows = latin_square(len(inside)) if plan.inside_block == LATIN_SQUARE else [tuple(range(len(inside)))]
    orders = _orders(len(outside), plan.blocks.order if plan.blocks else AS_WRITTEN)
    # Each block of a person begins with a different condition, if there are enough; the arms together balance all of
    # them.
    shift = max(1, len(rows) // len(outside))
    factors = between(design)
    for labels in product(*(design.levels(factor) for factor in factors)):
        group = dict(zip(factors, labels, strict=True))
        for order in orders:
            for number in range(1, len(rows) + 1):
                blocks = tuple(
                    tuple(
                        {factor: {**group, **outside[block], **inside[at]}[factor] for factor in design.conditions}
                        for _ in range(plan.matches)
                        for at in rows[(number - 1 + place * shift) % len(rows)]
                    )
                    for place, block in enumerate(order)
                )
                parts = [label for factor, label in group.items() if len(design.levels(factor)) > 1]
                if len(orders) > 1:
                    parts.append(" then ".join(outside[block][by] for block in order if by))
                if len(rows) > 1:
                    parts.append(f"order {number}")
                yield PlannedArm(", ".join(parts) or "all", blocks)


def _orders(count: int, order: str) -> Sequence[tuple[int, ...]]:
    if order != COUNTERBALANCED:
        return [tuple(range(count))]
    return list(permutations(range(count))) if count <= _ALL_ORDERS else latin_square(count)


def _order_count(count: int, order: str) -> int:
    return len(_orders(count, order))
