"""The fields of a training at Tinker: those of its method that apply there, and Tinker's own."""

from collections.abc import Mapping
from typing import Any

from app.core.errors import Invalid, Phrase
from app.finetuning.config import Fields, find_method, read_fields, refuse_fault
from app.games.base import JSON
from training.methods.base import HERE_ONLY

METHODS = ("sft", "sft-kl", "offline-po", "stable-alignment")
TOKENIZER = "tokenizer"
_RANK: Mapping[str, Any] = {
    "type": "integer", "minimum": 1, "maximum": 512, "default": 32, "title": "LoRA rank",
    "description": "Of the adapters that are trained; no other weight is.",
}  # fmt: skip
_SAVE_EVERY: Mapping[str, Any] = {
    "type": "integer", "minimum": 1, "default": 1, "title": "Steps between checkpoints", "unit": "steps",
    "description": "Steps between states for resuming: a training that was killed pays again for at most this many.",
}  # fmt: skip
_TOKENIZER: Mapping[str, Any] = {
    "type": "string", "default": None, "title": "Tokenizer", "unset": "the one that Tinker names",
    "description": "The base’s tokenizer: a folder, or a name on Hugging Face.",
}  # fmt: skip


def fields_of(method: str) -> Fields:
    """The JSON Schema of each field of a method; empty for a method that Tinker cannot train with."""
    if method not in METHODS:
        return {}
    known = {name: schema for name, schema in find_method(method).job_fields.items() if name not in HERE_ONLY}
    return {**known, "lora_rank": _RANK, "save_every": _SAVE_EVERY, TOKENIZER: _TOKENIZER}


def read_config(method: str, raw: Mapping[str, Any]) -> JSON:
    """The given fields, checked; numbers may have come as text, and null stands for the default. Raises Invalid."""
    if method not in METHODS:
        expected = Phrase("%(methods)s, which Tinker can train with", methods=", ".join(METHODS))
        raise Invalid("method", expected=expected, got=method)
    found = read_fields(fields_of(method), raw, f"{method} at Tinker")
    refuse_fault(find_method(method).fault({name: value for name, value in found.items() if name != TOKENIZER}))
    return found


def usual(method: str) -> JSON:
    """The fields whose defaults at Tinker differ from those here."""
    return {name: fields_of(method)[name]["default"] for name in ("lora_rank", "save_every")}
