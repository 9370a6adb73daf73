"""Rows with chats as other programs write them: read into ours, or refused by the field that cannot be read."""

import json
from typing import Any

import pytest

from app.core.errors import Invalid
from app.datasets.importers.training_rows import FORMATS

SYSTEM = {"role": "system", "content": "Be brief."}
USER, OTHER = ({"role": "user", "content": said} for said in ("Who takes the hats?", "And the book?"))
GOOD, BAD = ({"role": "assistant", "content": said} for said in ("We share them.", "Not you."))
HATS = ("human", USER["content"])
SHARE = ("gpt", GOOD["content"])
COMPLETED = {"prompt": [USER], "completion": [GOOD]}
CHOSEN = {"prompt": [USER], "chosen": [GOOD], "rejected": [BAD]}
PREFERRED = {"input": {"messages": [USER], "tools": []}, "preferred_output": [GOOD], "non_preferred_output": [BAD]}
PAIR = {"query": USER["content"], "responses": [GOOD["content"], BAD["content"]], "scores": [1, 0]}
ADD = {"instruction": USER["content"], "output": GOOD["content"]}


def messages(*each: dict[str, Any], **of_row: Any) -> dict[str, Any]:
    return {"messages": list(each), **of_row}


def shared(*said: tuple[str, Any], name: str = "conversations") -> dict[str, Any]:
    return {name: [{"from": speaker, "value": value} for speaker, value in said]}


@pytest.mark.parametrize(
    ("raw", "row"),
    [
        (shared(("system", "Be brief."), HATS, SHARE), messages(SYSTEM, USER, GOOD)),
        ({**shared(HATS, SHARE), "system": "Be brief.", "id": "a1"}, messages(SYSTEM, USER, GOOD)),
        (shared(HATS, SHARE, name="items"), messages(USER, GOOD)),
        *(
            (shared(("user", USER["content"]), (speaker, GOOD["content"])), messages(USER, GOOD))
            for speaker in ("assistant", "chatgpt", "bing", "bard")
        ),
        (shared(HATS, SHARE, ("human", OTHER["content"])), messages(USER, GOOD, OTHER)),
        (
            {
                "conversations": [
                    {"from": "human", "value": USER["content"], "weight": 0},
                    {"from": "gpt", "value": "", "weight": 0},
                    {"from": "human", "value": OTHER["content"], "weight": None},
                    {"from": "gpt", "value": GOOD["content"], "weight": 0.5},
                ]
            },
            messages(USER, {**GOOD, "content": "", "weight": 0}, OTHER, {**GOOD, "weight": 0.5}),
        ),
    ],
)
def test_a_sharegpt_conversation_is_read_by_its_speakers(raw: Any, row: dict[str, Any]) -> None:
    assert FORMATS["sharegpt"].read(raw) == row


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (shared(SHARE), "conversations[0].from: expected system or human, got 'gpt'"),
        (shared(HATS, ("gpt", "")), "conversations[1].value: expected a text that is not empty, got ''"),
        (shared(("human", None)), "conversations[0].value: expected a text, got None"),
        (shared(HATS, ("llama", "a")), "conversations[1].from: expected system or human or user or gpt or assistant"),
        (shared((["gpt"], "a")), "conversations[0].from: expected system or human or user or gpt or assistant"),  # type: ignore[arg-type]
        (shared(HATS), "messages: expected a message of the assistant, got none"),
        ({"items": [USER]}, "items[0]: expected an object with from and value, got {'role': 'user'"),
        ({"items": {}}, "items: expected a list of messages, got {}"),
        ({**shared(HATS, SHARE), "rejected": "a"}, "rejected: expected none beside a conversation that is learnt, got"),
        ({**shared(HATS, SHARE), "label": False}, "label: expected none beside a conversation that is learnt, got"),
        (shared(HATS, ("function_call", "{}"), SHARE), "conversations[1].from: expected a chat without tool calls"),
        (shared(HATS, ("observation", "2"), SHARE), "conversations[1].from: expected a chat without tool calls"),
        (shared(HATS, ("tool", "2"), SHARE), "conversations[1].from: expected a chat without tool calls"),
    ],
)
def test_a_sharegpt_conversation_that_cannot_be_learnt_is_refused(raw: Any, line: str) -> None:
    with pytest.raises(Invalid) as refused:
        FORMATS["sharegpt"].read(raw)
    assert refused.value.message.startswith(line)


@pytest.mark.parametrize(
    ("raw", "row"),
    [
        (COMPLETED, messages(USER, GOOD)),
        ({"prompt": [{**USER, "name": None}], "completion": [GOOD], "label": True}, messages(USER, GOOD)),
        (
            {"prompt": [SYSTEM, USER, BAD, OTHER], "completion": [GOOD, USER, GOOD], "reward": 0.5, "weight": 2},
            messages(
                *(SYSTEM, USER, {**BAD, "weight": 0}, OTHER),
                *({**GOOD, "reward": 0.5, "weight": 2}, USER, {**GOOD, "reward": 0.5, "weight": 2}),
            ),
        ),
        (
            {**COMPLETED, "group": "a:0", "role": "speaker"},
            messages(USER, {**GOOD, "player_role": "speaker"}, group="a:0"),
        ),
    ],
)
def test_a_completion_is_learnt_after_its_prompt(raw: Any, row: dict[str, Any]) -> None:
    assert FORMATS["trl-prompt-completion"].read(raw) == row


@pytest.mark.parametrize(
    ("row_format", "raw"),
    [
        ("trl-preference", CHOSEN),
        ("trl-preference", {"chosen": [USER, GOOD], "rejected": [USER, BAD], "score_chosen": 8.0}),
        ("trl-preference", {"prompt": USER["content"], "chosen": [USER, GOOD], "rejected": [USER, BAD]}),
        ("trl-preference", {"prompt": [USER], "chosen": [USER, GOOD], "rejected": [USER, BAD]}),
        ("openai-preference", PREFERRED),
        ("openai-preference", {**PREFERRED, "preferred_output": [{**GOOD, "weight": 1, "tool_calls": None}]}),
    ],
)
def test_a_preferred_answer_is_compared_with_the_other(row_format: str, raw: Any) -> None:
    assert FORMATS[row_format].read(raw) == PAIR


def test_what_was_said_before_the_query_is_its_history() -> None:
    history = [SYSTEM, OTHER, BAD]
    named = {**CHOSEN, "prompt": [*history, USER]}
    whole = {"chosen": [*history, USER, GOOD], "rejected": [*history, USER, BAD]}
    for row_format, raw in (
        ("trl-preference", named),
        ("trl-preference", whole),
        ("openai-preference", {**PREFERRED, "input": {"messages": [*history, USER]}}),
    ):
        assert FORMATS[row_format].read(raw) == {**PAIR, "history": history}


def test_an_instruction_may_come_with_words_of_the_system() -> None:
    read = FORMATS["alpaca"].read
    assert read({**ADD, "input": None, "system": "Be brief.", "history": []}) == messages(SYSTEM, USER, GOOD)
    with pytest.raises(Invalid, match=r"^history: expected none beside an instruction, got "):
        read({**ADD, "history": [["a", "b"]]})


@pytest.mark.parametrize(
    ("row_format", "raw", "line"),
    [
        ("trl-prompt-completion", {"prompt": "The sky", "completion": " is"}, "prompt: expected a list of messages"),
        ("trl-prompt-completion", {**COMPLETED, "label": False}, "label: expected true, as every completion becomes"),
        ("trl-prompt-completion", {**COMPLETED, "completion": [USER]}, "messages: expected a message of the assistant"),
        (
            "trl-prompt-completion",
            {**COMPLETED, "completion": [{**GOOD, "content": " "}]},
            "completion[0].content: expected a text that is not empty, got ' '",
        ),
        ("trl-preference", {"chosen": "a", "rejected": "b"}, "chosen: expected a list of messages, got 'a'"),
        (
            "trl-preference",
            {**CHOSEN, "rejected": [GOOD]},
            "rejected: expected a different answer from “chosen”, got the",
        ),
        ("trl-preference", {**CHOSEN, "rejected": [OTHER]}, "rejected: expected the assistant’s answer to the user at"),
        (
            "trl-preference",
            {**CHOSEN, "chosen": [{**GOOD, "content": ""}]},
            "chosen: expected a text that is not empty",
        ),
        ("trl-preference", {**CHOSEN, "prompt": [BAD, USER]}, "history[0].role: expected system or user, got 'assis"),
        ("trl-preference", {**CHOSEN, "prompt": "Which?"}, "prompt: expected a list of messages, got 'Which?'"),
        (
            "trl-preference",
            {"chosen": [USER, GOOD], "rejected": [OTHER, BAD]},
            "rejected: expected the turns of “chosen” up to the last, got others",
        ),
        ("openai-preference", {**PREFERRED, "input": "a"}, "input: expected an object with messages, got 'a'"),
        ("openai-preference", {**PREFERRED, "input": {}}, "input.messages: expected a list of messages, got None"),
        (
            "openai-preference",
            {**PREFERRED, "preferred_output": [BAD]},
            "non_preferred_output: expected a different answer from “preferred_output”, got the same",
        ),
    ],
)
def test_a_row_from_which_nothing_can_be_learnt_is_refused(row_format: str, raw: Any, line: str) -> None:
    with pytest.raises(Invalid) as refused:
        FORMATS[row_format].read(raw)
    assert refused.value.message.startswith(line)


# ---- Rows of another format ---------------------------------------------------------


@pytest.mark.parametrize(
    ("row_format", "raw", "got"),
    [
        ("openai", shared(HATS, SHARE), "{messages}, got {conversations}; choose the format sharegpt"),
        ("openai", COMPLETED, "{messages}, got {prompt, completion}; choose the format trl-prompt-completion"),
        ("alpaca", messages(USER, GOOD), "{instruction, output}, got {messages}; choose the format parlor or openai"),
        ("openai", CHOSEN, "{messages}, got {prompt, chosen, rejected}; choose the format hh or trl-preference"),
        ("sharegpt", ADD, "{conversations} or {items}, got {instruction, output}; choose the format alpaca"),
        ("alpaca", {"instruction": "a", "response": "b"}, "{instruction, output}, got {instruction, response}"),
        ("openai", {"x\n": 1}, r"{messages}, got {x\n}"),
        ("openai", {}, "{messages}, got {}"),
    ],
)
def test_a_row_of_another_format_says_what_it_has_and_where_it_fits(row_format: str, raw: Any, got: str) -> None:
    with pytest.raises(Invalid) as refused:
        FORMATS[row_format].read(raw)
    assert refused.value.message == f"expected an object with {got}"


@pytest.mark.parametrize("row_format", FORMATS)
def test_the_example_of_each_format_is_of_that_format(row_format: str) -> None:
    assert FORMATS[row_format].fits(json.loads(FORMATS[row_format].example))


# ---- Tool calls ---------------------------------------------------------------------

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("message", "field", "got"),
    [
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, "tool_calls", "a call of a tool"),
        ({"role": "assistant", "content": "", "function_call": CALL["function"]}, "function_call", "a call of a tool"),
        ({"role": "tool", "tool_call_id": "c1", "content": "2"}, "role", "tool"),
        ({"role": "function", "name": "look", "content": "2"}, "role", "function"),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "c1"}]}, "content", "tool_use"),
    ],
)
def test_a_row_with_tool_calls_is_refused_by_that_name(message: dict[str, Any], field: str, got: str) -> None:
    calls = [{**USER, "tool_calls": None, "function_call": None}, message, {**GOOD, "tool_calls": []}]
    for row_format, name, row in (
        ("parlor", "messages", {"messages": calls}),
        ("openai", "messages", {"messages": calls, "tools": []}),
        ("trl-prompt-completion", "prompt", {"prompt": calls, "completion": [GOOD]}),
        ("trl-preference", "chosen", {"chosen": calls, "rejected": [USER, BAD]}),
        ("openai-preference", "input.messages", {**PREFERRED, "input": {"messages": calls}}),
    ):
        with pytest.raises(Invalid) as refused:
            FORMATS[row_format].read(row)
        assert refused.value.message == (
            f"{name}[1].{field}: expected a chat without tool calls, which no row here can hold, got {got}"
        )
    assert FORMATS["openai"].read({"messages": [calls[0], calls[2]]}) == messages(USER, GOOD)
