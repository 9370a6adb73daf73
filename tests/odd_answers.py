"""Answers of servers with one value changed, for tests that such an answer is read or refused in one line."""

import copy
from collections.abc import Iterator
from typing import Any

ABSENT = object()
ODD: tuple[Any, ...] = (
    ABSENT, None, True, -1, 2**70, 1e400, float("nan"), 0.5, "", "x" * 5000, "nul\0", "\ud800", [], [[]], {}, {"id": 7},
)  # fmt: skip


def places_of(body: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where an answer has a value, the whole answer first."""
    yield place
    items = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for key, value in items:
        yield from places_of(value, (*place, key))


def altered(body: Any, place: tuple[Any, ...], value: Any) -> Any:
    """An answer with another value at a place, or none."""
    if not place:
        return None if value is ABSENT else value
    changed = copy.deepcopy(body)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    if value is not ABSENT:
        inner[place[-1]] = value
    else:
        del inner[place[-1]]
    return changed
