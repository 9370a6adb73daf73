"""What people are paid, to the cent."""

import random
from decimal import Decimal

import pytest

from app.games import GAMES
from app.games.negotiation.contexts import generate_context
from app.games.negotiation.points import utilities
from app.studies.cost import match_bonus, person_costs, study_cost
from app.studies.design_files import load_design
from app.studies.endings import EndingChange
from app.studies.expressions import read_comparison
from tests.unit.studies.test_design_files import EXAMPLE, SHIPPED

SELF, COOP = {"model": "a", "objective": "self"}, {"model": "a", "objective": "coop"}


@pytest.fixture(scope="module")
def design():
    return load_design(EXAMPLE).design


def test_a_match_is_paid_by_the_stakes_of_its_objective(design):
    assert match_bonus(design, SELF, Decimal(7)) == Decimal("0.70")
    assert match_bonus(design, COOP, Decimal(7)) == Decimal("0.35")


def test_a_bonus_never_falls_below_the_floor():
    design = load_design(SHIPPED / "taboo-roles" / "taboo-roles.yaml").design
    condition = {"model": "a", "role": "attacker"}
    assert [match_bonus(design, condition, Decimal(points)) for points in (-1, 0, 1)] == [0, Decimal("0.50"), 1]


def test_a_person_costs_at_most_the_best_of_all_matches_each_replaced_once(design):
    for cost in person_costs(design).values():
        # 2 · 10 · 0.10 + 2 · 20 · 0.05 + 4 · 0.25
        assert (cost.base, cost.expected, cost.most) == (Decimal("5.00"), Decimal("2.00"), Decimal("5.00"))


@pytest.mark.parametrize(("failure", "most"), [("0.25", "4.00"), ("3.00", "12.00")])
def test_a_match_that_is_not_replaced_pays_once(design, failure, most):
    bonus = design.pay.bonus.model_copy(update={"model_failure": Decimal(failure)})
    pay = design.pay.model_copy(update={"bonus": bonus, "most_a_person": Decimal(20)})
    policy = design.same_for_all.model_failure.model_copy(update={"then": "pay and end the match"})
    same = design.same_for_all.model_copy(update={"model_failure": policy})
    costs = person_costs(design.model_copy(update={"pay": pay, "same_for_all": same}))
    assert {cost.most for cost in costs.values()} == {Decimal(most)}


def test_an_ending_that_pays_more_than_the_base_is_what_a_place_costs_at_most(design):
    endings = {"technical": EndingChange(base=Decimal("6.00"))}
    assert study_cost(design.model_copy(update={"endings": endings}), 1, Decimal(0)).most == Decimal("11.00")


def test_a_rate_and_an_objective_make_exact_cents(design):
    bonus = design.pay.bonus.model_copy(update={"per_point": Decimal("0.05"), "model_failure": Decimal(0)})
    priced = design.model_copy(
        update={
            "conditions": {"model": {"a": "scripted"}, "objective": {"mine": 0.07}},
            "plan": design.plan.model_copy(update={"within": (), "blocks": None}),
            "pay": design.pay.model_copy(update={"bonus": bonus}),
        }
    )
    # 10.7 · 0.05 = 0.535; as a binary fraction it is less
    assert [cost.most for cost in person_costs(priced).values()] == [Decimal("0.54")]


def test_means_that_are_known_make_the_expectation(design):
    known = person_costs(design, {"a": Decimal(6), "b": Decimal("2.5")})
    # Under self 0.10 a point, under coop 0.05: 0.60 + 0.25 + 0.30 + 0.125
    assert {cost.expected for cost in known.values()} == {Decimal("1.28")}


def test_nobody_is_paid_more_than_the_most(design):
    capped = design.model_copy(update={"pay": design.pay.model_copy(update={"most_a_person": Decimal("1.50")})})
    assert {cost.most for cost in person_costs(capped).values()} == {Decimal("1.50")}


def test_all_places_cost_their_base_bonus_and_fee(design):
    cost = study_cost(design, 96, Decimal("0.333"))
    assert cost.expected == Decimal("895.78")  # 96 · 7.00 · 1.333
    assert cost.most == Decimal("1279.68")  # 96 · 10.00 · 1.333
    assert cost.hourly_base == Decimal("12.00")


@pytest.mark.parametrize("objective", ["self", "coop", "comp", 0.5, -0.25])
def test_no_deal_of_a_negotiation_is_worth_more_or_less_than_said(objective):
    game = GAMES["negotiation"]
    config = game.config({"objective": objective})
    least, most = game.utility_range(config.to_json())
    rng = random.Random(4)
    for _ in range(40):
        context = generate_context(rng)
        for _ in range(40):
            mine = tuple(rng.randint(0, count) for count in context.counts)
            theirs = tuple(count - own for count, own in zip(context.counts, mine, strict=True))
            for points in utilities(context, (mine, theirs), config.lam):
                assert least <= points <= most


@pytest.mark.parametrize(
    ("text", "found", "holds"),
    [
        ("attention < 2", 1, True),
        ("attention < 2", 2, False),
        ("minutes >= 12.5", 12.5, True),
        ("ai_help = often", "often", True),
        ("ai_help != often", "never", True),
        ("ai_help = often", None, False),
        ("attention < 2", "often", False),
        ("child = 1", "1", True),
        ("child = 1", "0", False),
        ("child != 1", "0", True),
        ("attention = two", 2, False),
    ],
)
def test_a_rule_holds_or_does_not(text, found, holds):
    assert read_comparison(text).holds(found) is holds
