"""The texts people read in a study, filled with the facts of the design, and the goal of a condition. Pure."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from app.games import find_game
from app.studies.arms import Condition, matches_a_person
from app.studies.checks import OBJECTIVE, condition_config
from app.studies.cost import match_bonus
from app.studies.design import StudyDesign

# Points for oneself and for the partner in the example: a better match for one, and one for the other.
EXAMPLE_POINTS = ((7, 5), (4, 8))


class GoalExample(NamedTuple):
    """The score and exact pay of a match with these points for each side; None if there was no agreement."""

    own: int | None
    partner: int | None
    score: Fraction
    pay: Decimal


class Goal(NamedTuple):
    """The objective of a condition. `weight` is the value of a point of the partner; None in a game without one."""

    weight: Fraction | None
    per_point: Decimal
    examples: Sequence[GoalExample]


def goal_of(design: StudyDesign, condition: Condition) -> Goal:
    """The goal under a condition, with examples that are computed for it."""
    pay = partial(match_bonus, design, condition)
    per_point = pay(Decimal(1)) - pay(Decimal(0))
    if OBJECTIVE not in find_game(design.game).fields:
        return Goal(None, per_point, ())
    weight = weight_of(design, condition)
    examples = [GoalExample(own, other, own + weight * other, Decimal(0)) for own, other in EXAMPLE_POINTS]
    paid = [
        each._replace(pay=pay(Decimal(each.own or 0) if design.pay.bonus.of == "own points" else _decimal(each.score)))
        for each in [*examples, GoalExample(None, None, Fraction(0), Decimal(0))]
    ]
    return Goal(weight, per_point, paid)


def weight_of(design: StudyDesign, condition: Condition) -> Fraction:
    """The exact value of a point of the partner under a condition."""
    return find_game(design.game).partner_weight(condition_config(design, condition)) or Fraction(0)


def words_of(design: StudyDesign, money: Callable[[Decimal], str]) -> dict[str, str]:
    """The words that replace the names in braces, except for the goal. `money` formats an amount."""
    return {
        "matches": str(matches_a_person(design)),
        "minutes": str(design.minutes),
        "base": money(design.pay.base),
        "most": money(design.pay.most_a_person),
        "currency": design.pay.currency,
    }


def first_condition(design: StudyDesign) -> Mapping[str, str]:
    """The first level of each factor: shown where the condition makes no difference."""
    return {factor: next(iter(design.levels(factor))) for factor in design.conditions}


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)
