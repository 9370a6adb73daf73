"""Published rows are read into ours, and what cannot be learnt from is refused by its field."""

import gzip
import io
import json
from typing import Any

import pytest

from app.core.errors import Invalid
from app.datasets.importers.training_rows import FORMATS, line_of
from app.datasets.row_files import RawRow, read_rows

USER, ASSISTANT = {"role": "user", "content": "Which animal purrs?"}, {"role": "assistant", "content": "Ask another."}
MOVE = {"query": "Which animal purrs?", "target": "Ask another."}
RATED = {"query": "q", "responses": ["good", "bad"], "scores": [6, 1.5]}
DIALOGUE = "\n\nHuman: Hello\n\nAssistant: Hi there.\n\nHuman: Why?\n\nAssistant:"


def messages(*each: dict[str, Any], **of_row: Any) -> dict[str, Any]:
    return {"messages": list(each), **of_row}


@pytest.mark.parametrize(
    ("row_format", "raw", "row"),
    [
        ("spag-rows", MOVE, messages(USER, ASSISTANT)),
        (
            "spag-rows",
            {**MOVE, "reward": 0.4, "weight": 1.2, "role": "defender", "type": "sample", "query_id": 7, "x": 1},
            messages(USER, {**ASSISTANT, "reward": 0.4, "weight": 1.2, "player_role": "defender"}, group="7"),
        ),
        (
            "spag-rows",
            {"prompt": USER["content"], "answer": ASSISTANT["content"], "type": "sft", "weight": 1, "reward": None},
            messages(USER, {**ASSISTANT, "weight": 1}, type="sft"),
        ),
        (
            "spag-rows",
            {"text": ["Which animal purrs?<sep>Cats.", "Which animal purrs?<sep>Ask another."], "scores": [0, 3]},
            messages(USER, ASSISTANT),
        ),
        ("stable-alignment", {**RATED, "models": ["a", "b"], "id": 4}, {**RATED, "models": ["a", "b"]}),
        (
            "hh",
            {"chosen": f"{DIALOGUE} Because.", "rejected": f"{DIALOGUE} No.\n\n\nNever."},
            {
                "query": "Why?",
                "responses": ["Because.", "No.\n\n\nNever."],
                "scores": [1, 0],
                "history": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi there."}],
            },
        ),
        (
            "hh",
            {
                "chosen": "\n\nHuman: One\n\nHuman: Two\n\nAssistant: Yes",
                "rejected": "\n\nHuman: One\n\nHuman: Two\n\nAssistant: No",
            },
            {"query": "One\n\nTwo", "responses": ["Yes", "No"], "scores": [1, 0]},
        ),
        (
            "alpaca",
            {"instruction": "Add them.", "input": "1, 2", "output": "3", "text": "Below is an instruction"},
            messages({"role": "user", "content": "Add them.\n\n1, 2"}, {"role": "assistant", "content": "3"}),
        ),
        ("alpaca", {"instruction": USER["content"], "output": ASSISTANT["content"]}, messages(USER, ASSISTANT)),
        (
            "openai",
            messages({**USER, "name": "x"}, {**ASSISTANT, "weight": 0}, USER, {**ASSISTANT, "weight": 1}, tools=[]),
            messages(USER, {**ASSISTANT, "weight": 0}, USER, {**ASSISTANT, "weight": 1}),
        ),
        ("parlor", messages(USER, ASSISTANT, group="a:0", other=1), messages(USER, ASSISTANT, group="a:0", other=1)),
        (
            "parlor",
            messages(USER, {**ASSISTANT, "weight": 0, "reward": 0.0}, type="sample"),
            messages(USER, {**ASSISTANT, "weight": 0, "reward": 0.0}, type="sample"),
        ),
        ("parlor", {**RATED, "history": [USER, ASSISTANT]}, {**RATED, "history": [USER, ASSISTANT]}),
    ],
)  # fmt: skip
def test_a_row_of_each_format_becomes_a_row_of_ours(row_format: str, raw: Any, row: dict[str, Any]) -> None:
    assert FORMATS[row_format].read(json.loads(json.dumps(raw))) == row


@pytest.mark.parametrize(
    ("row_format", "raw", "line"),
    [
        ("spag-rows", [1], "expected an object with {query, target} or {query, answer} or {prompt, target} or"),
        ("spag-rows", {"query": "q"}, "expected an object with {query, target} or"),
        ("spag-rows", {**MOVE, "target": None}, "target: expected a text that is not empty, got None"),
        ("spag-rows", {**MOVE, "reward": "much"}, "messages[1].reward: expected a number from -1000000 to"),
        ("spag-rows", {**MOVE, "reward": -1e20}, "messages[1].reward: expected a number from -1000000 to"),
        ("spag-rows", {**MOVE, "weight": -1}, "messages[1].weight: expected a number from 0 to 1000000, got -1"),
        ("spag-rows", {**MOVE, "weight": 0}, "messages: expected a message of the assistant to learn, with a weight"),
        ("spag-rows", {"text": ["no mark"], "scores": [1]}, "text: expected <sep> between query and response, got"),
        ("spag-rows", {"text": ["a<sep>b"], "scores": []}, "scores: expected 1 numbers, got []"),
        ("stable-alignment", {**RATED, "scores": [6]}, "scores: expected 2 numbers, got [6]"),
        ("stable-alignment", {**RATED, "scores": [6, 8]}, "scores[1]: expected a number from 0 to 7, got 8"),
        ("stable-alignment", {**RATED, "scores": [-1, 7]}, "scores[0]: expected a number from 0 to 7, got -1"),
        ("stable-alignment", {**RATED, "responses": ["a", ""]}, "responses[1]: expected a text that is not empty"),
        ("hh", {"chosen": "Hello"}, "expected an object with {chosen, rejected}, got {chosen}"),
        ("hh", {"chosen": "Hello", "rejected": ""}, "chosen: expected turns after “Human:” and “Assistant:”"),
        ("hh", {"chosen": [], "rejected": []}, "chosen: expected a text of turns, got a list of messages; choose the"),
        ("hh", {"chosen": f"{DIALOGUE} A", "rejected": "\n\nHuman: B\n\nAssistant: C"}, "rejected: expected the turns"),
        ("hh", {"chosen": f"{DIALOGUE} A", "rejected": f"{DIALOGUE} A"}, "rejected: expected a different answer from"),
        ("alpaca", {"instruction": "Say nothing.", "output": ""}, "output: expected a text that is not empty, got ''"),
        ("openai", messages(USER, {**ASSISTANT, "weight": 0.5}), "messages[1].weight: expected 0 or 1, got 0.5"),
        ("openai", messages({"role": "bot", "content": ""}), "messages[0].role: expected system or user or assistant"),
        ("openai", messages(USER, {"role": "assistant", "content": None}), "messages[1].content: expected a text, got"),
        ("parlor", MOVE, "expected an object with {messages} or {query, responses, scores}, got {query, target}; ch"),
        ("parlor", messages(USER), "messages: expected a message of the assistant, got none"),
        ("parlor", messages(USER, ASSISTANT, type="other"), "type: expected sample or sft, or none, got 'other'"),
        ("parlor", messages(ASSISTANT), "messages[0].role: expected system or user, got 'assistant'"),
        ("parlor", messages(USER, ASSISTANT, tokenizer="x"), "messages[1].ids: expected the tokens of the message"),
        ("parlor", messages(USER, ASSISTANT, group="x\0:0"), "group: expected at most 200 characters that can be"),
        ("parlor", messages(USER, {**ASSISTANT, "player_role": "a\0"}), "messages[1].player_role: expected at most"),
        ("parlor", {**RATED, "scores": [1, 10**400]}, "scores[1]: expected a number from 0 on, got 1000"),
        ("parlor", {**RATED, "history": [ASSISTANT]}, "history[0].role: expected system or user, got 'assistant'"),
    ],
)  # fmt: skip
def test_a_row_that_is_none_is_refused_by_its_field(row_format: str, raw: Any, line: str) -> None:
    with pytest.raises(Invalid) as refused:
        FORMATS[row_format].read(raw)
    assert refused.value.message.startswith(line)


@pytest.mark.parametrize("content", ["\ud83d", float("nan"), float("-inf")])
def test_what_no_file_can_hold_is_refused(content: Any) -> None:
    with pytest.raises(Invalid, match=r"expected (Unicode text|finite numbers)"):
        line_of({"content": content})


# ---- Files ------------------------------------------------------------------------


def read(content: bytes, most: int | None = None) -> list[RawRow]:
    return list(read_rows(io.BytesIO(content), "rows", most))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_lines_and_arrays_hold_the_same_rows(pack: Any, mark: bytes) -> None:
    rows = [{"text": "line\u2028separator"}, {"text": "é"}]
    lines = "\n\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()
    for content in (lines, json.dumps(rows, indent=2).encode()):
        assert [each.value for each in read(pack(mark + content))] == rows
    assert [each.number for each in read(pack(mark + lines))] == [1, 3]
    assert read(b"") == []


def test_a_bad_line_is_an_error_of_its_row_and_a_broken_array_one_of_the_file() -> None:
    lines = read(b'{"a": 1}\nnonsense\n\xff\n[[[\n{"b": 2}')
    assert [each.number for each in lines if each.error] == [2, 3, 4]
    assert [each.error.message for each in lines if each.error][:2] == [
        "expected JSON, got invalid JSON at column 1", "expected JSON, got bytes that are not UTF-8",
    ]  # fmt: skip
    [digits] = read(b'{"a": 1' + b"0" * 5000 + b"}")
    assert digits.error is not None
    assert digits.error.message == "expected JSON, got a number with thousands of digits"
    with pytest.raises(Invalid, match="rows, row 1: expected an object, got a number with thousands of digits"):
        read(b"[1" + b"0" * 5000 + b"]")
    with pytest.raises(Invalid, match="rows, row 2: expected an object, got the end of the file"):
        read(b'[{"a": 1}, {"b": ')


@pytest.mark.parametrize("array", [True, False])
def test_a_row_in_which_an_object_names_a_field_twice_is_an_error_of_that_row(array: bool) -> None:
    rows = ['{"a": 1}', '{"a": [{"b": 1, "c": 2, "b": 3}]}', '{"a": 2, "a": 2}', '{"a": 3}']
    content = f"[{', '.join(rows)}]" if array else "\n".join(rows)
    found = read(content.encode())
    assert [each.value for each in found] == [{"a": 1}, None, None, {"a": 3}]
    assert [each.error.message for each in found if each.error] == [
        f"expected each field of an object once, got '{name}' twice" for name in "ba"
    ]


@pytest.mark.parametrize("row_format", ["parlor", "openai"])
def test_messages_of_newer_chats_are_read_as_those_that_trainings_know(row_format: str) -> None:
    parts = [{"type": "text", "text": "Be "}, {"type": "text", "text": "brief."}]
    chat = messages(
        {"role": "developer", "content": parts}, USER, {**ASSISTANT, "content": [{"type": "text", "text": "A"}]}
    )
    plain = messages({"role": "system", "content": "Be brief."}, USER, {**ASSISTANT, "content": "A"})
    assert FORMATS[row_format].read(chat) == plain
    for bad in ([], [{"type": "image_url", "image_url": {}}], [{"type": "text"}], [{"type": "text", "text": "x"}, "y"]):
        with pytest.raises(Invalid, match=r"messages\[0\].content: expected a text, got "):
            FORMATS[row_format].read(messages({"role": "user", "content": bad}, ASSISTANT))
    compared = FORMATS["parlor"].read({**RATED, "history": chat["messages"]})
    assert compared["history"] == plain["messages"]


def test_a_file_that_is_too_large_when_unpacked_or_damaged_is_refused() -> None:
    packed = gzip.compress(b'{"a": 1}\n' * 100_000)
    assert len(read(packed, 1_000_000)) == 100_000
    with pytest.raises(Invalid, match=r"expected at most 0.8 MB, got a larger file; `flask dataset import` takes"):
        read(packed, 800_000)
    with pytest.raises(Invalid, match="rows: expected a whole file, got a damaged gzip file"):
        read(packed[:-20])
