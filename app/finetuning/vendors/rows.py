"""Dataset rows in vendors' formats: one line of JSON each. Pure."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from app.core.errors import Invalid, Phrase
from app.games.base import JSON

# The vendor's rows for one of ours; none if nothing in it is learnt. Raises Invalid.
RowReader = Callable[[Mapping[str, Any]], Iterable[JSON]]


def vendor_rows(lines: Iterable[bytes], dataset: str, read: RowReader) -> Iterator[bytes]:
    """A dataset's lines in the vendor's format, without those in which nothing is learnt.

    `dataset` is its name in errors. Raises Invalid, naming the row, for a row that the vendor would not accept, and if
    no row is left.
    """
    count = 0
    for number, line in enumerate(lines, 1):
        for row in vendor_row(json.loads(line), number, dataset, read) if line.strip() else ():
            count += 1
            yield json.dumps(row, ensure_ascii=False).encode() + b"\n"
    if not count:
        raise Invalid(
            "dataset",
            expected=Phrase("rows in which something is learnt"),
            got=Phrase("%(name)s, which has none", name=dataset),
        )


def vendor_row(row: Mapping[str, Any], number: int, dataset: str, read: RowReader) -> list[JSON]:
    """The vendor's rows for one of ours. Raises Invalid, naming the row."""
    try:
        return list(read(row))
    except Invalid as refused:
        raise refused.at(Phrase("row %(number)s of %(name)s", number=number, name=dataset)) from None
