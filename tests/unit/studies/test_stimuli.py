"""What people play on: everything balanced over persons, and nothing twice for one of them."""

import json
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from app.core.config import ROOT
from app.studies.arms import arms
from app.studies.design import StudyDesign
from app.studies.design_files import load_design
from app.studies.stimuli import PlanPlace, distinct, plan_of

STUDIES = ROOT / "data" / "studies"


@pytest.fixture(params=["two-models", "taboo-roles"])
def design(request: pytest.FixtureRequest) -> StudyDesign:
    return load_design(STUDIES / request.param / f"{request.param}.yaml").design


def changed(design: StudyDesign, **parts: dict[str, Any]) -> StudyDesign:
    """A design with some keys of its parts changed."""
    written = json.loads(design.model_dump_json(by_alias=True, exclude_unset=True))
    for name, keys in parts.items():
        written[name].update(keys)
    return StudyDesign.model_validate_json(json.dumps(written))


def two_models() -> StudyDesign:
    return load_design(STUDIES / "two-models" / "two-models.yaml").design


def plan(design: StudyDesign, pieces: int, arm: int, number: int, stratum: str = "desktop") -> dict[str, Any]:
    return plan_of(design, range(pieces), PlanPlace(arm, stratum, number, "1/study/main"))


def labels(match: dict[str, Any]) -> tuple[str, ...]:
    return tuple(match["condition"].values())


def test_a_plan_is_that_of_the_arm_and_has_no_piece_twice(design: StudyDesign) -> None:
    for at, arm in enumerate(arms(design)):
        for number in range(9):
            found = plan(design, 16, at, number)
            assert [each["condition"] for each in found["matches"]] == list(arm.conditions)
            assert [each["block"] for each in found["matches"]] == [
                b for b, block in enumerate(arm.blocks) for _ in block
            ]
            pieces = [each["piece"] for each in (*found["matches"], *found["practice"])]
            assert len(set(pieces)) == len(pieces)
            assert found == plan(design, 16, at, number) == json.loads(json.dumps(found))


def test_each_condition_is_played_on_each_piece_equally_often(design: StudyDesign) -> None:
    times = design.plan.matches
    for at in range(len(arms(design))):
        found = Counter(
            (labels(match), match["piece"]) for number in range(8) for match in plan(design, 8, at, number)["matches"]
        )
        assert set(found.values()) == {times}
        assert len(found) == 8 * len({condition for condition, _ in found})


def test_sides_and_starts_are_balanced_over_a_persons_matches_and_over_persons() -> None:
    design = two_models()
    for at in range(4):
        found: Counter[Any] = Counter()
        for number in range(4):
            matches = plan(design, 16, at, number)["matches"]
            for name in ("seat", "first"):
                assert Counter(match[name] for match in matches) == {0: 2, 1: 2}
            assert len({(match["seat"], match["first"]) for match in matches}) == 4
            found.update((labels(match), match["seat"], match["first"]) for match in matches)
        assert set(found.values()) == {1}
        assert len(found) == 16


@pytest.mark.parametrize("matches", range(1, 6))
def test_sides_differ_by_one_at_most_where_matches_are_odd(matches: int) -> None:
    design = changed(two_models(), plan={"matches": matches, "within": ["objective"], "between": ["model"]})
    design = changed(design, plan={"blocks": {"by": "objective", "order": "as written"}, "inside_block": "as written"})
    design = changed(design, conditions={"objective": ["self"]})
    for at, number in product(range(len(arms(design))), range(8)):
        drawn = plan(design, 16, at, number)["matches"]
        for name in ("seat", "first"):
            counts = Counter(match[name] for match in drawn)
            assert abs(counts[0] - counts[1]) <= 1


def test_a_role_decides_the_seat() -> None:
    design = load_design(STUDIES / "taboo-roles" / "taboo-roles.yaml").design
    for at, number in product(range(len(arms(design))), range(4)):
        for match in plan(design, 16, at, number)["matches"]:
            assert match["seat"] == ("attacker", "defender").index(match["condition"]["role"])
            assert match["first"] is None


def test_yoked_persons_play_what_the_others_played() -> None:
    base = changed(
        two_models(),
        plan={"within": ["objective"], "between": ["model"], "matches": 2, "blocks": {"by": "objective"}},
    )
    yoked = changed(base, material={"yoked_to": "a"})

    def played(design: StudyDesign, at: int, number: int) -> list[Any]:
        return [(m["piece"], m["seat"], m["first"]) for m in plan(design, 16, at, number)["matches"]]

    half = len(arms(base)) // 2
    pairs = [(at, number) for at in range(half) for number in range(6)]
    assert all(played(yoked, at, number) == played(yoked, at + half, number) for at, number in pairs)
    assert all(played(yoked, at, number) == played(base, at, number) for at, number in pairs)
    assert any(played(base, at, number) != played(base, at + half, number) for at, number in pairs)


def test_a_person_without_pieces_to_spare_practises_on_what_the_game_draws() -> None:
    assert plan(two_models(), 4, 0, 0)["practice"][0]["piece"] is None


def test_pieces_that_are_the_same_to_their_players_count_once() -> None:
    assert distinct(["x", "y", "x", "z"]) == [0, 1, 3]


def test_what_the_game_or_the_design_says_is_not_drawn(tmp_path: Path) -> None:
    fixed = changed(two_models(), same_for_all={"game": {"first": 0}})
    assert {match["first"] for match in plan(fixed, 16, 0, 0)["matches"]} == {None}
