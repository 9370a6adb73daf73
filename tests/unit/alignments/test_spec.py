"""What may be said of an alignment."""

import json

import pytest

from app.alignments.spec import AlignmentSpec, part, read_preset
from app.core.errors import Invalid
from app.finetuning.config import preset_fields, read_config
from app.players.base import ChatSampling
from app.society.comparisons import MIXING
from app.society.config import SocietyConfig


def test_the_presets_are_the_published_recipe_and_what_its_code_does() -> None:
    published, code = read_preset("published"), read_preset("code")
    wanted = {"epochs": 7, "rating_scale": 7, "margin": 10, "ratio": 0.2, "num_comp": 3, "learning_rate": 2e-5}
    assert {
        **wanted,
        "accumulation": 8,
        "max_length": 360,
        "batch": 1,
        "max_flow": "false",
        "too_long": "truncate",
    } == published.training
    assert MIXING[published.mixing] == (5, 1, 1)
    assert {name: code.training[name] for name in ("margin", "ratio", "max_length")} == {
        "margin": 1, "ratio": 0.5, "max_length": 512
    }  # fmt: skip
    assert MIXING[code.mixing] == (1, 0.1, 0.1)
    for preset in (published, code):
        assert read_config("stable-alignment", preset.training) == preset.training


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(Invalid, match="preset: expected published or code, got 'mine'"):
        read_preset("mine")


def test_what_is_given_of_a_training_is_laid_over_the_preset() -> None:
    wanted = {"base": "base", "observers": ["judge"], "preset": "code", "train": {"margin": "3"}, "seed": 4}
    spec = AlignmentSpec.read(wanted)
    assert (spec.fields["margin"], spec.fields["ratio"], spec.fields["seed"]) == ("3", 0.5, 4)


def test_a_spec_is_read_as_it_was_written() -> None:
    wanted = {
        "base": "base", "observers": ["judge"], "raters": ["judge", "other"], "demonstrations": "3",
        "agents": {"other": 2}, "society": {"size": 4}, "sampling": {"temperature": "0.5"}, "seed": 9,
    }  # fmt: skip
    spec = AlignmentSpec.read(wanted)
    assert AlignmentSpec.of_json(json.loads(json.dumps(spec.to_json()))) == spec
    assert (spec.judges, AlignmentSpec.read({**wanted, "raters": []}).judges) == (("judge", "other"), ("judge",))


def test_the_spec_of_a_row_of_version_0_2_is_read() -> None:
    stored = {
        "base": "base", "observers": ["judge"], "raters": ["judge"], "demonstrations": None, "agents": [["other", 2.0]],
        "share": 1.0, "society": {**SocietyConfig(size=4, seed=9).model_dump()}, "society_preset": None,
        "embedder": "tfidf", "sft": {}, "preset": "code", "training": {"margin": "3"}, "seed": 9,
        "sampling": {"temperature": 0.5, "top_p": None, "top_k": None, "max_tokens": None, "no_repeat_ngram": None},
    }  # fmt: skip
    spec = AlignmentSpec.of_json(stored)
    assert (spec.agents, spec.society.size, spec.seed, spec.train) == ({"other": 2.0}, 4, 9, {"margin": "3"})
    assert spec.sampling.chat == ChatSampling(temperature=0.5)


def test_a_fifth_of_the_questions_is_held_out_and_asked_nowhere_else() -> None:
    every = [f"Question {number}?" for number in range(50)]
    asked, held = part([*every, every[3]], 0.2, seed=1)
    assert (len(asked), len(held)) == (40, 10)
    assert sorted([*asked, *held]) == sorted(every)
    assert part(every, 0.2, seed=1) == (asked, held) != part(every, 0.2, seed=2)
    assert [len(each) for each in part(["One?", "Two?"], 0.2, seed=1)] == [1, 1]


def test_a_training_may_be_given_a_preset_of_its_method_and_no_other() -> None:
    assert preset_fields("stable-alignment", None) == {}
    assert preset_fields("stable-alignment", "code")["margin"] == 1
    with pytest.raises(Invalid, match="preset: expected published or code, got 'mine'"):
        preset_fields("stable-alignment", "mine")
    with pytest.raises(Invalid, match="preset: expected none with sft, which has none, got 'code'"):
        preset_fields("sft", "code")
