"""Rows of comparisons: a query, responses to it, and their ratings: `{"query", "responses", "scores"}`.

The messages before the query may be included: `"history": [{"role", "content"}, …]`.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.data import ROLES, Conversation, group_of, read_objects
from training.errors import TrainingRefused, shown
from training.json_rows import plain_message, tool_use

_PARTS = ("query", "responses", "scores")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row: its place, its group, the query, and the responses, each with its rating.

    `history` are the messages before the query.
    """

    place: str
    group: str
    query: str
    responses: tuple[str, ...]
    scores: tuple[float, ...]
    history: tuple[Mapping[str, Any], ...] = ()

    def chosen(self, most: int, rng: random.Random) -> list[tuple[str, float]]:
        """The first of the best responses, then at most `most` drawn from those rated lower."""
        pairs = list(zip(self.responses, self.scores, strict=True))
        best = max(pairs, key=lambda pair: pair[1])
        lower = [pair for pair in pairs if pair[1] < best[1]]
        return [best, *rng.sample(lower, min(most, len(lower)))]

    def conversation(self, response: str, score: float) -> Conversation:
        """A response as the assistant's answer to the query, with its rating as reward."""
        query, answer = {"role": "user", "content": self.query}, {"role": "assistant", "content": response}
        before = tuple({**each, "weight": 0} for each in self.history)
        return Conversation(self.place, self.group, (*before, query, {**answer, "reward": score}))


def read_comparisons(path: Path, scale: float) -> list[Comparison]:
    """The comparisons of a JSONL or JSON file with ratings from 0 to `scale`.

    Raises Refused, naming the row, and if no row has a response that is better than another.
    """
    found = [_read_comparison(place, raw, scale) for place, raw in read_objects(path)]
    if all(len(set(each.scores)) == 1 for each in found):
        raise TrainingRefused(
            f"{path}: expected a query with a response that is rated better than another, got none; rate responses"
            " apart, or train with sft on the best ones, as conversations"
        )
    return found


def _read_comparison(place: str, raw: Any, scale: float) -> Comparison:
    parts: tuple[Any, ...] = tuple(raw.get(name) if isinstance(raw, dict) else None for name in _PARTS)
    query, responses, scores = parts
    if not isinstance(query, str) or not _is_list_of_texts(responses) or not isinstance(scores, list):
        raise TrainingRefused(
            f'{place}: expected {{"query": text, "responses": [texts], "scores": [numbers]}}, got {shown(raw)}'
        )
    if len(scores) != len(responses):
        raise TrainingRefused(
            f"{place}: scores: expected one for each of {len(responses)} responses, got {len(scores)}"
        )
    for score in scores:
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= scale:
            raise TrainingRefused(f"{place}: scores: expected numbers from 0 to {scale:g}, got {shown(score)}")
    history = _history(place, raw.get("history"))
    return Comparison(place, group_of(place, raw), query, tuple(responses), tuple(map(float, scores)), history)


def _history(place: str, raw: Any) -> tuple[Mapping[str, Any], ...]:
    messages = [plain_message(each) for each in raw] if isinstance(raw, list) else [] if raw is None else raw
    if not isinstance(messages, list) or not all(map(_is_message, messages)):
        raise TrainingRefused(
            f"{place}: history: expected messages with a role ({', '.join(ROLES)}), a content and no tool calls,"
            f" got {shown(raw)}"
        )
    if messages and messages[0]["role"] == "assistant":
        raise TrainingRefused(f"{place}: history: expected a first message of the user or the system, got another")
    return tuple(messages)


def _is_message(raw: object) -> bool:
    if not isinstance(raw, dict) or tool_use(raw):
        return False
    return raw.get("role") in ROLES and isinstance(raw.get("content"), str)


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)
