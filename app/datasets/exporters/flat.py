"""Chats flattened to one text that ends where the next move is due, for programs that do not read chats. Pure.

The first message is that of the rules; from then on both sides take turns.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.core.errors import Invalid, either
from training.marks import FAMILIES, ROLE_LABELS, Marks

PLAIN, DIALOGUE, CHATML = "plain", "dialogue", "chatml"
_SPEAKERS = {"user": "Partner", "assistant": "You", "system": "Rules"}

Chat = Sequence[Mapping[str, Any]]


def flatten(template: str, chat: Chat) -> str:
    """The chat in the named template, up to where the next move is due. Raises Invalid for an unknown name."""
    if template not in TEMPLATES:
        raise Invalid("template", expected=either(TEMPLATES), got=template)
    marks = marks_of(template)
    return TEMPLATES[template]([{**each, "content": marks.broken(each["content"])} for each in chat])


def marks_of(template: str) -> Marks:
    """The object that breaks the marks of a template's speakers in messages."""
    return _MARKS[template]


def _prompt_text(chat: Chat) -> str:
    return "".join(f"{each['role']}: {each['content']}\n" for each in chat) + "assistant:"


def _dialogue(chat: Chat) -> str:
    rules, *moves = chat
    said = "".join(f"{_SPEAKERS[each['role']]}: {each['content']}\n\n" for each in moves)
    return f"{rules['content']}\n\n{said}You: "


def _chatml(chat: Chat) -> str:
    turns = "".join(f"<|im_start|>{each['role']}\n{each['content']}<|im_end|>\n" for each in chat)
    return f"{turns}<|im_start|>assistant\n"


TEMPLATES: Mapping[str, Callable[[Chat], str]] = {DIALOGUE: _dialogue, PLAIN: _prompt_text, CHATML: _chatml}
_MARKS = {DIALOGUE: Marks(labels=tuple(_SPEAKERS.values())), PLAIN: Marks(labels=ROLE_LABELS), CHATML: FAMILIES}
