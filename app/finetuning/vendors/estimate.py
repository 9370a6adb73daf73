"""The estimate of what a training at a vendor will be charged, made before it starts.

Vendors charge for every token of the rows, learnt or not, in each epoch; the vendor's final figure
counts.
Source: OpenAI's cookbook, "Data preparation and analysis for chat model fine-tuning": tokens around
messages.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from app.finetuning.charges import TrainingEstimate
from app.jobs.call_costs import estimated_tokens

_OF_MESSAGE, _OF_ROW = 4, 3  # tokens around each


class RowTokens(NamedTuple):
    """A number of rows, and of their tokens together."""

    rows: int
    tokens: int


def count_tokens(rows: Iterable[bytes]) -> RowTokens:
    """The rows and their tokens; rows are JSON lines in the vendor's format."""
    count = tokens = 0
    for line in rows:
        count += 1
        tokens += _tokens_of(json.loads(line))
    return RowTokens(count, tokens)


def estimate(counted: RowTokens, epochs: Callable[[int], int], price: float | None) -> TrainingEstimate:
    """The estimate for training on these rows; `epochs` maps their number to the number of epochs."""
    seen = epochs(counted.rows)
    return TrainingEstimate(counted.tokens * seen, seen, price)


def _tokens_of(row: Mapping[str, Any]) -> int:
    """The tokens of a chat, or of two chats that differ in their last answer."""
    if "messages" in row:
        return _tokens_of_chat(row["messages"])
    before = row["input"]["messages"]
    return sum(_tokens_of_chat([*before, *row[each]]) for each in ("preferred_output", "non_preferred_output"))


def _tokens_of_chat(messages: list[Mapping[str, Any]]) -> int:
    contents = [each["content"] for each in messages]
    return estimated_tokens(contents) + _OF_MESSAGE * len(contents) + _OF_ROW
