"""Rows of a dataset as OpenAI reads them: a line of JSON each, with its messages and nothing else. Pure.

Source: the vendor's guide to supervised fine-tuning: `role`, `content`, and `weight`, 0 or 1, of the assistant's.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from app.errors import Invalid, Phrase, Verbatim, shown
from app.games.base import JSON

ROLES = ("system", "user", "assistant")


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
    messages = row.get("messages")
    if messages is None and "query" in row:
        weight = {"weight": row["weight"]} if "weight" in row else {}
        messages = [
            {"role": "user", "content": row["query"]},
            {"role": "assistant", "content": row.get("target"), **weight},
        ]
    place = Phrase("row %(number)s of %(name)s", number=number, name=dataset)
    if not isinstance(messages, list) or not messages:
        raise Invalid("dataset", expected=Phrase("messages"), got=Phrase("none"), subject=place)
    found = [_message(each, place) for each in messages]
    learnt = any(each["role"] == "assistant" and each.get("weight", 1) for each in found)
    return {"messages": found} if learnt else None


def _message(raw: Any, place: Phrase) -> JSON:
    role, content = (raw.get(name) for name in ("role", "content")) if isinstance(raw, Mapping) else (None, None)
    if role not in ROLES or not isinstance(content, str):
        expected = Phrase("messages with a role (%(roles)s) and a text", roles=", ".join(ROLES))
        raise Invalid("dataset", expected=expected, got=Verbatim(shown(raw)), subject=place)
    weight = raw.get("weight")
    if role != "assistant" or weight is None:
        return {"role": role, "content": content}
    if weight not in (0, 1):
        raise Invalid(
            "dataset",
            expected=Phrase("weights of 0 or 1, which are all that OpenAI takes"),
            got=Verbatim(weight),
            remedy=Phrase("train with such weights here, or build a dataset without them"),
            subject=place,
        )
    return {"role": role, "content": content, "weight": int(weight)}
