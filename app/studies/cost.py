"""A study's pay for a person, expected and at most, and the cost of the whole study. Pure."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import NamedTuple

from app.games import find_game
from app.studies.arms import Condition, PlannedArm, arms
from app.studies.checks import OBJECTIVE, condition_config
from app.studies.design import REPLACE, Stakes, StudyDesign
from app.studies.endings import PROLIFIC
from app.studies.quantities import rounded

_HALF = Decimal("0.5")


class Span(NamedTuple):
    """The fewest and the most points that a seat can get in a match."""

    least: Decimal
    most: Decimal


class PersonCost(NamedTuple):
    """The pay of one person who completes an arm: the base, the expected bonus, and the maximum bonus."""

    base: Decimal
    expected: Decimal
    most: Decimal


def match_bonus(design: StudyDesign, condition: Condition, points: Decimal) -> Decimal:
    """The exact bonus of a match that ended with these points. Sums are rounded once per person."""
    stakes = stakes_of(design, condition)
    return max(stakes.endowment + stakes.per_point * points, stakes.floor)


class MatchStakes(NamedTuple):
    """The stakes of a match, with all values set."""

    per_point: Decimal
    endowment: Decimal
    floor: Decimal


def stakes_of(design: StudyDesign, condition: Condition) -> MatchStakes:
    """The stakes under a condition: the common ones, with the changes for its objective."""
    bonus = design.pay.bonus
    own = bonus.by_objective.get(condition.get(OBJECTIVE, ""), Stakes())
    return MatchStakes(*(getattr(bonus if getattr(own, name) is None else own, name) for name in MatchStakes._fields))


def points_of(design: StudyDesign, condition: Condition) -> Span:
    """The range of paid points under a condition. Raises Invalid for a config that the game refuses."""
    game = find_game(design.game)
    config = dict(condition_config(design, condition))
    if design.pay.bonus.of == "own points" and OBJECTIVE in game.fields:
        config[OBJECTIVE] = game.fields[OBJECTIVE]["default"]
    return Span(*game.utility_range(config))


def most_bonus(design: StudyDesign, condition: Condition) -> Decimal:
    """The maximum pay of a match; one that a model aborted pays for itself, and for the match that replaces it."""
    best = max(match_bonus(design, condition, points) for points in points_of(design, condition))
    failure = design.pay.bonus.model_failure
    return failure + best if design.same_for_all.model_failure.then == REPLACE else max(failure, best)


def earned_at_most(design: StudyDesign) -> Decimal:
    """The highest bonus that a person can earn in any arm, before `most_a_person` limits it."""
    return max(
        rounded(sum((most_bonus(design, condition) for condition in arm.conditions), Decimal(0)))
        for arm in arms(design)
    )


def highest_base(design: StudyDesign) -> Decimal:
    """The most that any ending pays as its base."""
    found = [design.pay.base]
    for name in PROLIFIC:
        ending = design.ending(name, PROLIFIC)
        found += [amount for amount in (ending.base, ending.least) if isinstance(amount, Decimal)]
    return max(found)


def most_a_place(design: StudyDesign) -> Decimal:
    """The most that one person is paid: the highest base of any ending, and the highest bonus."""
    return highest_base(design) + min(earned_at_most(design), design.pay.most_a_person)


def person_costs(design: StudyDesign, mean_points: Mapping[str, Decimal] | None = None) -> dict[str, PersonCost]:
    """The cost of a person, by arm. Expected points are half way from the least to the most.

    `mean_points` gives better estimates for levels of the model, by label.
    """
    known = mean_points or {}

    def expected(condition: Condition) -> Decimal:
        span = points_of(design, condition)
        return known.get(condition["model"], (span.least + span.most) * _HALF)

    return {
        arm.name: PersonCost(
            design.pay.base,
            _capped(design, arm, lambda condition: match_bonus(design, condition, expected(condition))),
            _capped(design, arm, lambda condition: most_bonus(design, condition)),
        )
        for arm in arms(design)
    }


def _capped(design: StudyDesign, arm: PlannedArm, of_match: Callable[[Condition], Decimal]) -> Decimal:
    """The sum over an arm's matches, capped at the maximum for a person."""
    total = sum((of_match(condition) for condition in arm.conditions), Decimal(0))
    return min(rounded(total), design.pay.most_a_person)


class StudyCost(NamedTuple):
    """The cost of the places with the recruiter's fee, expected and at most; and the base as an hourly wage.

    The maximum assumes that each place pays the highest base of any ending.
    """

    places: int
    expected: Decimal
    most: Decimal
    hourly_base: Decimal


def study_cost(
    design: StudyDesign, places: int, fee: Decimal, mean_points: Mapping[str, Decimal] | None = None
) -> StudyCost:
    """The cost of a wave; places are shared out evenly among the arms. `fee` is the recruiter's share on top."""
    costs = list(person_costs(design, mean_points).values())
    mean, factor = Decimal(places) / len(costs), 1 + fee
    expected = sum((each.base + each.expected for each in costs), Decimal(0)) * mean * factor
    most = sum((highest_base(design) + each.most for each in costs), Decimal(0)) * mean * factor
    hourly = design.pay.base * 60 / design.minutes
    return StudyCost(places, rounded(expected), rounded(most), rounded(hourly))
