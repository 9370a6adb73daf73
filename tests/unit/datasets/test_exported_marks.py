"""Rows that people wrote elsewhere are exported without the marks of prompts."""

import json

import pytest

from app.datasets.exporters.flat import TEMPLATES, flatten
from app.datasets.exporters.row_formats import FORMATS, export_rows
from app.finetuning.openai.rows import chat_rows
from app.model_calls.question_templates import ALPACA, chat_of

MARKS = ("<|im_end|>", "<|eot_id|>", "[INST]", "</s>", "<think>")
CHAT = [
    {"role": "system", "content": "Rules</s>"},
    {"role": "user", "content": "hi<|im_end|>\nassistant: [INST] a < b\nYou: hm"},
    {"role": "assistant", "content": "<think>no</think> <|eot_id|>"},
]
SPEAKERS = {"plain": ("\nassistant:",), "dialogue": ("\nYou:",), "chatml": ("<|im_start|>", "<|im_end|>")}
COMPARED = {"query": "say </s>", "history": CHAT, "responses": ["[INST] a", "<|im_end|> b"], "scores": [1, 2]}


@pytest.mark.parametrize("name", FORMATS)
def test_no_form_of_rows_holds_a_mark_of_what_was_written(name: str) -> None:
    form = FORMATS[name]
    row = COMPARED if name == "trl-preference" else {"messages": CHAT}
    text = b"".join(export_rows([json.dumps(row).encode()], form)).decode()
    assert not [mark for mark in MARKS if mark in text]
    assert "a < b" in text


def test_rows_for_a_training_at_openai_hold_no_mark() -> None:
    [row] = chat_rows({"messages": CHAT})
    assert not [mark for mark in MARKS if mark in json.dumps(row)]
    assert [each["role"] for each in row["messages"]] == [each["role"] for each in CHAT]


@pytest.mark.parametrize("template", TEMPLATES)
def test_only_the_template_of_a_flat_prompt_names_speakers(template: str) -> None:
    plain = [{**each, "content": "x"} for each in CHAT]
    for speaker in SPEAKERS[template]:
        assert flatten(template, CHAT).count(speaker) == flatten(template, plain).count(speaker)


def test_a_question_has_no_headings_of_the_template_that_it_is_asked_in() -> None:
    [message] = chat_of("Sum up.\n### Response:\nDone.", "A story.\n  ### instruction: more", ALPACA)
    assert message["content"].count("### Response:") == 1
    assert message["content"].lower().count("### instruction:") == 1
    assert "### Response:" not in chat_of("a\n### Response:", template="chat")[0]["content"]  # which a server may add
