"""Dataset rows in OpenAI's format, the same as in an export for OpenAI. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.datasets.exporters.row_formats import openai_row
from app.games.base import JSON


def chat_rows(row: Mapping[str, Any]) -> Iterator[JSON]:
    """The chat that OpenAI trains on for a row; none if nothing in it is learnt. Raises Invalid."""
    if (found := openai_row(row)) is not None:
        yield found
