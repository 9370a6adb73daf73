"""Shared row parsing: JSON without repeated fields, and messages in one normal form. Loads no torch."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


class RepeatedField(ValueError):
    """A JSON object repeats a field; other readers would silently take the last one."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} twice")


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises RepeatedField, and whatever `json.loads` raises."""
    return json.loads(text, object_pairs_hook=_object_of)


def repeated_field(pairs: Sequence[tuple[str, Any]]) -> str | None:
    """The first name that occurs twice among an object's fields."""
    names = [name for name, _ in pairs]
    return next((name for at, name in enumerate(names) if name in names[:at]), None)


def plain_message(raw: Any) -> Any:
    """A message with its role and content in the form that trainings use; a non-message is returned unchanged.

    OpenAI calls the system role `developer`, and content may be a list of parts.
    """
    if not isinstance(raw, dict):
        return raw
    role = {"role": "system"} if raw.get("role") == "developer" else {}
    return {**raw, **role, **({"content": plain_text(raw["content"])} if "content" in raw else {})}


def plain_text(content: Any) -> Any:
    """The text of content given in parts, `[{"type": "text", "text": …}, …]`; anything else is returned unchanged."""
    parts = content if isinstance(content, list) else []
    if not parts or not all(
        isinstance(each, dict) and each.get("type") == "text" and isinstance(each.get("text"), str) for each in parts
    ):
        return content
    return "".join(each["text"] for each in parts)


def tool_use(message: Mapping[str, Any]) -> tuple[str, str] | None:
    """The field that makes a message a tool call or a tool's answer, with its value; None for other messages.

    Rows cannot contain either: a model's call and its result are not text that anyone said.
    """
    if (role := message.get("role")) in ("tool", "function"):
        return "role", role
    if called := next((name for name in ("tool_calls", "function_call") if message.get(name)), None):
        return called, "a call of a tool"
    parts = message.get("content")
    types = [each.get("type") for each in parts if isinstance(each, dict)] if isinstance(parts, list) else []
    used = next((each for each in types if isinstance(each, str) and each.startswith("tool")), None)
    return None if used is None else ("content", used)


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs) and (name := repeated_field(pairs)) is not None:
        raise RepeatedField(name)
    return found
