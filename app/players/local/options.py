"""The validated options of a local model's registry row. Loads no torch, so that a page can show them."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.core.config import ROOT
from app.core.errors import Invalid, Phrase, Verbatim, either
from app.core.validation import real_number, whole_number
from app.games.base import JSON
from app.inference.requests import Sampling
from app.players.api import reasoning
from app.players.base import ChatSampling, PlayerSpec
from app.players.stop_strings import read_stop

DEVICES = ("auto", "cpu", "cuda")
DTYPES = ("auto", "float32", "bfloat16")
_OPTIONS = (
    "path", "sha256", "temperature", "top_k", "top_p", "max_tokens", "in_flight", "device", "dtype", "reasoning",
    "reasoning_room", "stop", "template_arguments",
)  # fmt: skip
TEMPLATE = "template"  # as the chat template's default has it
REASONING = (TEMPLATE, *(word for word in reasoning.ROOM if word != reasoning.SERVER))
TEMPLATE_ROOM = reasoning.ROOM["medium"]  # tokens
PLAYED_WITH = ("reasoning", "reasoning_room", "template_arguments")  # what a model inherits from its training's base
_OWN_ARGUMENTS = {  # of the call that renders a chat
    "add_generation_prompt", "chat_template", "continue_final_message", "conversation", "conversations", "documents",
    "max_length", "messages", "padding", "return_assistant_tokens_mask", "return_dict", "return_tensors",
    "sanitize_control_tokens", "tokenize", "tokenizer_kwargs", "tools", "truncation",
}  # fmt: skip
_MOST_ARGUMENTS = 10_000  # characters of JSON
_MOST_PATH = 1000
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """The options of a local model in a registry row. `auto` is the GPU with bfloat16, else the CPU with float32."""

    path: str  # as in the row; `resolve` gives the full path
    sha256: str  # of the checkpoint, as given by `training.checkpoints`
    temperature: float  # 0: greedy
    top_k: int | None  # None: any token
    top_p: float | None
    max_tokens: int | None  # None: the game's own limit
    in_flight: int  # matches batched together
    device: str
    dtype: str
    reasoning: str | int  # template, off, low, medium, high, or a number of tokens
    reasoning_room: int | None  # tokens beside the limit of a move; None: TEMPLATE_ROOM, if the template lets it reason
    stop: tuple[str, ...]  # texts before which an answer ends
    template_arguments: JSON  # further variables of the chat template, those of the option reasoning included

    def sampling(self, asked: ChatSampling) -> Sampling:
        """How an answer is sampled: as requested, otherwise as the row says."""
        return Sampling(
            temperature=self.temperature if asked.temperature is None else asked.temperature,
            top_k=self.top_k if asked.top_k is None else asked.top_k,
            top_p=self.top_p if asked.top_p is None else asked.top_p,
            no_repeat_ngram=asked.no_repeat_ngram,
        )


def read_options(raw: Mapping[str, Any]) -> LocalOptions:
    """Validate a row's options; numbers may be given as text. Raises Invalid."""
    if unknown := sorted(set(raw) - set(_OPTIONS)):
        raise Invalid(
            None, expected=Verbatim(", ".join(_OPTIONS)), got=unknown[0], subject=Phrase("option of a local model")
        )
    sha256 = raw.get("sha256")
    if not (isinstance(sha256, str) and _HASH.fullmatch(sha256)):
        raise Invalid("sha256", expected=Phrase("the checkpoint's hash in 64 hexadecimal digits"), got=sha256)
    wanted = reasoning.read_reasoning(raw.get("reasoning", TEMPLATE), REASONING)
    room = raw.get("reasoning_room", _default_reasoning_room(wanted))
    top_k, top_p, most = raw.get("top_k"), raw.get("top_p"), raw.get("max_tokens")
    return LocalOptions(
        path=_read_checkpoint_path(raw.get("path")),
        sha256=sha256,
        temperature=real_number(raw.get("temperature", 1.0), "temperature", 0, 2),
        top_k=None if top_k is None else whole_number(top_k, "top_k", 1, 1_000_000),
        top_p=None if top_p is None else real_number(top_p, "top_p", 0, 1),
        max_tokens=None if most is None else whole_number(most, "max_tokens", 1, 1_000_000),
        in_flight=whole_number(raw.get("in_flight", 128), "in_flight", 1, 1024),
        device=_one_of(raw.get("device", "auto"), "device", DEVICES),
        dtype=_one_of(raw.get("dtype", "auto"), "dtype", DTYPES),
        reasoning=wanted,
        reasoning_room=None if room is None else whole_number(room, "reasoning_room", 0, 1_000_000),
        stop=read_stop(raw.get("stop")),
        template_arguments={**_usual_arguments(wanted), **read_template_arguments(raw.get("template_arguments"))},
    )


def read_template_arguments(raw: object) -> JSON:
    """Arguments of a chat template, as an object or as JSON text; an empty value gives none. Raises Invalid."""
    found: Any = raw or {}
    try:
        if isinstance(raw, str) and raw.strip():
            found = json.loads(raw)
        text = json.dumps(found, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        found, text = None, ""
    if not isinstance(found, Mapping) or len(text) > _MOST_ARGUMENTS or "\\u0000" in text:
        raise Invalid(
            "template_arguments", expected=Phrase('a JSON object such as {"enable_thinking": false}'), got=raw
        )
    if own := sorted(_OWN_ARGUMENTS & set(found)):
        raise Invalid(
            "template_arguments",
            expected=Phrase("variables of the model’s chat template"),
            got=Phrase("%(names)s, which Parlor sets itself", names=", ".join(own)),
        )
    return dict(found)


def _default_reasoning_room(wanted: str | int) -> int | None:
    return wanted if isinstance(wanted, int) else reasoning.ROOM.get(wanted)


def _usual_arguments(wanted: str | int) -> JSON:
    """The arguments by which most chat templates control how much to reason."""
    if wanted == TEMPLATE:
        return {}
    arguments: JSON = reasoning.reasoning_fields(wanted, reasoning.TEMPLATE)["chat_template_kwargs"]
    return arguments


def resolve(home: Path, path: str) -> Path:
    """The folder for a row's path: a relative one is in PARLOR_HOME if it exists there, else in the project."""
    inside = home / path  # an absolute path stays unchanged
    return inside if inside.exists() else ROOT / path


def located(spec: PlayerSpec, home: Path) -> PlayerSpec:
    """A local model's spec with the whole path. Raises Invalid as `read_options` does."""
    path = resolve(home, read_options(spec.options).path)
    return replace(spec, options={**spec.options, "path": str(path)})


def _read_checkpoint_path(raw: object) -> str:
    if not isinstance(raw, str) or not raw.strip() or len(raw) > _MOST_PATH or not raw.isprintable():
        raise Invalid(
            "path", expected=Phrase("a checkpoint folder in at most %(most)s characters", most=_MOST_PATH), got=raw
        )
    return raw


def _one_of(raw: object, option: str, known: tuple[str, ...]) -> str:
    if raw not in known:
        raise Invalid(option, expected=either(known), got=raw)
    return str(raw)
