"""Read a chat server's answer: the move, the reasoning before it, its cost, or why there is no move. Pure.

Servers differ in where they put a model's reasoning: in a field of its own, in parts of the content, or in the content
between marks, of which some send only the closing one. Every field may be missing or of another type.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.core.failures import Outcome
from app.games.base import JSON
from training.reasoning import MOST_REASONING, split_reasoning

_MOST_TOKENS = 1_000_000_000  # in one call; a higher number is no count
_MOST_DOLLARS = 100_000.0  # likewise
LIMIT_REACHED = "length"
STREAMED = "chat.completion.chunk"  # what events of a stream, and the completion made from them, are called
_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
_THINKING_PARTS = {"thinking", "reasoning", "reasoning.text", "reasoning.summary", "summary_text"}
_TEXT_PARTS = {"text", "output_text"}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as counted by the server; None if it does not count them. Tokens read from the cache and written to it are
    part of the prompt's, reasoning is part of the completion's. `cost` is in US dollars.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer. `text` is its move, if the outcome is one; `why` says what came instead of a move."""

    outcome: Outcome
    text: str
    why: str
    reasoning: str | None
    usage: Usage
    finish_reason: str | None
    model: str | None
    fingerprint: str | None
    provider: str | None
    left_out: tuple[str, ...]  # types of parts of the content that are neither text nor reasoning
    streamed: bool  # as events, without being asked to


def read_body(raw: bytes) -> JSON | None:
    """The object that a server sent, directly or as an event stream; None for anything else."""
    if raw[:64].lstrip().startswith((b"data:", b"event:", b":")):
        return _join_stream_events(raw.decode(errors="replace"))
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else {"message": body}


def read_answer(body: JSON) -> Answer:
    """The content of a chat completion's first choice."""
    choice = _first(body.get("choices"))
    message = mapping(choice.get("message"))
    said = _Said(message)
    usage, finish_reason = read_usage(body), text_or_none(choice.get("finish_reason"))
    outcome, why = _outcome_and_reason(said, usage, finish_reason, message)
    return Answer(
        outcome=outcome,
        text=said.text if outcome == "move" else "",
        why=why,
        reasoning=said.reasoning[:MOST_REASONING] or None,
        usage=usage,
        finish_reason=finish_reason,
        model=text_or_none(body.get("model")),
        fingerprint=text_or_none(body.get("system_fingerprint")),
        provider=text_or_none(body.get("provider")),
        left_out=tuple(said.left_out),
        streamed=body.get("object") == STREAMED,
    )


def read_usage(body: Mapping[str, Any]) -> Usage:
    """The usage that a server reports for an answer. A part that is larger than its whole counts as unknown."""
    usage = mapping(body.get("usage"))
    of_prompt, of_answer = mapping(usage.get("prompt_tokens_details")), mapping(usage.get("completion_tokens_details"))
    prompt, completion = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    reasoning = _first_count(of_answer.get("reasoning_tokens"), usage.get("reasoning_tokens"))
    if completion is not None and reasoning and _is_beside(prompt, completion, reasoning, usage.get("total_tokens")):
        completion += reasoning
    cached = _part_within_whole(
        _first_count(of_prompt.get("cached_tokens"), usage.get("prompt_cache_hit_tokens")), prompt
    )
    read = cached or 0
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        cache_write_tokens=_part_within_whole(
            count(of_prompt.get("cache_write_tokens")), None if prompt is None else prompt - read
        ),
        reasoning_tokens=_part_within_whole(reasoning, completion),
        cost=_reported_cost(usage),
    )


def _is_beside(prompt: int | None, completion: int, reasoning: int, total: object) -> bool:
    """Whether the reasoning is counted in addition to the completion, as only the sum of all tokens can tell."""
    return prompt is not None and count(total) == prompt + completion + reasoning


def _part_within_whole(tokens: int | None, whole: int | None) -> int | None:
    return None if tokens is None or (whole is not None and tokens > whole) else tokens


def _first_count(*found: object) -> int | None:
    return next((tokens for each in found if (tokens := count(each)) is not None), None)


def _reported_cost(usage: Mapping[str, Any]) -> float | None:
    """The cost of the call in US dollars, if the server reports it.

    For a call with the user's own vendor key, OpenRouter bills only its fee; the vendor's bill comes on top.
    """
    cost = _dollars(usage.get("cost"))
    if cost is None or usage.get("is_byok") is not True:
        return cost
    upstream = _dollars(mapping(usage.get("cost_details")).get("upstream_inference_cost"))
    return None if upstream is None else cost + upstream


def _dollars(raw: object) -> float | None:
    """The amount, if it is a valid one."""
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    return float(raw) if 0 <= raw < _MOST_DOLLARS else None


def error_in(body: Mapping[str, Any]) -> JSON | None:
    """The error that an answer contains instead of a choice, or in its first one; as an answer with only that error."""
    choice = _first(body.get("choices"))
    if error := body.get("error") or choice.get("error"):
        return {"error": error}
    if choice.get("finish_reason") == "error":
        return {"error": {"message": "the model's server broke off the answer", "code": 502}}
    return None


def mapping(raw: object) -> Mapping[str, Any]:
    """The value, if it is an object; otherwise an empty one."""
    return raw if isinstance(raw, dict) else {}


def count(raw: object) -> int | None:
    """The value, if it is a number of tokens."""
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw < _MOST_TOKENS else None


def text_or_none(raw: object) -> str | None:
    """The value, if it is a non-empty text."""
    return raw if isinstance(raw, str) and raw else None


class _Said:
    """A message's words, sorted into text, reasoning and refusal."""

    def __init__(self, message: Mapping[str, Any]) -> None:
        self.left_out: list[str] = []
        self.refusal = text_or_none(message.get("refusal")) or ""
        texts: list[str] = []
        thoughts: list[str] = []
        for field in _REASONING_FIELDS:  # the same text under several names, at some servers
            self._sort(message.get(field), thoughts, thoughts)
            if thoughts:
                break
        self._sort(message.get("content"), texts, thoughts)
        self.text, thought = split_reasoning("".join(texts))
        self.reasoning = "\n".join(each for each in (*thoughts, thought) if each)

    def _sort(self, raw: object, texts: list[str], thoughts: list[str]) -> None:
        """Add a text, a part, or a list of them to the texts or the thoughts."""
        if isinstance(raw, str):
            if raw:
                texts.append(raw)
        elif isinstance(raw, list):
            for each in raw:
                self._sort(each, texts, thoughts)
        elif isinstance(raw, dict):
            self._sort_part(raw, texts, thoughts)

    def _sort_part(self, part: Mapping[str, Any], texts: list[str], thoughts: list[str]) -> None:
        kind = part.get("type", "text")
        if not isinstance(kind, str):  # no server does so on purpose
            kind = "text"
        if kind == "refusal":
            self.refusal = text_or_none(part.get("refusal")) or self.refusal
        elif kind in _THINKING_PARTS:
            found = next((part[name] for name in ("thinking", "text", "summary", "content") if part.get(name)), None)
            self._sort(found, thoughts, thoughts)
        elif kind in _TEXT_PARTS:
            self._sort(part.get("text"), texts, thoughts)
        else:
            self.left_out.append(str(kind)[:40])


def _outcome_and_reason(
    said: _Said, usage: Usage, finish_reason: str | None, message: Mapping[str, Any]
) -> tuple[Outcome, str]:
    """The outcome, and why if it is not a move. A model that had room and wrote nothing made an empty move."""
    if finish_reason == "content_filter":
        return "filtered", "the answer was filtered by whoever serves the model"
    if said.text.strip():
        return "move", ""
    if said.refusal:
        return "declined", f"the model declined: {said.refusal}"
    if tools := _tools(message):
        return "declined", f"the model called a tool that nobody offered: {tools}"
    if finish_reason == LIMIT_REACHED or said.reasoning or usage.reasoning_tokens:
        return "no_room", "the model wrote no move after its reasoning"
    if finish_reason is None and message.get("content") is None:
        return "no_answer", "the server sent no answer"
    return "move", ""


def _tools(message: Mapping[str, Any]) -> str:
    """The names of the tools that a message calls."""
    calls = message.get("tool_calls")
    named = [mapping(mapping(call).get("function")) for call in calls] if isinstance(calls, list) else []
    if message.get("function_call"):
        named.append(mapping(message["function_call"]))
    return ", ".join(str(each.get("name", "without a name"))[:80] for each in named)


def _first(choices: object) -> Mapping[str, Any]:
    return mapping(choices[0]) if isinstance(choices, list) and choices else {}


# ---- Event streams ----------------------------------------------------------------


def _join_stream_events(stream: str) -> JSON | None:
    """The completion that a stream's events add up to, without choices if the stream broke off; None if it is no
    stream.
    """
    whole: JSON = {}
    message: dict[str, Any] = {}
    finish_reason, ended = None, False
    for line in stream.splitlines():
        if not line.startswith("data:"):
            continue
        data = line.removeprefix("data:").strip()
        if data == "[DONE]":
            ended = True
            continue
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            return None
        event = mapping(event)
        whole |= {name: value for name, value in event.items() if name != "choices" and value is not None}
        choice = _first(event.get("choices"))
        finish_reason = choice.get("finish_reason") or finish_reason
        _add_delta(message, mapping(choice.get("delta") or choice.get("message")))
    choices: Sequence[JSON] = [{"message": message, "finish_reason": finish_reason}] if ended or finish_reason else []
    return {**whole, "object": STREAMED, "choices": [*choices]} if whole or message else None


def _add_delta(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for name, value in delta.items():
        before = message.get(name)
        grows = isinstance(value, str | list) and type(before) is type(value) and name != "role"
        message[name] = before + value if grows else (before if value is None else value)
