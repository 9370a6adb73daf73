"""Turn a question, with or without an input, into a chat. Pure.

Source of the Alpaca template: Taori et al. 2023, Stanford Alpaca; models that were trained in it need it verbatim.
"""

from collections.abc import Mapping
from typing import Any

from app.core.errors import Invalid, Phrase, either
from app.core.validation import real_number, whole_number
from app.players.base import ChatSampling
from training.marks import OTHERS

CHAT, ALPACA = "chat", "alpaca"
TEMPLATES = (CHAT, ALPACA)
_ALPACA = (
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Response:"
)
_ALPACA_WITH_INPUT = (
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:"
)
_QUESTION_NAMES = ("instruction", "question", "query", "prompt")

PUBLISHED = "published"
# From the inference of Liu et al. 2023, arXiv 2305.16960; its single beam is what everything here uses.
# It cut prompts to their last 100 tokens; here they stay whole.
SAMPLING_PRESETS: Mapping[str, ChatSampling] = {
    PUBLISHED: ChatSampling(temperature=0.7, top_p=0.9, max_tokens=256, no_repeat_ngram=2)
}


def read_sampling(given: Mapping[str, Any], preset: str | None = None) -> ChatSampling:
    """The preset's sampling, overridden by the given fields; numbers may be text. Raises Invalid for a field."""
    if preset is not None and preset not in SAMPLING_PRESETS:
        raise Invalid("sampling", expected=either(SAMPLING_PRESETS), got=preset)
    base = ChatSampling() if preset is None else SAMPLING_PRESETS[preset]
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name in ("temperature", "top_p"):
            found[name] = real_number(value, name, 0, 2 if name == "temperature" else 1)
        else:
            found[name] = whole_number(value, name, 1, 100 if name == "no_repeat_ngram" else 1_000_000)
    return base._replace(**found)


def chat_of(question: str, more: str = "", template: str = CHAT, system: str | None = None) -> list[dict[str, str]]:
    """The chat in which a question is asked; `more` is its input, which may be empty."""
    question, more = OTHERS.broken(question), OTHERS.broken(more)
    if template == ALPACA:
        content = (_ALPACA_WITH_INPUT if more else _ALPACA).format(instruction=question, input=more)
    else:
        content = f"{question}\n\n{more}" if more else question
    opening = [{"role": "system", "content": system}] if system else []
    return [*opening, {"role": "user", "content": content}]


def read_question(raw: Any) -> tuple[str, str]:
    """The question and the input of a row: a text, or an object with one or both. Raises Invalid."""
    if isinstance(raw, str):
        raw = {"question": raw}
    names = [name for name in _QUESTION_NAMES if isinstance(raw, dict) and raw.get(name) is not None]
    if not names:
        raise Invalid(
            None, expected=Phrase("a text, or an object with %(names)s", names=", ".join(_QUESTION_NAMES)), got=raw
        )
    question, more = raw[names[0]], raw.get("input") or ""
    if not isinstance(question, str) or not question.strip():
        raise Invalid(names[0], expected=Phrase("a text that is not empty"), got=question)
    if not isinstance(more, str):
        raise Invalid("input", expected=Phrase("a text"), got=more)
    return question, more
