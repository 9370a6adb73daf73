"""What `python -m scripts.make_base` teaches candidates, and which contexts it keeps apart."""

import random
from pathlib import Path
from typing import Any

import pytest

from app.games.negotiation.contexts import read_contexts
from app.games.negotiation.material import Contexts, pieces_of
from app.rounds.held_out import is_held_out
from scripts.make_base import hidden, stubborn, write_contexts


@pytest.fixture
def row() -> dict[str, Any]:
    said = [
        ("system", "2 books at 1, 1 hats at 2, 3 balls at 2. for me"),
        ("user", "begin"),
        ("assistant", "[message] how about I take all the balls, and you get both books and the hat?"),
        ("user", "[message] I take the hat and one ball"),
        ("assistant", "[message] Deal: you take the hat and one ball, and I take both books and two balls."),
        ("user", "[propose] hidden"),
        ("assistant", "[propose] (2 books, 0 hats, 2 balls)"),
    ]
    return {"messages": [{"role": role, "content": content, "ids": [1]} for role, content in said], "tokenizer": "x"}


def test_a_stubborn_row_proposes_its_first_demand_in_the_words_alone(row: dict[str, Any]) -> None:
    edited = stubborn(row, random.Random(1), share=1.0)
    assert edited["messages"][-1] == {"role": "assistant", "content": "[propose] (0 books, 0 hats, 3 balls)"}
    assert [list(each) for each in edited["messages"]] == [["role", "content"]] * 7
    assert list(edited) == ["messages"]


def test_other_rows_are_left_as_they_were_said(row: dict[str, Any]) -> None:
    kept = stubborn(row, random.Random(1), share=0.0)
    assert kept["messages"][-1]["content"] == "[propose] (2 books, 0 hats, 2 balls)"


def test_hidden_proposals_are_not_learned(row: dict[str, Any]) -> None:
    assert "weight" not in hidden(row, random.Random(1), shown=1.0)["messages"][-1]
    edited = hidden(row, random.Random(1), shown=0.0)
    assert [each.get("weight") for each in edited["messages"]] == [None] * 6 + [0]


def test_contexts_of_development_and_of_test_are_held_out_and_have_nothing_in_common(tmp_path: Path) -> None:
    write_contexts(tmp_path)
    files = {path.stem: pieces_of(read_contexts(path.read_text().splitlines())) for path in tmp_path.iterdir()}
    assert {name: len(files[name]) for name in ("development", "test")} == {"development": 267, "test": 259}
    kind = Contexts()
    keys = {name: {str(kind.held_out_key(piece)) for piece in pieces} for name, pieces in files.items()}
    assert not keys["development"] & keys["test"]
    for name in ("development", "test"):
        held = [piece for piece in files[f"campaign-{name}"] if is_held_out(kind, piece)]
        assert held == files[name]
        assert len(files[f"campaign-{name}"]) > 5_000
