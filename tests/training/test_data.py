"""Dataset files: what is read, what is refused, what is kept aside, and in which order rows come."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.training.conftest import rows_of, write_rows
from training.comparisons import read_comparisons
from training.data import EpochOrder, TokenRows, read_conversations, split
from training.errors import TrainingRefused
from training.rendering import MarkedTokens


def test_a_json_array_is_read_like_lines_of_json(tmp_path: Path) -> None:
    rows = rows_of(3)
    array = tmp_path / "rows.json"
    array.write_text(json.dumps(rows, indent=2))
    lines = write_rows(tmp_path / "rows.jsonl", rows)
    content = [[(each.group, each.messages) for each in read_conversations(path)] for path in (array, lines)]
    assert content[0] == content[1]
    assert [each.group for each in read_conversations(array)][:3] == ["0:0", "0:1", "1:0"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "rows.jsonl: expected rows, got none"),
        ('{"messages": []}', r"line 1: expected {\"messages\": .*got {'messages': \[\]}"),
        ('\n{"messages": "hello"}', "line 2: expected"),
        ("{not json}", "line 1: expected JSON, got '{not json}'"),
        ("[" * 9_000, "expected JSON, got "),
        (
            '\n{"messages": [{"role": "user", "role": "x"}]}',
            "line 2: expected each field of an object once, got 'role' twice",
        ),
        (
            '[{"messages": [], "messages": []}]',
            "rows.jsonl: expected each field of an object once, got 'messages' twice",
        ),
        (
            '{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}',
            "message 1: expected a role .* and a content",
        ),
        ("[1]", "row 1: expected .* got 1"),
        ('{"messages": [{"role": "robot", "content": "x"}]}', "line 1, message 1: expected a role"),
        ('{"messages": [{"role": "user", "content": 7}]}', "line 1, message 1: expected a role .* and a content"),
        (
            '{"messages": [{"role": "assistant", "content": null, "tool_calls": [{}]}]}',
            "line 1, message 1: tool_calls: expected a chat without tool calls, got a call of a tool;",
        ),
        ('{"messages": [{"role": "user", "content": "x"}]}', "expected a move of the assistant to learn from"),
        ('{"messages": [{"role": "assistant", "content": "x"}]}', "expected a first message of the user or the system"),
    ],
)
def test_a_bad_row_is_named_with_its_place(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(TrainingRefused, match=complaint):
        read_conversations(path)


@pytest.mark.parametrize("array", [True, False])
def test_a_mark_before_the_text_and_the_forms_of_newer_chats_are_read(array: bool, tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "Be "}, {"type": "text", "text": "brief."}]
    chat = [
        {"role": "developer", "content": parts},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": [{"type": "text", "text": "hi"}], "weight": 2},
    ]
    compared = {"query": "why?", "responses": ["so", "no"], "scores": [1, 0], "history": chat}
    path = tmp_path / "rows"
    for row in ({"messages": chat}, compared):
        path.write_text(json.dumps([row] if array else row), encoding="utf-8-sig")
        read = read_conversations(path)[0].messages if "messages" in row else read_comparisons(path, 1)[0].history
        assert [(each["role"], each["content"], each.get("weight")) for each in read] == [
            ("system", "Be brief.", None),
            ("user", "hello", None),
            ("assistant", "hi", 2),
        ]


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(b"\xff\xd8\xff")
    with pytest.raises(TrainingRefused, match="expected a dataset file, got none"):
        read_conversations(tmp_path / "none.jsonl")
    with pytest.raises(TrainingRefused, match="expected UTF-8 text"):
        read_conversations(tmp_path / "picture")


def test_both_seats_of_a_match_are_kept_aside_together(data: Path) -> None:
    train, aside = split(read_conversations(data), 0.25, seed=1)
    matches = [{each.group.split(":")[0] for each in side} for side in (train, aside)]
    assert matches[0].isdisjoint(matches[1])
    assert len(aside) == 12
    assert len(train) == 36


def test_what_is_kept_aside_depends_on_the_seed_and_not_on_the_order_of_rows(data: Path) -> None:
    rows = read_conversations(data)
    aside = {each.group for each in split(rows, 0.25, seed=1)[1]}
    assert {each.group for each in split(rows[::-1], 0.25, seed=1)[1]} == aside
    assert {each.group for each in split(rows, 0.25, seed=2)[1]} != aside


def test_one_match_alone_cannot_be_split(data: Path) -> None:
    with pytest.raises(TrainingRefused, match="eval_share: expected rows of more matches, got 1"):
        split(read_conversations(data)[:2], 0.1, seed=0)


def test_an_epoch_has_every_row_once_in_an_order_of_its_own_that_comes_again() -> None:
    rows = TokenRows(
        tuple(MarkedTokens([1] * (3 + at % 7)) for at in range(103)), ("",) * 103, Counter(), tuple(range(103))
    )
    orders = []
    for epoch in (0, 1, 0):
        order = EpochOrder(rows, 8, seed=5)
        order.set_epoch(epoch)
        orders.append(list(order))
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(103))
    assert orders[0] == orders[2] != orders[1]
    lengths = [len({len(rows.sequences[at].ids) for at in orders[0][begin : begin + 8]}) for begin in range(0, 96, 8)]
    assert sum(lengths) / len(lengths) < 3  # of seven lengths there are
