"""What the fields of every spec make of values that a file or a program may hold, right ones and wrong ones."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from app.alignments.spec import AlignmentSpec
from app.assessments.spec import AssessmentSpec
from app.benchmarks.spec import BenchmarkSpec
from app.campaigns.spec import CampaignSpec
from app.core.errors import AppError, Invalid
from app.datasets.spec import DatasetRequestSpec
from app.finetuning.spec import TrainingSpec
from app.jobs.spec import PRESET, JobSpec, fields_of, parts_of
from app.publication.spec import PublicationSpec
from app.rounds.spec import RoundSpec
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
    "place": "a/b",
    "raters": ["r"],
    "study": "s",
    "tasks": "t",
    "to": "a/b",
}
REVISION = "a branch, a tag or a commit, in at most 100 characters without spaces"
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


@pytest.mark.parametrize(
    ("spec", "fields", "line"),
    [
        (PublicationSpec, {"revision": "a\nb"}, "revision: expected text on one line, got 'a\\nb'"),
        (PublicationSpec, {"revision": "a b"}, f"revision: expected {REVISION}, got 'a b'"),
        (PublicationSpec, {"revision": "../a"}, f"revision: expected {REVISION}, got '../a'"),
        (PublicationSpec, {"revision": "a" * 101}, f"revision: expected {REVISION}, got '{'a' * 58}…"),
        (BenchmarkSpec, {"tasks": "a\nb"}, "tasks: expected text on one line, got 'a\\nb'"),
        (BenchmarkSpec, {"model": "a\x1b[2J"}, "model: expected text on one line, got 'a\\x1b[2J'"),
        (SocietySpec, {"embedder": "tfidf\n"}, "embedder: expected text on one line, got 'tfidf\\n'"),
        (SocietySpec, {"agents": {"a\nb": 1}}, "agents: expected names with their values, got {'a\\nb': 1}"),
        (SocietySpec, {"observers": ["a\nb"]}, "observers: expected a list of names, got ['a\\nb']"),
        (RoundSpec, {"prompts": ["a", "b", "c"]}, "prompts: expected 0 to 2 entries, got 3"),
        (DatasetRequestSpec, {"rounds": ["1"] * 1001}, "rounds: expected 0 to 1000 entries, got 1001"),
        (SocietySpec, {"observers": []}, "observers: expected 1 to 100 models, got 0"),
        (SocietySpec, {"seed": 0, "config": {"seed": 5}}, "config.seed: expected none beside the seed 0, got 5"),
        (AlignmentSpec, {"seed": 1, "society": {"seed": 5}}, "society.seed: expected none beside the seed 1, got 5"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line(spec: type[JobSpec], fields: dict[str, Any], line: str) -> None:
    with pytest.raises(Invalid) as refused:
        spec.read({**request(spec), **fields})
    assert refused.value.message == line


@pytest.mark.parametrize("revision", ["main", "v1.0", "refs/pr/7", "0f" * 20, "a" * 100])
def test_a_revision_is_a_branch_a_tag_or_a_commit(revision: str) -> None:
    assert PublicationSpec.read({**request(PublicationSpec), "revision": revision}).place.revision == revision


def test_a_whole_number_may_name_a_thing() -> None:
    assert RoundSpec.read({**request(RoundSpec), "models": [7], "talk_of": 7}).talk_of == "7"
    assert TrainingSpec.read({**request(TrainingSpec), "dataset": 1}).dataset == "1"
    assert AlignmentSpec.read({**request(AlignmentSpec), "demonstrations": 1}).demonstrations == "1"
    assert DatasetRequestSpec.read({"rounds": [7]}).rounds == ("7",)
    for wrong in (True, 1.5):
        with pytest.raises(Invalid, match="dataset: expected text, got"):
            TrainingSpec.read({**request(TrainingSpec), "dataset": wrong})


def test_a_seed_may_be_among_the_settings() -> None:
    within = {**request(SocietySpec), "config": {"seed": 5}}
    assert SocietySpec.read(within).seed == 5
    assert SocietySpec.read({**within, "seed": "5"}).seed == 5
    assert SocietySpec.of_json(within, {"seed": "6"}).seed == 6  # an option overrides the file
    assert SocietySpec.of_json({**request(SocietySpec), "seed": 0}, {"config": {"seed": 6}}).seed == 6


@pytest.mark.parametrize(
    ("spec", "fields", "field"),
    [
        (CampaignSpec, {"colour": "red"}, "colour"),
        (CampaignSpec, {"partners": 5}, "partners"),
        (CampaignSpec, {"play_with": "abc"}, "play_with"),
        (CampaignSpec, {"play_with": [["a"]]}, "play_with"),
        (CampaignSpec, {"sampling": "x"}, "sampling"),
        (AlignmentSpec, {"colour": "red"}, "colour"),
        (AlignmentSpec, {"train": 5}, "train"),
        (AlignmentSpec, {"training": {}, "train": {}}, "training"),
        (AlignmentSpec, {"agents": [["a"]]}, "agents"),
    ],
)
def test_a_wrong_field_of_an_earlier_version_is_named(spec: type[JobSpec], fields: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        spec.of_json({**request(spec), **fields, "version": 1})
    assert refused.value.field == field
