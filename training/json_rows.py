"""Rows as all read them: JSON in which no object names a field twice, and messages in one form. Loads no torch."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


class RepeatedField(ValueError):
    """An object of JSON names a field twice, of which readers would silently take the last."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} twice")


def parse_json(text: str | bytes) -> Any:
    """The value of a text of JSON. Raises RepeatedField, and as `json.loads` does."""
    return json.loads(text, object_pairs_hook=_object_of)


def repeated_field(pairs: Sequence[tuple[str, Any]]) -> str | None:
    """The first name that stands twice among the fields of an object."""
    names = [name for name, _ in pairs]
    return next((name for at, name in enumerate(names) if name in names[:at]), None)


def plain_message(raw: Any) -> Any:
    """A message with its role and content as trainings know them; what is no message stays as it is.

    OpenAI calls the system `developer`, and contents may be lists of parts.
    """
    if not isinstance(raw, dict):
        return raw
    role = {"role": "system"} if raw.get("role") == "developer" else {}
    return {**raw, **role, **({"content": plain_text(raw["content"])} if "content" in raw else {})}


def plain_text(content: Any) -> Any:
    """The text of a content in parts, `[{"type": "text", "text": …}, …]`; anything else stays as it is."""
    parts = content if isinstance(content, list) else []
    if not parts or not all(
        isinstance(each, dict) and each.get("type") == "text" and isinstance(each.get("text"), str) for each in parts
    ):
        return content
    return "".join(each["text"] for each in parts)


def tool_use(message: Mapping[str, Any]) -> tuple[str, str] | None:
    """The field of a message that calls a tool or is the answer of one, and what it has there; None if there is none.

    No row here can hold either: what a model calls, and what came of it, is no text that somebody said.
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
