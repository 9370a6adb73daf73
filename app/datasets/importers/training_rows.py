"""Rows to train on in published formats, read into the form that trainings read (docs/training.md). Pure.

Sources: Cheng et al. 2024, arXiv 2404.10642 (rows of one move); Liu et al. 2023, arXiv 2305.16960 (rated responses);
Bai et al. 2022, arXiv 2204.05862 (chosen and rejected dialogues); Taori et al. 2023, Stanford Alpaca (instructions);
OpenAI's guide to fine-tuning (chats).
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.core.errors import Invalid, Phrase, either
from app.datasets.importers.row_checks import (
    check_learnt,
    is_learnt,
    is_number,
    read_comparison,
    read_conversation,
    read_messages,
    read_object,
    read_text,
)
from app.games.base import JSON
from training.methods.base import COMPARISONS, CONVERSATIONS, SUPERVISED

SEPARATOR = "<sep>"  # between query and response in a `text` of the published rows of one move
HIGHEST_RATING = 7  # of the society that rated responses
PREFERRED, REJECTED = 1, 0  # scores of a pair of which it is only known which one was preferred
_TURN = re.compile(r"(?:^|\n\n)(Human|Assistant):[ \t]?")
_SPEAKERS = {"Human": "user", "Assistant": "assistant"}


@dataclass(frozen=True, slots=True)
class ImportFormat:
    """A format of rows. `kind` is that of its datasets; None where each row says so itself.

    `read` makes our row of one of theirs, and raises Invalid, which names the field of the row that is wrong.
    """

    name: str
    title: Phrase
    kind: str | None
    example: str
    read: Callable[[Any], JSON]


def kind_of(row: Mapping[str, Any]) -> str:
    """The kind of datasets that a row of ours belongs to."""
    return COMPARISONS if "responses" in row else CONVERSATIONS


def line_of(row: JSON) -> bytes:
    """The bytes of a row, as datasets have them. Raises Invalid for what no file of rows can hold."""
    try:
        text = json.dumps(row, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return f"{text}\n".encode()
    except UnicodeEncodeError:
        raise Invalid(None, expected=Phrase("Unicode text"), got=Phrase("half of a surrogate pair")) from None
    except ValueError:
        raise Invalid(None, expected=Phrase("finite numbers"), got=Phrase("NaN or Infinity")) from None


# ---- Formats ----------------------------------------------------------------------


def read_own(raw: Any) -> JSON:
    """A row as `flask dataset export` writes it, with everything in it."""
    row = read_object(raw, "messages, or query, responses and scores")
    if "responses" in row:
        return read_comparison(row)
    if "messages" not in row and "target" in row:
        raise Invalid("messages", expected=Phrase("a list of messages"), got=Phrase("a query and a target"))
    return read_conversation(row)


def read_move(raw: Any) -> JSON:
    """A published row of one move as a conversation: query, target, and its reward, weight, type and role."""
    row = read_object(raw, "query and target")
    query, target = _query_and_target(row)
    move: JSON = {"role": "assistant", "content": target}
    names = {"reward": "reward", "weight": "weight", "role": "player_role"}
    move |= {ours: row[theirs] for theirs, ours in names.items() if row.get(theirs) is not None}
    found: JSON = {"messages": [{"role": "user", "content": query}, move]}
    found |= {name: row[name] for name in ("group", "game", "policy") if row.get(name) is not None}
    if "group" not in found and row.get("query_id") is not None:
        found["group"] = str(row["query_id"])
    # The published reader knows one type by its name, and takes all other rows as those that have rewards.
    if row.get("type") == SUPERVISED:
        found["type"] = SUPERVISED
    found = read_conversation(found)
    check_learnt(found)
    return found


def read_rated(raw: Any) -> JSON:
    """A published row of rated responses as a comparison."""
    row = read_object(raw, "query, responses and scores")
    names = ("query", "responses", "scores", "models", "group")
    found = {name: row[name] for name in names if row.get(name) is not None}
    return read_comparison(found, HIGHEST_RATING)


def read_preference(raw: Any) -> JSON:
    """Two dialogues that differ in their last answer as a comparison: what was said before it is its history."""
    row = read_object(raw, "chosen and rejected")
    chosen, rejected = (_turns(name, row.get(name)) for name in ("chosen", "rejected"))
    if chosen[:-1] != rejected[:-1]:
        raise Invalid("rejected", expected=Phrase("the turns of “chosen” up to the last"), got=Phrase("others"))
    *history, query, answer = chosen
    responses = [answer["content"], rejected[-1]["content"]]
    if responses[0] == responses[1]:
        raise Invalid("rejected", expected=Phrase("another answer than “chosen”"), got=Phrase("the same"))
    found: JSON = {"query": query["content"], "responses": responses, "scores": [PREFERRED, REJECTED]}
    if history:
        found["history"] = history
    return read_comparison(found)


def read_instruction(raw: Any) -> JSON:
    """An instruction, with an input or none, and the output as a conversation of two messages."""
    row = read_object(raw, "instruction, input and output")
    asked = read_text("instruction", row.get("instruction"))
    if more := row.get("input"):
        asked = f"{asked}\n\n{read_text('input', more)}"
    answer = read_text("output", row.get("output"))
    return {"messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]}


def read_chat(raw: Any) -> JSON:
    """A chat of OpenAI's fine-tuning as a conversation, with the weights of its messages."""
    row = read_object(raw, "messages")
    messages = []
    for at, message in enumerate(read_messages(row.get("messages"))):
        kept = {name: message[name] for name in ("role", "content", "weight") if message.get(name) is not None}
        if (weight := kept.get("weight", 1)) not in (0, 1) or isinstance(weight, bool):
            raise Invalid(f"messages[{at}].weight", expected=either(("0", "1")), got=weight)
        if is_learnt(kept):
            read_text(f"messages[{at}].content", kept["content"])
        messages.append(kept)
    found = read_conversation({"messages": messages})
    check_learnt(found)
    return found


def _example(row: JSON) -> str:
    return json.dumps(row, ensure_ascii=False)


FORMATS: Mapping[str, ImportFormat] = {
    each.name: each
    for each in (
        ImportFormat(
            "parlor",
            Phrase("Rows of Parlor: what a dataset’s page or `flask dataset export` writes"),
            None,
            _example({"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}),
            read_own,
        ),
        ImportFormat(
            "spag-rows",
            Phrase("Moves with rewards, one a row, as SPAG has published them"),
            CONVERSATIONS,
            _example({"query": "…", "target": "…", "reward": 0.4, "weight": 1.2, "role": "attacker"}),
            read_move,
        ),
        ImportFormat(
            "stable-alignment",
            Phrase("Rated responses of Stable Alignment"),
            COMPARISONS,
            _example({"query": "…", "responses": ["…", "…"], "scores": [7, 2]}),
            read_rated,
        ),
        ImportFormat(
            "hh",
            Phrase("Chosen and rejected dialogues, as in HH-RLHF"),
            COMPARISONS,
            _example({"chosen": "\n\nHuman: …\n\nAssistant: …", "rejected": "\n\nHuman: …\n\nAssistant: …"}),
            read_preference,
        ),
        ImportFormat(
            "alpaca",
            Phrase("Instructions with outputs, as in Alpaca"),
            CONVERSATIONS,
            _example({"instruction": "…", "input": "", "output": "…"}),
            read_instruction,
        ),
        ImportFormat(
            "openai",
            Phrase("Chats for OpenAI’s fine-tuning"),
            CONVERSATIONS,
            _example(
                {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…", "weight": 1}]}
            ),
            read_chat,
        ),
    )
}


# ---- Parts of rows ----------------------------------------------------------------


def _query_and_target(row: JSON) -> tuple[str, str]:
    """Query and target by any of their names; of several rated texts, the first of the best."""
    texts, scores = row.get("text"), row.get("scores")
    if texts is None:
        query, target = (_first_text(row, names) for names in (("query", "prompt"), ("target", "answer")))
        return query, target
    texts = [texts] if isinstance(texts, str) else texts
    scores = [0] * len(texts) if scores is None and isinstance(texts, list) else scores
    if not isinstance(texts, list) or not texts or not all(isinstance(each, str) for each in texts):
        raise Invalid("text", expected=Phrase("a list of texts"), got=row["text"])
    if not isinstance(scores, list) or len(scores) != len(texts) or not all(map(is_number, scores)):
        raise Invalid("scores", expected=Phrase("%(number)s numbers", number=len(texts)), got=row.get("scores"))
    best = texts[scores.index(max(scores))]
    query, mark, target = best.partition(SEPARATOR)
    if not mark:
        raise Invalid("text", expected=Phrase("%(mark)s between query and response", mark=SEPARATOR), got=best)
    query = _first_text(row, ("query", "prompt")) if "query" in row or "prompt" in row else query
    return read_text("text", query), read_text("text", target)


def _first_text(row: JSON, names: Sequence[str]) -> str:
    name = next((name for name in names if row.get(name) is not None), names[0])
    return read_text(name, row.get(name))


def _turns(name: str, raw: Any) -> list[JSON]:
    """The turns of a dialogue text, those of one speaker after another as one; the last two are query and answer."""
    text = read_text(name, raw)
    parts = _TURN.split(text)
    turns: list[JSON] = []
    for speaker, said in zip(parts[1::2], parts[2::2], strict=True):
        role = _SPEAKERS[speaker]
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n\n{said.strip()}"
        else:
            turns.append({"role": role, "content": said.strip()})
    if parts[0].strip() or [turn["role"] for turn in turns[:1] + turns[-1:]] != ["user", "assistant"]:
        expected = Phrase("turns after “Human:” and “Assistant:”, from a human’s to an assistant’s")
        raise Invalid(name, expected=expected, got=text)
    return turns
