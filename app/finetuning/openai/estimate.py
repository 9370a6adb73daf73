"""What a training at OpenAI will be charged for, before it is begun.

The vendor charges for every token of the rows, learnt or not, in each epoch; what it says in the end is what counts.
Source: OpenAI's cookbook, "Data preparation and analysis for chat model fine-tuning": tokens around messages, and how
many epochs it takes where nobody has said.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from app.finetuning.estimate import TrainingEstimate
from app.jobs.call_costs import estimated_tokens

_OF_MESSAGE, _OF_ROW = 4, 3  # tokens around each
_USUAL_EPOCHS, _MOST_EPOCHS = 3, 25
_FEWEST_SEEN, _MOST_SEEN = 100, 25_000  # rows times epochs


def estimate(rows: Iterable[bytes], epochs: int | str, price: float | None) -> TrainingEstimate:
    """What training on these rows will take, lines of JSON as the vendor reads them; `epochs` may be `auto`."""
    count = tokens = 0
    for line in rows:
        count += 1
        tokens += _tokens_of(json.loads(line))
    seen = usual_epochs(count) if isinstance(epochs, str) else epochs
    return TrainingEstimate(tokens * seen, seen, price)


def usual_epochs(rows: int) -> int:
    """The epochs that the vendor takes for so many rows: few rows are seen more often, and very many once."""
    if rows * _USUAL_EPOCHS < _FEWEST_SEEN:
        return min(_MOST_EPOCHS, _FEWEST_SEEN // max(1, rows))
    if rows * _USUAL_EPOCHS > _MOST_SEEN:
        return max(1, _MOST_SEEN // rows)
    return _USUAL_EPOCHS


def _tokens_of(row: Mapping[str, Any]) -> int:
    contents = [each["content"] for each in row["messages"]]
    return estimated_tokens(contents) + _OF_MESSAGE * len(contents) + _OF_ROW
