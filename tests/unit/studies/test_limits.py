"""The most moves of a match, which each game has a setting of its own for."""

from pathlib import Path

import pytest

from app.core.errors import Invalid
from app.studies.checks import condition_config
from app.studies.design_files import load_design
from tests.unit.studies.test_design_files import SHIPPED


def changed(tmp_path: Path, study: str, old: str, new: str) -> Path:
    for file in (SHIPPED / study).iterdir():
        (tmp_path / file.name).write_text(file.read_text().replace(old, new))
    return tmp_path / f"{study}.yaml"


@pytest.mark.parametrize(
    ("study", "old", "condition", "limit"),
    [
        ("two-models", "moves: 30", {"model": "a", "objective": "self"}, {"limit": 12}),
        ("taboo-roles", "match: 8 min", {"model": "a", "role": "attacker"}, {"max_turns": 6}),
    ],
)
def test_the_most_moves_are_the_games_own_setting(tmp_path, study, old, condition, limit):
    new = "moves: 12" if "moves" in old else f"{old}, moves: 12"
    config = condition_config(load_design(changed(tmp_path, study, old, new)).design, condition)
    assert {**config, **limit} == config


def test_more_moves_than_the_game_can_have_are_refused(tmp_path):
    path = changed(tmp_path, "taboo-roles", "match: 8 min", "match: 8 min, moves: 200")
    with pytest.raises(Invalid, match=r"moves: expected .* 50, got 100; one max_turns stands for 2 moves"):
        load_design(path)


def test_the_most_moves_are_said_once(tmp_path):
    path = changed(tmp_path, "two-models", "  feedback: own points", "  feedback: own points\n  game: {limit: 20}")
    with pytest.raises(Invalid, match="moves: expected limit or the most moves, got both"):
        load_design(path)
