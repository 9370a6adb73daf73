"""Rows of a dataset as OpenAI reads them: a line of JSON each, as an export for OpenAI has it. Pure."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from app.core.errors import Invalid, Phrase
from app.datasets.exporters.row_formats import openai_row
from app.games.base import JSON


def vendor_rows(lines: Iterable[bytes], dataset: str) -> Iterator[bytes]:
    """The lines of a dataset as the vendor's; those in which nothing is learnt are left out.

    `dataset` is what errors call it. Raises Invalid, naming the row, for what the vendor would not take, and where
    nothing is left.
    """
    count = 0
    for number, line in enumerate(lines, 1):
        if line.strip() and (row := vendor_row(json.loads(line), number, dataset)) is not None:
            count += 1
            yield json.dumps(row, ensure_ascii=False).encode() + b"\n"
    if not count:
        raise Invalid(
            "dataset",
            expected=Phrase("rows in which something is learnt"),
            got=Phrase("%(name)s, which has none", name=dataset),
        )


def vendor_row(row: Mapping[str, Any], number: int, dataset: str) -> JSON | None:
    """A row as the vendor reads it; None if nothing in it is learnt. Raises Invalid."""
    try:
        return openai_row(row)
    except Invalid as refused:
        raise refused.at(Phrase("row %(number)s of %(name)s", number=number, name=dataset)) from None
