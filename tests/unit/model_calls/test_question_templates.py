"""Questions become chats, plain or in the template in which Alpaca was trained."""

from typing import Any

import pytest

from app.core.errors import Invalid
from app.inference.requests import Sampling
from app.model_calls.question_templates import ALPACA, PUBLISHED, SAMPLING_PRESETS, chat_of, read_question


def test_the_alpaca_template_is_that_of_the_models_that_were_trained_in_it() -> None:
    (message,) = chat_of("Name a {fruit}.", template=ALPACA)
    assert message == {
        "role": "user",
        "content": "Below is an instruction that describes a task. Write a response that appropriately completes the "
        "request.\n\n### Instruction:\nName a {fruit}.\n\n### Response:",
    }
    system, message = chat_of("Sum up.", "A long story.", ALPACA, "Be brief.")
    assert system == {"role": "system", "content": "Be brief."}
    assert message["content"] == (
        "Below is an instruction that describes a task, paired with an input that provides further context. Write a "
        "response that appropriately completes the request.\n\n### Instruction:\nSum up.\n\n### Input:\nA long story."
        "\n\n### Response:"
    )


def test_a_plain_chat_has_the_input_below_the_question() -> None:
    assert chat_of("Sum up.", "A story.") == [{"role": "user", "content": "Sum up.\n\nA story."}]


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ("Why?", ("Why?", "")),
        ({"instruction": "Sum up.", "input": "A story.", "output": "x"}, ("Sum up.", "A story.")),
        ({"query": "Why?", "input": None}, ("Why?", "")),
        ({"question": "Why?", "responses": []}, ("Why?", "")),
    ],
)
def test_questions_are_read_under_their_usual_names(raw: Any, found: tuple[str, str]) -> None:
    assert read_question(raw) == found


@pytest.mark.parametrize("raw", [7, {}, {"query": " "}, {"query": "Why?", "input": 3}, {"question": ["Why?"]}, ""])
def test_what_is_no_question_is_refused(raw: Any) -> None:
    with pytest.raises(Invalid):
        read_question(raw)


def test_the_published_sampling_is_that_of_the_published_inference() -> None:
    found = SAMPLING_PRESETS[PUBLISHED]
    assert (found.temperature, found.top_p, found.max_tokens, found.no_repeat_ngram) == (0.7, 0.9, 256, 2)
    assert Sampling(1, None, None).no_repeat_ngram is None
