"""What the author of a design is warned of: endings after work that pay nothing for it."""

import shutil
from pathlib import Path

import pytest

from app.studies.design_files import load_design
from tests.waves import STUDIES

ENDINGS = """endings: {removed: {base: by time},
  quiz_failed: {base: 1.00}}
"""
NOTHING = "people get nothing for the time until then"


def warned(tmp_path: Path, endings: str, old: str = "", new: str = "") -> dict[str, str]:
    """The warnings of the example with other endings, by the key that they are about."""
    folder = Path(shutil.copytree(STUDIES / "two-models", tmp_path / "study"))
    file = folder / "two-models.yaml"
    text = file.read_text(encoding="utf-8")
    assert ENDINGS in text
    file.write_text(text.replace(ENDINGS, endings).replace(old, new), encoding="utf-8")
    return {".".join(map(str, each.path)): each.text for each in load_design(file).warned}


def test_the_example_pays_after_all_work(tmp_path: Path) -> None:
    assert warned(tmp_path, ENDINGS) == {}


def test_what_the_preset_leaves_unpaid_is_told(tmp_path: Path) -> None:
    assert warned(tmp_path, "") == {"endings.quiz_failed": NOTHING, "endings.removed": NOTHING}


def test_a_failed_quiz_is_not_told_of_where_there_is_no_quiz(tmp_path: Path) -> None:
    text = (STUDIES / "two-models" / "two-models.yaml").read_text(encoding="utf-8")
    quiz = text[text.index("quiz:\n") : text.index("survey:\n")]
    assert warned(tmp_path, "", quiz, "") == {"endings.removed": NOTHING}


@pytest.mark.parametrize("name", ["inactive", "withdrawn", "technical", "completed", "removed"])
@pytest.mark.parametrize("base", ["none", "0.00"])
def test_every_ending_that_can_come_after_a_match_is_looked_at(tmp_path: Path, name: str, base: str) -> None:
    others = "" if name == "removed" else "removed: {base: by time}, "
    found = warned(tmp_path, f"endings: {{{others}quiz_failed: {{base: 1.00}}, {name}: {{base: {base}}}}}\n")
    assert found == {f"endings.{name}": NOTHING}


def test_a_least_is_pay_and_a_bonus_that_is_kept_back_is_told(tmp_path: Path) -> None:
    endings = (
        "endings: {removed: {base: none, least: 0.50}, quiz_failed: {base: 1.00},"
        " inactive: {base: none, bonus: none}, withdrawn: {bonus: none}}\n"
    )
    assert warned(tmp_path, endings) == {
        "endings.withdrawn": "what people have earned until then is not paid",
        "endings.inactive": f"{NOTHING}, not even what they have earned",
    }


def test_a_base_of_nothing_is_told_once(tmp_path: Path) -> None:
    assert warned(tmp_path, ENDINGS, "base: 5.00", "base: 0.00") == {
        "pay.base": "it is 0, so that nobody is paid for their time"
    }


def test_columns_that_exports_would_call_otherwise_are_told(tmp_path: Path) -> None:
    found = warned(
        tmp_path, ENDINGS, "{a: scripted, b: tiny}",
        "{model trained on human dialogues: scripted, model trained on its own rounds: tiny}",
    )  # fmt: skip
    assert set(found) == {"conditions"}
    assert "utility_model_trained_on_human_dialogues_self (utility_model_trained_on_human_d)" in found["conditions"]
    assert "utility_model_trained_on_its_own_rounds_self (utility_model_trained_on_its_own)" in found["conditions"]
    assert found["conditions"].endswith(" and 1 more")
    told = warned(tmp_path / "other", ENDINGS, "id: trust", "id: how_much_did_you_trust_your_partner")
    assert "how_much_did_you_trust_your_partner_match_1 (how_much_did_you_trust_y_match_1)" in told["survey"]
