"""What may be said of a society, and what is refused with one clear line."""

from typing import Any

import pytest

from app.core.errors import Invalid
from app.society.config import SocietyConfig


def read_config(raw: dict[str, Any], preset: str | None = None) -> SocietyConfig:
    return SocietyConfig.read({**raw, "preset": preset})


def test_nothing_said_is_the_published_society() -> None:
    assert read_config({}) == SocietyConfig()


def test_what_is_said_is_laid_over_the_preset_and_may_be_text() -> None:
    found = read_config({"critics": "8", "recall": "false", "threshold": None}, "published-single-thread")
    assert (found.critics, found.dropout, found.recall, found.threshold) == (8, 0.8, False, None)


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        ({"size": 1}, "size: expected a whole number from 2 to 40, got 1"),
        ({"setting": "good"}, "setting: expected all_good or all_bad or half_half or mixed_half_half, got 'good'"),
        ({"dropout": 1}, "dropout: expected a number from 0 to below 1, got 1"),
        ({"recall": "maybe"}, "recall: expected true or false, got 'maybe'"),
        (
            {"size": "2"},
            "critics: expected fewer than the 4 agents of the grid, got 4; choose fewer critics or a larger grid",
        ),
        ({"seed": 2**32}, "seed: expected a whole number from 0 to 4294967295, got 4294967296"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(raw: dict[str, Any], line: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_config(raw)
    assert refused.value.message == line


def test_no_value_of_any_kind_is_refused_with_anything_but_a_line() -> None:
    strange: tuple[Any, ...] = (None, "", "x", "1e999", -1, 0, 1.5, True, [], {}, "nan", 1e400, 10**400)
    refusals: list[Invalid] = []
    for name in SocietyConfig.model_fields:
        for value in strange:
            try:
                read_config({name: value})
            except Invalid as refused:
                refusals.append(refused)
    assert {each.field for each in refusals} == set(SocietyConfig.model_fields)
    assert not [each for each in refusals if "\n" in each.message]


def test_a_field_and_a_preset_that_do_not_exist_are_refused() -> None:
    for raw, preset, field in (({"sise": 3}, None, "sise"), ({}, "mine", "preset")):
        with pytest.raises(Invalid) as refused:
            read_config(raw, preset)
        assert refused.value.field == field
