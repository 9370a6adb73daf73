"""Training renders what play sends: the same prompts, for templates that think, that strip history, and for others."""

from typing import Any

import pytest

from tests.checkpoints import CHANNELS, CHATML, OPENS, STRIPS, channels_tokenizer, thinking_tokenizer
from training.rendering import MarkedTokens, Renderer, marked_text

HEAD = "<|im_start|>user\nbooks<|im_end|>\n<|im_start|>assistant\n"
CLOSES = STRIPS.replace(
    "<think></think>{% endif %}{% endif %}", "<think></think>{% else %}<think>{% endif %}{% endif %}"
)
# As DeepSeek-V3.1's: a closing mark alone stands before answers of which no reasoning was wanted.
CLOSING_ALONE = CHATML.removesuffix("{% endif %}") + (
    "{% if thinking %}<think>{% else %}</think>{% endif %}{% endif %}"
)
CLOSING_ALONE = CLOSING_ALONE.replace(
    "{{ message.role }}\n", "{{ message.role }}\n{% if message.role == 'assistant' %}</think>{% endif %}"
)
TEMPLATES: dict[str, tuple[str, dict[str, Any]]] = {
    "does not reason": (CHATML, {}),
    "strips history": (STRIPS, {}),
    "is told not to": (STRIPS, {"enable_thinking": False}),
    "opens the block": (OPENS, {}),
    "opens and strips": (CLOSES, {}),
    "closing mark alone": (CLOSING_ALONE, {}),
    "opens, and closes in answers": (CLOSING_ALONE, {"thinking": True}),
}


def chat(**of_last: Any) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "books"},
        {"role": "assistant", "content": "no, 2 hats"},
        {"role": "user", "content": "balls"},
        {"role": "assistant", "content": "want balls", **of_last},
    ]


def rendered(
    template: str, arguments: dict[str, Any], messages: list[dict[str, Any]]
) -> tuple[Any, list[MarkedTokens]]:
    tokenizer = thinking_tokenizer(template)
    return tokenizer, Renderer(tokenizer, 512, template_arguments=arguments).render(messages)[0]


@pytest.mark.parametrize("name", TEMPLATES)
def test_each_turn_is_trained_after_the_very_tokens_that_play_sends(name: str) -> None:
    template, arguments = TEMPLATES[name]
    messages = chat()
    tokenizer, sequences = rendered(template, arguments, messages)
    play = Renderer(tokenizer, 512, template_arguments=arguments)
    spans = [(sequence, span) for sequence in sequences for span in sequence.spans]
    assert len(spans) == 2
    for at, (sequence, span) in zip((1, 3), spans, strict=True):
        prompt = play.prompt(messages[:at], 20)
        assert sequence.ids[: len(prompt)] == prompt
        assert tokenizer.decode(sequence.ids[span.begin : span.end]) == f"{messages[at]['content']}<|im_end|>"
        between = tokenizer.decode(sequence.ids[len(prompt) : span.begin])
        assert between.strip() in ("", "</think>", "<think></think>")


@pytest.mark.parametrize("name", TEMPLATES)
def test_reasoning_of_a_row_is_learnt_with_its_move_and_is_in_no_later_prompt(name: str) -> None:
    template, arguments = TEMPLATES[name]
    messages = chat(reasoning="2 I want")
    messages[1]["reasoning"] = "hats </think> I"
    tokenizer, sequences = rendered(template, arguments, messages)
    learnt = [
        tokenizer.decode(sequence.ids[span.begin : span.end]) for sequence in sequences for span in sequence.spans
    ]
    if name in ("is told not to", "closing mark alone"):  # the prompt says that there is none
        assert learnt == ["no, 2 hats<|im_end|>", "want balls<|im_end|>"]
        return
    thoughts = [each.rpartition("</think>")[0].removeprefix("<think>").strip() for each in learnt]
    assert thoughts == ["hats < /think> I", "2 I want"]  # a mark in it does not end it
    assert [each.rpartition("</think>")[2].strip() for each in learnt] == [
        "no, 2 hats<|im_end|>",
        "want balls<|im_end|>",
    ]
    play = Renderer(tokenizer, 512, template_arguments=arguments)
    [*_, last] = sequences
    prompt = play.prompt(messages[:3], 20)
    assert last.ids[: len(prompt)] == prompt
    assert last.spans[-1].begin == len(prompt)


def test_printed_what_is_learnt_of_a_model_that_thinks() -> None:
    tokenizer, [first, _] = rendered(*TEMPLATES["strips history"], chat())
    assert marked_text(first, tokenizer) == f"{HEAD}<think></think>[no, 2 hats<|im_end|>]"
    tokenizer, [first, last] = rendered(*TEMPLATES["opens the block"], chat())
    assert marked_text(first, tokenizer) == f"{HEAD}<think>\n\n</think>\n\n[no, 2 hats<|im_end|>]"
    assert marked_text(last, tokenizer).startswith(f"{HEAD}no, 2 hats<|im_end|>\n<|im_start|>user\nballs")
    tokenizer, [first, _] = rendered(
        *TEMPLATES["strips history"], [*chat()[:1], {**chat()[1], "reasoning": "2"}, *chat()[2:]]
    )
    assert marked_text(first, tokenizer) == f"{HEAD}[<think>2</think>no, 2 hats<|im_end|>]"
    tokenizer, [one] = rendered(CHATML, {}, chat())
    assert marked_text(one, tokenizer).count("[") == 2


ANALYSIS, FINAL = "<|channel|>analysis<|message|>", "<|channel|>final<|message|>"
OPENS_ANALYSIS = CHANNELS.replace("<|start|>assistant{% endif %}", f"<|start|>assistant{ANALYSIS}{{% endif %}}")


@pytest.mark.parametrize(
    ("template", "before", "thought"),
    [
        (CHANNELS, FINAL, f"{ANALYSIS}2 I want<|end|><|start|>assistant{FINAL}"),
        (OPENS_ANALYSIS, f"<|end|><|start|>assistant{FINAL}", f"2 I want<|end|><|start|>assistant{FINAL}"),
    ],
    ids=["the model opens", "the prompt opens"],
)
def test_messages_in_channels_are_trained_as_they_are_played(template: str, before: str, thought: str) -> None:
    tokenizer = channels_tokenizer(template)
    renderer = Renderer(tokenizer, 512)
    assert renderer.lets_reason
    for reasoning, unlearnt, learnt in ((None, before, ""), ("2 I want", "", thought)):
        messages = chat(**({"reasoning": reasoning} if reasoning else {}))
        messages[1]["reasoning"] = "hats"
        sequences, _ = renderer.render(messages)
        first, last = sequences  # a prompt has earlier answers without their reasoning
        assert tokenizer.decode(last.ids).count("hats") == 1  # in the answer
        prompt = renderer.prompt(messages[:3], 20)
        assert last.ids[: len(prompt)] == prompt
        [span] = last.spans
        assert tokenizer.decode(last.ids[len(prompt) : span.begin]) == unlearnt
        assert tokenizer.decode(last.ids[span.begin : span.end]) == f"{learnt}want balls<|return|>"
        assert "hats<|end|><|start|>assistant" in tokenizer.decode(first.ids)


def test_what_a_model_said_itself_in_channels_is_learnt_as_it_said_it() -> None:
    tokenizer = channels_tokenizer()
    said = [f"{ANALYSIS}I<|end|><|start|>assistant{FINAL}{text}<|return|>" for text in ("no, 2 hats", "want balls")]
    ids = [tokenizer(each)["input_ids"] for each in said]
    sequences, _ = Renderer(tokenizer, 512).render(chat(), ids)
    assert [sequence.ids[span.begin : span.end] for sequence in sequences for span in sequence.spans] == ids


def test_what_a_model_said_itself_is_learnt_as_it_said_it() -> None:
    tokenizer = thinking_tokenizer(STRIPS)
    ids = [tokenizer(f"<think>I</think>{text}<|im_end|>")["input_ids"] for text in ("no, 2 hats", "want balls")]
    sequences, _ = Renderer(tokenizer, 512).render(chat(), ids)
    assert [sequence.ids[span.begin : span.end] for sequence in sequences for span in sequence.spans] == ids


def test_whether_a_template_lets_a_model_reason_depends_on_its_arguments() -> None:
    found = {
        name: Renderer(thinking_tokenizer(template), 512, template_arguments=arguments).lets_reason
        for name, (template, arguments) in TEMPLATES.items()
    }
    assert [name for name, lets in found.items() if not lets] == [
        "does not reason",
        "is told not to",
        "closing mark alone",
    ]
