"""What people are owed, to the cent, under both examples."""

import random
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

import pytest

from app.studies.amounts import PlayedMatch, base_owed, bonus_owed, exact, is_paid_by_approval, pays_bonus, time_taken
from app.studies.arms import arms
from app.studies.cost import earned_at_most, match_bonus, person_costs, points_of
from app.studies.design_files import load_design
from app.studies.endings import PROLIFIC, EndingChange
from tests.unit.studies.test_design_files import SHIPPED

CENT = Decimal("0.01")
HALF = timedelta(minutes=12, seconds=30)  # of the 25 minutes of two-models


@pytest.fixture(scope="module", params=["two-models", "taboo-roles"])
def design(request):
    return load_design(SHIPPED / request.param / f"{request.param}.yaml").design


@pytest.fixture(scope="module")
def two_models():
    return load_design(SHIPPED / "two-models" / "two-models.yaml").design


def priced(design, **changes):
    bonus = design.pay.bonus.model_copy(update=changes)
    return design.model_copy(update={"pay": design.pay.model_copy(update={"bonus": bonus})})


def played(design, rng):
    """Matches of a person with points that the game gives, some broken off by the model and replaced."""
    arm = rng.choice(arms(design))
    for number, condition in enumerate(arm.conditions):
        span = points_of(design, condition)
        if rng.random() < 0.2:
            yield PlayedMatch(f"{number} first", condition, None)
        yield PlayedMatch(f"{number}", condition, Decimal(rng.randint(int(span.least), int(span.most))))


def test_a_bonus_is_the_exact_sum_of_its_matches_rounded_once_and_capped(design):
    rng = random.Random(5)
    for _ in range(300):
        rates = {"per_point": Decimal(rng.randrange(1000)) / 1000, "by_objective": {}, "endowment": Decimal("0.10")}
        own = priced(design, **rates)
        matches = list(played(own, rng))
        failures = sum(each.points is None for each in matches)
        exact_sum = failures * own.pay.bonus.model_failure + sum(
            max(own.pay.bonus.floor, Decimal("0.10") + rates["per_point"] * each.points)
            for each in matches
            if each.points is not None
        )
        owed = bonus_owed(own, matches)
        assert owed == max(0, min(exact_sum.quantize(CENT, ROUND_HALF_UP), own.pay.most_a_person))
        assert owed <= earned_at_most(own)
        rng.shuffle(matches)
        assert bonus_owed(own, [*matches, *matches]) == owed


def test_half_a_cent_goes_up_once_a_person(two_models):
    design = priced(two_models, per_point=Decimal("0.005"), by_objective={})
    condition = {"model": "a", "objective": "self"}
    one, two, three = (PlayedMatch(str(n), condition, Decimal(1)) for n in range(3))
    assert [bonus_owed(design, each) for each in ([], [one], [one, two], [one, two, three])] == [
        Decimal("0.00"), Decimal("0.01"), Decimal("0.01"), Decimal("0.02"),
    ]  # fmt: skip


def test_points_of_binary_fractions_are_paid_as_they_are_meant(two_models):
    design = priced(two_models, per_point=Decimal("0.05"), by_objective={})
    match = PlayedMatch("m", {"model": "a", "objective": "self"}, exact(0.1 + 0.2 + 2.0))
    assert match.points == Decimal("2.3")
    assert bonus_owed(design, [match]) == Decimal("0.12")  # 0.115 and not 0.11500000000000002 or less


def test_a_match_that_a_model_broke_off_and_the_one_in_its_place_are_both_paid(two_models):
    condition = {"model": "a", "objective": "self"}
    matches = [PlayedMatch("first", condition, None), PlayedMatch("second", condition, Decimal(7))]
    assert bonus_owed(two_models, matches[:1]) == Decimal("0.25")
    assert bonus_owed(two_models, matches) == Decimal("0.95")
    assert match_bonus(two_models, condition, Decimal(7)) == Decimal("0.70")


def test_what_models_break_off_is_under_the_cap_as_the_printed_cost_is(two_models):
    condition = {"model": "a", "objective": "self"}
    matches = [PlayedMatch(str(number), condition, None) for number in range(30)]
    assert bonus_owed(two_models, matches) == two_models.pay.most_a_person
    assert all(cost.most <= two_models.pay.most_a_person for cost in person_costs(two_models).values())


def test_points_below_zero_never_make_somebody_owe(two_models):
    condition = {"model": "a", "objective": "self"}
    assert bonus_owed(two_models, [PlayedMatch("m", condition, Decimal(-9))]) == 0


@pytest.mark.parametrize("name", list(PROLIFIC))
def test_every_ending_pays_the_base_that_it_says(design, name):
    half, full = timedelta(minutes=design.minutes) / 2, design.pay.base
    by_ending = {
        "full": [full] * 4,
        "none": [0] * 4,
        "by time": [0, full / 2, full, full],
    }
    base = design.ending(name, PROLIFIC).base
    expected = by_ending[base] if isinstance(base, str) else [base] * 4
    assert [base_owed(design, name, half * halves) for halves in (0, 1, 2, 40)] == expected
    assert pays_bonus(design, name) == (name not in ("declined", "ineligible", "full"))


def test_the_least_of_an_ending_is_paid_for_the_shortest_time(two_models):
    endings = {"withdrawn": EndingChange(least=two_models.pay.base / 2), "removed": EndingChange(base=CENT)}
    design = two_models.model_copy(update={"endings": endings})
    assert base_owed(design, "withdrawn", timedelta(0)) == Decimal("2.50")
    assert base_owed(design, "withdrawn", HALF * 2) == Decimal("5.00")
    assert base_owed(design, "removed", timedelta(0)) == CENT


def test_time_is_paid_to_the_cent(two_models):
    # 5.00 * 37 s / 1500 s = 0.12333…, and 1.5 s are half a cent
    assert base_owed(two_models, "withdrawn", timedelta(seconds=37)) == Decimal("0.12")
    assert base_owed(two_models, "withdrawn", timedelta(seconds=1.5)) == CENT


def test_approval_pays_the_full_base_alone(two_models):
    def paid(name, recruiter="prolific", status="submitted"):
        return is_paid_by_approval(two_models, name, recruiter, status)

    assert [paid(name) for name in ("completed", "technical", "partner_left")] == [True] * 3
    assert [paid(name) for name in ("quiz_failed", "withdrawn", "closed", "declined")] == [False] * 4
    assert [paid("completed", each) for each in ("prolific", "connect", "link", "mturk")] == [True, True, False, True]
    assert [paid("completed", status=each) for each in ("active", "approved", None)] == [True] * 3
    assert [paid("completed", status=each) for each in ("returned", "timed_out", "rejected")] == [False] * 3


def test_a_night_away_is_not_time_taken():
    noon = datetime(2026, 9, 1, 12, tzinfo=UTC)
    signs = [noon + timedelta(minutes=minutes) for minutes in (0, 3, 9, 9, 24 * 60)]
    assert time_taken(reversed(signs)) == timedelta(minutes=9 + 10)
