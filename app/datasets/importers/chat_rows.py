"""Rows whose chats are lists of messages, converted from the formats of other programs to that of trainings. Pure.

Sources: OpenAI's guides to supervised fine-tuning and to direct preference optimization; TRL's dataset formats
(https://huggingface.co/docs/trl/dataset_formats); ShareGPT's conversations, as FastChat and Axolotl read them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from app.core.errors import Invalid, Phrase, either
from app.datasets.importers.row_checks import (
    check_learnt,
    is_learnt,
    read_conversation,
    read_messages,
    read_pair,
    read_text,
    tool_error,
)
from app.games.base import JSON
from training.methods.base import SUPERVISED

_OF_MOVE = {"reward": "reward", "weight": "weight", "role": "player_role"}
# Speakers in ShareGPT's rows, and in those of its readers that call tools.
_SPEAKERS = {
    "system": "system",
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "bing", "bard"), "assistant"),
}
_TOOL_SPEAKERS = ("tool", "function", "function_call", "function_response", "observation")


def read_openai(row: JSON) -> JSON:
    """An OpenAI fine-tuning chat as a conversation, with the weights of its messages."""
    messages = []
    for at, message in enumerate(read_messages(row["messages"])):
        kept = {name: message[name] for name in ("role", "content", "weight") if message.get(name) is not None}
        if (weight := kept.get("weight", 1)) not in (0, 1) or isinstance(weight, bool):
            raise Invalid(f"messages[{at}].weight", expected=either(("0", "1")), got=weight)
        if is_learnt(kept):
            read_text(f"messages[{at}].content", kept["content"])
        messages.append(kept)
    return _learnt({"messages": messages})


def read_openai_preference(row: JSON) -> JSON:
    """An OpenAI preference fine-tuning row as a comparison."""
    asked = row["input"]
    if not isinstance(asked, dict):
        raise Invalid("input", expected=Phrase("an object with messages"), got=asked)
    before = _plain_messages("input.messages", asked.get("messages"))
    names = ("preferred_output", "non_preferred_output")
    chosen, rejected = ([*before, *_plain_messages(name, row[name])] for name in names)
    return read_pair(chosen, rejected, names, {})


def read_sharegpt(row: JSON) -> JSON:
    """A ShareGPT conversation as one of ours, with speakers under any of the usual names and the weights of answers."""
    if also := next((each for each in ("chosen", "rejected", "label") if each in row), None):
        raise Invalid(also, expected=Phrase("none beside a conversation that is learnt"), got=row[also])
    name = "conversations" if "conversations" in row else "items"
    if not isinstance(row[name], list) or not row[name]:
        raise Invalid(name, expected=Phrase("a list of messages"), got=row[name])
    messages = [_of_sharegpt(f"{name}[{at}]", each) for at, each in enumerate(row[name])]
    if messages[0]["role"] == "assistant":
        raise Invalid(f"{name}[0].from", expected=either(("system", "human")), got=row[name][0]["from"])
    rules = row.get("system")
    before = [{"role": "system", "content": read_text("system", rules)}] if rules else []
    return _learnt({"messages": [*before, *messages]})


def read_prompt_completion(row: JSON) -> JSON:
    """TRL's prompt and completion as a conversation, whose completion is trained on.

    Of rows with a KTO label, only the desirable ones are accepted, because training makes every completion more likely.
    """
    if row.get("label", True) is not True:
        expected = Phrase("true, as every completion becomes more likely")
        raise Invalid("label", expected=expected, got=row["label"])
    prompt, completion = (_plain_messages(name, row[name]) for name in ("prompt", "completion"))
    for at, each in enumerate(completion):
        if each["role"] == "assistant":
            read_text(f"completion[{at}].content", each["content"])
    return read_moves(row, prompt, completion)


def read_trl_preference(row: JSON) -> JSON:
    """TRL's chosen and rejected as a comparison. Both may be whole chats, with or without a separate prompt."""
    names = ("chosen", "rejected")
    chosen, rejected = (_plain_messages(name, row[name]) for name in names)
    prompt = row.get("prompt")
    if isinstance(prompt, str) and {"role": "user", "content": prompt} in chosen[:2]:
        prompt = None  # published rows repeat it beside whole chats
    before = [] if prompt is None else _plain_messages("prompt", prompt)
    if chosen[: len(before)] != before:
        chosen, rejected = [*before, *chosen], [*before, *rejected]
    return read_pair(chosen, rejected, names, {"group": row["group"]} if row.get("group") is not None else {})


def read_moves(row: Mapping[str, Any], before: Sequence[JSON], moves: Sequence[JSON]) -> JSON:
    """A conversation that trains only on `moves`, with the facts about them in the columns of their row.

    Raises Invalid.
    """
    facts = {ours: row[theirs] for theirs, ours in _OF_MOVE.items() if row.get(theirs) is not None}
    known = [{**each, "weight": 0} if each["role"] == "assistant" else each for each in before]
    learnt = [{**each, **facts} if each["role"] == "assistant" else each for each in moves]
    found: JSON = {"messages": [*known, *learnt]}
    found |= {name: row[name] for name in ("group", "game", "policy") if row.get(name) is not None}
    if "group" not in found and row.get("query_id") is not None:
        found["group"] = str(row["query_id"])
    # The published reader knows one type by name and treats all other rows as having rewards.
    if row.get("type") == SUPERVISED:
        found["type"] = SUPERVISED
    return _learnt(found)


def _learnt(row: JSON) -> JSON:
    found = read_conversation(row)
    check_learnt(found)
    return found


def _plain_messages(name: str, raw: Any) -> list[JSON]:
    """Messages reduced to role and content."""
    return [{"role": each["role"], "content": each["content"]} for each in read_messages(raw, name)]


def _of_sharegpt(name: str, raw: Any) -> JSON:
    if not isinstance(raw, dict) or not {"from", "value"} <= raw.keys():
        raise Invalid(name, expected=Phrase("an object with from and value"), got=raw)
    speaker, said = raw["from"], raw["value"]
    if speaker in _TOOL_SPEAKERS:
        raise tool_error(f"{name}.from", speaker)
    role = _SPEAKERS.get(speaker) if isinstance(speaker, str) else None
    if role is None:
        raise Invalid(f"{name}.from", expected=either(_SPEAKERS), got=speaker)
    if not isinstance(said, str):
        raise Invalid(f"{name}.value", expected=Phrase("a text"), got=said)
    message: JSON = {"role": role, "content": said}
    if role == "assistant" and raw.get("weight") is not None:
        message["weight"] = raw["weight"]
    if is_learnt(message):
        read_text(f"{name}.value", said)
    return message
