"""Dataset rows in Together's format: chats, or pairs of a better and a worse answer. Pure.

Source: https://docs.together.ai/docs/fine-tuning/data-preparation and …/preference-tuning.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.core.errors import Invalid, either
from app.datasets.exporters.row_formats import openai_row, preference_pairs
from app.games.base import JSON

VENDOR = "Together"


def vendor_rows_of(row: Mapping[str, Any]) -> Iterator[JSON]:
    """The chat that Together trains on for a row, or the pairs for a comparison; none if nothing is learnt.

    Raises Invalid, also for turns that do not alternate.
    """
    if "responses" in row:
        for pair in preference_pairs(row):
            _check_turns(pair["prompt"])
            yield {
                "input": {"messages": pair["prompt"]},
                "preferred_output": pair["chosen"],
                "non_preferred_output": pair["rejected"],
            }
    elif (found := openai_row(row, VENDOR)) is not None:
        _check_turns(found["messages"])
        yield found


def _check_turns(messages: Sequence[Mapping[str, Any]]) -> None:
    """Raises Invalid for a chat in which user and assistant do not alternate after an optional system message."""
    begin = int(messages[0]["role"] == "system")
    for at, message in enumerate(messages[begin:]):
        wanted = ("user", "assistant")[at % 2]
        if message["role"] != wanted:
            expected = either((wanted,)) if at or begin else either(("system", "user"))
            raise Invalid(f"messages[{begin + at}].role", expected=expected, got=message["role"])
