"""The goal of a condition, with the example that is computed for it."""

import json
from decimal import Decimal
from fractions import Fraction

import pytest

from app.core.config import ROOT
from app.studies.design import StudyDesign
from app.studies.design_files import load_design
from app.studies.texts import goal_of, words_of


@pytest.fixture(scope="module")
def design() -> StudyDesign:
    return load_design(ROOT / "data" / "studies" / "two-models" / "two-models.yaml").design


@pytest.mark.parametrize(
    ("label", "weight", "scores", "pays"),
    [("self", 0, [7, 4, 0], ["0.7", "0.4", "0"]), ("coop", 1, [12, 12, 0], ["0.6", "0.6", "0"])],
)
def test_the_example_is_that_of_the_objective(
    design: StudyDesign, label: str, weight: int, scores: list[int], pays: list[str]
) -> None:
    goal = goal_of(design, {"model": "a", "objective": label})
    assert goal.weight == weight
    assert [each.score for each in goal.examples] == scores
    assert [each.pay for each in goal.examples] == [Decimal(pay) for pay in pays]


def test_any_weight_has_an_example(design: StudyDesign) -> None:
    raw = json.loads(design.model_dump_json(by_alias=True))
    raw["conditions"]["objective"] = {"a third": -0.3, "comp": "comp"}
    raw["pay"]["bonus"] |= {"by_objective": {}, "endowment": "0.50"}
    other = StudyDesign.model_validate_json(json.dumps(raw))
    goal = goal_of(other, {"model": "a", "objective": "a third"})
    assert goal.weight == Fraction(-3, 10)
    assert [each.score for each in goal.examples] == [Fraction(11, 2), Fraction(8, 5), 0]
    assert [each.pay for each in goal.examples] == [Decimal("1.05"), Decimal("0.66"), Decimal("0.50")]
    assert goal_of(other, {"model": "a", "objective": "comp"}).examples[1].pay == Decimal("0.1")


def test_a_game_without_an_objective_has_none() -> None:
    taboo = load_design(ROOT / "data" / "studies" / "taboo-roles" / "taboo-roles.yaml").design
    goal = goal_of(taboo, {"model": "a", "role": "attacker"})
    assert (goal.weight, goal.per_point, goal.examples) == (None, Decimal("0.50"), ())
    assert words_of(taboo, str)["matches"] == "4"
