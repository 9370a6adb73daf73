"""What a job may say of its training agrees with what the training takes."""

from typing import Any

import pytest

from app.core.errors import Invalid
from app.finetuning.config import check_model_name, find_method, read_config
from app.finetuning.openai.fields import OpenAIFields
from training.methods import all_methods, methods_here
from training.methods.base import fields_of

ITS_OWN = {
    "data", "output", "run", "resume", "base", "base_sha256", "eval_data", "chat_template", "reference",
    "reference_cache", "reference_sha256", "sft_data", "template_arguments",
}  # fmt: skip


def test_every_field_of_a_training_may_be_given_but_for_its_files() -> None:
    needing = [bool(method.needs) for method in all_methods().values()]
    assert needing == sorted(needing)  # those that any conversation will do for come first
    for name, method in all_methods().items():
        assert set(find_method(name).job_fields) == set(method.config.model_fields) - ITS_OWN


def test_every_field_has_a_title_a_sentence_of_help_and_a_default_or_what_holds_without_one() -> None:
    for method in all_methods().values():
        for name, field in method.fields.items():
            assert field["title"], name
            assert field["description"].endswith("."), name
            assert field.get("default") is not None or field.get("unset") or name in ("data", "output", "base"), name


def test_the_schemas_of_fields_are_made_once_however_often_a_page_asks_for_them() -> None:
    for method in all_methods().values():
        assert method.fields is method.fields
    assert fields_of(OpenAIFields) is fields_of(OpenAIFields)


def test_numbers_may_come_as_text_and_null_is_the_default() -> None:
    raw = {"epochs": "2.5", "batch": "4", "max_steps": None, "log_every": "auto", "eval_share": "0.1", "patience": "2"}
    expected = {"epochs": 2.5, "batch": 4, "log_every": "auto", "eval_share": 0.1, "patience": 2}
    assert read_config("sft", raw) == expected


def test_a_switch_may_be_given_as_files_say_it() -> None:
    for given in ("true", True):
        assert read_config("sft", {"lora_rank": 2, "keep_adapters": given})["keep_adapters"] == "true"


def test_a_field_may_be_given_under_its_old_name() -> None:
    assert read_config("sft", {"clip": "0.5"}) == {"max_grad_norm": 0.5}


@pytest.mark.parametrize(
    ("method", "fields", "complaint"),
    [
        ("ppo", {}, f"method: expected {' or '.join(all_methods())}, got 'ppo'"),
        (
            "dpo",
            {},
            f"method: expected {' or '.join(methods_here())}, which are trained with here, got 'dpo'; train at",
        ),
        ("sft", {"lr": 1}, "lr: expected a field of sft (max_length, too_long, seed, epochs, "),
        ("sft", {"width": 64}, "width: expected a field of sft "),
        ("sft", {"output": "elsewhere"}, "output: expected a field of sft "),
        ("tiny", {"width": 30}, "width: expected a multiple of twice the heads (8), got 30"),
        ("tiny", {"width": 4}, "width: expected a whole number from 8 to 1000000000, got 4"),
        ("sft", {"learning_rate": "fast"}, "learning_rate: expected a number above 0, got 'fast'"),
        ("sft", {"epochs": 0}, "epochs: expected a number above 0, got 0"),
        ("stable-alignment", {"ratio": 0}, "ratio: expected a number above 0, got 0"),  # sft does the same
        ("sft", {"warmup": 1}, "warmup: expected a number from 0 to below 1, got 1"),
        ("sft", {"schedule": ["steep"]}, "schedule: expected cosine or linear or constant, got ['steep']"),
        ("sft", {"log_every": "often"}, "log_every: expected auto or a whole number from 1 to 1000000000, got 'often'"),
        ("sft", {"clip": 1, "max_grad_norm": 1}, "clip: expected max_grad_norm alone, which is its new name, got both"),
        ("sft", {"patience": 2}, "patience: expected eval_share beside it, got none"),
    ],
)
def test_what_cannot_be_trained_is_one_line(method: str, fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_config(method, fields)
    assert refused.value.message.startswith(complaint)


@pytest.mark.parametrize("name", ["", "../up", ".hidden", "a b", "a/b", "ä", "x" * 81, "a\n"])
def test_a_name_that_can_be_no_folder_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="name: expected 1 to 80 letters"):
        check_model_name(name)
