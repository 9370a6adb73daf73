"""What each form of export gives back when it is imported: what it carries comes back, and nothing else changes."""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from app.core.errors import Invalid
from app.datasets.export import FORMAT_NAMES, export_pieces
from app.datasets.exporters.flat import TEMPLATES, flatten
from app.datasets.exporters.row_formats import FORMATS as EXPORTS
from app.datasets.importers.training_rows import FORMATS as IMPORTS
from app.datasets.importers.training_rows import line_of
from app.datasets.row_files import read_rows
from app.finetuning.openai.rows import chat_rows
from app.finetuning.vendors.rows import vendor_rows
from training.methods.base import COMPARISONS, CONVERSATIONS

Row = dict[str, Any]
ODD = 'Größe 👒 帽子\u2028next\u0085 line\r\n\ttab \\ " \x01'


def system(said: str) -> Row:
    return {"role": "system", "content": said}


def user(said: str) -> Row:
    return {"role": "user", "content": said}


def move(said: str, **more: Any) -> Row:
    return {"role": "assistant", "content": said, **more}


CHATS: Mapping[str, list[Row]] = {
    "with and without a system prompt": [
        {"messages": [system("Be fair."), user("Split two hats?"), move("One each."), user("Sure?"), move("Yes.")]},
        {"messages": [user("And a book?"), move("You take it.")]},
    ],
    "with weights of 0 and 1": [
        {"messages": [user("a"), move("b", weight=0), user("c"), move("d", weight=1), user("e"), move("f", weight=0)]},
        {"messages": [user("nothing to learn"), move("here", weight=0)]},
    ],
    "with other weights": [{"messages": [user("a"), move("b"), user("c"), move("d", weight=0.25)]}],
    "with rewards": [{"messages": [user("a"), move("b", reward=0.5, weight=1), user("c"), move("d", reward=0)]}],
    "with rewards below 0": [
        {"messages": [user("a"), move("b", reward=0.5)]},
        {"messages": [user("a"), move("c", reward=-1)]},
    ],
    "of episodes": [
        {
            "group": f"match:{seat}",
            "game": "taboo",
            "policy": "abc",
            "messages": [
                user("the rules"), move("a hint", reward=0.4, weight=1, player_role=role), user("a guess"),
                move("another", reward=0.6, weight=1, player_role=role),
            ],
        }
        for seat, role in enumerate(("attacker", "defender"))
    ],
    "of supervised learning among rewards": [
        {"type": "sft", "messages": [user("a"), move("b")]},
        {"type": "sample", "messages": [user("a"), move("c", reward=1)]},
    ],
    "that end with the user or the system": [
        {"messages": [user("a"), move("b"), user("c")]},
        {"messages": [user("a"), move("b"), user("c"), move("d"), system("e"), user("f")]},
    ],
    "of odd characters": [{"messages": [system(ODD), user(ODD), move(ODD)]}],
    "that are very long": [{"messages": [user("hat " * 400_000), move("帽" * 200_000)]}],
    "with empty messages": [
        {"messages": [user(""), move("a"), user(" "), move(""), user("b"), move("c")]},
        {"messages": [user("a"), move("")]},
    ],
    "of one speaker after the other": [{"messages": [user("a"), user("b"), move("c"), move("d")]}],
}  # fmt: skip
COMPARED: Mapping[str, list[Row]] = {
    "pairs": [{"query": "Split two hats?", "responses": ["One each.", "All mine."], "scores": [1, 0]}],
    "rated in several ways": [
        {"query": "a", "responses": ["low", "best", "also best", "mid"], "scores": [0, 7, 7, 3.5], "models": ["x"] * 4},
        {"query": "all alike", "responses": ["a", "b"], "scores": [2, 2]},
        {"query": "the same words", "responses": ["a", "a", "b"], "scores": [5, 4, 3], "group": "q"},
    ],
    "after a history": [
        {
            "query": "And now?",
            "responses": ["Yes.", "No."],
            "scores": [0, 1],
            "history": [system(""), user(ODD), move("b")],
        }
    ],
    "of odd characters": [{"query": ODD, "responses": [ODD, "no " * 100_000], "scores": [1, 0]}],
}


def there_and_back(rows: list[Row], kind: str, name: str, template: str | None = None) -> list[Row]:
    stored = b"".join(map(line_of, rows))
    written = b"".join(export_pieces(lambda: iter([stored]), kind, name, template))
    found = list(read_rows(io.BytesIO(written), name))
    assert not [each.error for each in found if each.error]
    return [IMPORTS[name].read(each.value) for each in found]


def learnt(rows: list[Row]) -> Iterator[Row]:
    """Each move that is learnt, with all that a training may look at."""
    for row in rows:
        for at, each in enumerate(row["messages"]):
            if each["role"] == "assistant" and each.get("weight", 1) and each["content"].strip():
                rewarded = each.get("reward") is not None and row.get("type") != "sft"
                yield {
                    "before": [(said["role"], said["content"]) for said in row["messages"][:at]],
                    "said": each["content"],
                    "weight": each.get("weight", 1),
                    "reward": each["reward"] if rewarded else None,
                    "player_role": each.get("player_role"),
                    "of": [row.get(name) for name in ("group", "game", "policy")],
                }


def carried(rows: list[Row], *names: str) -> list[Row]:
    return [{name: each[name] for name in names} for each in learnt(rows)]


def check_parlor(rows: list[Row], kind: str) -> None:
    assert there_and_back(rows, kind, "parlor") == rows


def check_openai(rows: list[Row], kind: str) -> None:
    """The rows in which something is learnt, up to the last answer, without rewards and groups."""
    found = there_and_back(rows, kind, "openai")
    assert carried(found, "before", "said", "weight") == carried(rows, "before", "said", "weight")
    kept = [row for row in rows if carried([row], "said")]
    for row, given in zip(found, kept, strict=True):
        ends = max(at for at, each in enumerate(given["messages"], 1) if each["role"] == "assistant")
        assert [(each["role"], each["content"]) for each in row["messages"]] == [
            (each["role"], each["content"]) for each in given["messages"][:ends]
        ]
        assert set(row) == {"messages"}


def check_prompt_completion(rows: list[Row], kind: str) -> None:
    """Each move that is learnt, with its weight and its reward, without role and group."""
    found = there_and_back(rows, kind, "trl-prompt-completion")
    kept = ("before", "said", "weight", "reward")
    assert carried(found, *kept) == carried(rows, *kept)
    assert len(found) == len(carried(rows, *kept))
    assert all(set(row) == {"messages"} for row in found)


def check_spag_rows(rows: list[Row], kind: str) -> None:
    """Each move that is learnt, with its weight, its reward and its role; what was before it is one text."""
    kept = ("said", "weight", "reward", "player_role")
    for template in TEMPLATES:
        found = there_and_back(rows, kind, "spag-rows", template)
        assert carried(found, *kept) == carried(rows, *kept)
        queries = [
            flatten(template, [{"role": role, "content": said} for role, said in each["before"]])
            for each in learnt(rows)
        ]
        assert [[said["content"] for said in row["messages"][:-1]] for row in found] == [[query] for query in queries]
        assert [row.get("type") == "sft" for row in found] == [each["reward"] is None for each in learnt(rows)]


def check_preference(rows: list[Row], kind: str) -> None:
    """The best response against each that is rated lower and says something else, without ratings and groups."""
    expected = []
    for row in rows:
        rated = list(zip(row["responses"], row["scores"], strict=True))
        best = next(said for said, score in rated if score == max(row["scores"]))
        worse = [said for said, score in rated if score < max(row["scores"]) and said != best]
        history = {"history": row["history"]} if "history" in row else {}
        expected += [{"query": row["query"], "responses": [best, said], "scores": [1, 0], **history} for said in worse]
    assert there_and_back(rows, kind, "trl-preference") == expected


CHECKS: Mapping[str, Callable[[list[Row], str], None]] = {
    "parlor": check_parlor,
    "openai": check_openai,
    "trl-prompt-completion": check_prompt_completion,
    "spag-rows": check_spag_rows,
    "trl-preference": check_preference,
}
# What a form cannot hold at all: the row that it refuses, and of which field.
REFUSED = {
    ("openai", "with other weights"): "row 1: weight: expected 0 or 1",
    ("openai", "with rewards below 0"): "row 2: reward: expected none below 0",
    ("trl-prompt-completion", "with rewards below 0"): "row 2: reward: expected none below 0",
}
KINDS = {CONVERSATIONS: CHATS, COMPARISONS: COMPARED}
TRIPS = [
    (name, kind, about)
    for name in FORMAT_NAMES
    for kind, datasets in KINDS.items()
    for about in datasets
    if name == "parlor" or EXPORTS[name].kind == kind
]


def test_every_form_of_export_can_be_imported() -> None:
    assert set(CHECKS) == set(FORMAT_NAMES)
    assert set(FORMAT_NAMES) <= set(IMPORTS)


@pytest.mark.parametrize(("name", "kind", "about"), TRIPS)
def test_what_a_form_carries_comes_back(name: str, kind: str, about: str) -> None:
    rows = KINDS[kind][about]
    if (name, about) not in REFUSED:
        CHECKS[name](rows, kind)
        return
    with pytest.raises(Invalid) as refused:
        there_and_back(rows, kind, name)
    assert refused.value.message.startswith(REFUSED[name, about])


def test_what_is_uploaded_to_openai_ends_with_an_answer() -> None:
    rows = [
        *CHATS["that end with the user or the system"],
        {"messages": [user("a"), move("b"), user("c"), move("d", weight=0), user("e")]},
    ]
    uploaded = [json.loads(line)["messages"] for line in vendor_rows(map(line_of, rows), "chats@1", chat_rows)]
    assert [[each["content"] for each in chat] for chat in uploaded] == [list("ab"), list("abcd"), list("abcd")]
    assert {chat[-1]["role"] for chat in uploaded} == {"assistant"}


@pytest.mark.parametrize("about", CHATS)
def test_an_import_of_what_was_imported_changes_nothing(about: str) -> None:
    """What came back once is the same when it goes there and back again."""
    for name in EXPORTS:
        if EXPORTS[name].kind == CONVERSATIONS and not EXPORTS[name].flat and (name, about) not in REFUSED:
            once = there_and_back(CHATS[about], CONVERSATIONS, name)
            assert there_and_back(once, CONVERSATIONS, name) == once
