"""What the fields of every spec make of values that a file or a program may hold, right ones and wrong ones."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from app.assessments.spec import AssessmentSpec
from app.campaigns.spec import CampaignSpec
from app.core.errors import AppError, Invalid
from app.finetuning.spec import TrainingSpec
from app.jobs.spec import PRESET, JobSpec, fields_of, parts_of
from app.society.spec import SocietySpec
from scripts.translations import job_specs

REQUIRED: Mapping[str, Any] = {  # a right value for each field that some spec requires
    "agents": {"a": 1},
    "base": "b",
    "dataset": "1",
    "file": "f",
    "folder": "f",
    "format": "stable-alignment",
    "game": "negotiation",
    "licence": "mit",
    "method": "sft",
    "model": "m",
    "models": ["a"],
    "name": "n",
    "observers": ["o"],
    "raters": ["r"],
    "study": "s",
    "tasks": "t",
    "to": "a/b",
}
ODD: list[Any] = [
    ["x"], [["x"]], [{}], {"a": 1}, {"a": ["b"]}, {}, 5, -1.5, True, float("nan"), 10**30, "x", "a\nb",
]  # fmt: skip


def request(spec: type[JobSpec]) -> dict[str, Any]:
    """The fields that a spec requires, each with a right value."""
    fields = spec.model_json_schema().get("required", ())
    rounds = {"rounds": ["1"]} if "rounds" in fields_of(spec) else {}
    model = {"model": "m"} if {"model", "to"} <= {*fields_of(spec)} else {}
    base = {"base": "b"} if "method" in fields else {}
    return {**{name: REQUIRED[name] for name in fields}, **rounds, **model, **base}


def odd_values(spec: type[JobSpec], name: str) -> list[Any]:
    """Odd values of a field, and of the fields inside of it."""
    inside = [PRESET, *(fields_of(parts_of(spec)[name]) if name in parts_of(spec) else ())]
    return [*ODD, *({field: value} for field in inside for value in (["x"], {"a": 1}))]


@pytest.mark.parametrize("spec", job_specs())
def test_an_odd_value_is_read_or_refused(spec: type[JobSpec]) -> None:
    whole = request(spec)
    assert spec.read(whole)
    for name in [*fields_of(spec), PRESET]:
        for value in odd_values(spec, name):
            with suppress(AppError):
                spec.read({**whole, name: value})
            for version in range(1, spec.version):
                with suppress(AppError):
                    spec.of_json({**whole, name: value, "version": version})


@pytest.mark.parametrize("preset", [["x"], {"a": 1}, 5])
@pytest.mark.parametrize(
    ("spec", "inside", "known"),
    [
        (SocietySpec, "config", "published or published-single-thread"),
        (AssessmentSpec, "sampling", "published"),
        (CampaignSpec, None, "lm-selfplay or spag"),
    ],
)
def test_a_preset_that_is_no_name_is_refused(spec: type[JobSpec], inside: str | None, known: str, preset: Any) -> None:
    given = {PRESET: preset} if inside is None else {inside: {PRESET: preset}}
    with pytest.raises(Invalid) as refused:
        spec.read({**request(spec), **given})
    field = PRESET if inside is None else f"{inside}.{PRESET}"
    assert refused.value.message == f"{field}: expected {known}, got {preset!r}"


def test_a_preset_of_a_training_that_is_no_name_is_refused() -> None:
    with pytest.raises(Invalid, match=r"^config.preset: expected published or code, got \['x'\]$"):
        TrainingSpec.read({**request(TrainingSpec), "method": "stable-alignment", "config": {PRESET: ["x"]}})
    with pytest.raises(Invalid, match=r"^config.preset: expected none with sft, which has none, got \['x'\]$"):
        TrainingSpec.read({**request(TrainingSpec), "config": {PRESET: ["x"]}})
