"""Outputs of earlier steps in the fields of later ones, resolved once those steps are done. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple


class Made(NamedTuple):
    """Outputs of earlier steps, by the steps' keys. `many`: a list, even of one; otherwise a single key."""

    keys: tuple[str, ...]
    output: str
    what: str
    many: bool


def with_made(value: Any, one: Callable[[str, Made], Any]) -> Any:
    """A value with each key of a Made replaced by the result of `one`; fields for which it is None are omitted."""
    if isinstance(value, Made):
        found = [each for key in value.keys if (each := one(key, value)) is not None]
        return found if value.many else found[0] if found else None
    if isinstance(value, list):
        several = [with_made(each, one) for each in value]
        flat = [each for part in several for each in (part if isinstance(part, list) else [part])]
        return [each for each in flat if each is not None]
    if isinstance(value, Mapping):
        pairs = ((with_made(name, one), with_made(each, one)) for name, each in value.items())
        return {name: each for name, each in pairs if each is not None}
    return value


def made_in(value: Any) -> Iterator[Made]:
    """All outputs of earlier steps that a value refers to."""
    if isinstance(value, Made):
        yield value
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from made_in(name)
            yield from made_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from made_in(each)
