"""Reads numbers that may be given as text, and the value of a field by its JSON Schema. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from app.core.errors import Invalid, Phrase, either
from app.core.typed_numbers import is_plain_real, is_plain_whole

_MOST = 10**9  # of a whole number without a bound
_LARGEST = 1e300  # of a number without a bound
LARGEST_SEED = 2**63 - 1  # the largest signed number of 64 bits, which every database stores

Schema = Mapping[str, Any]
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")

T = TypeVar("T")
KeyPath = tuple[str | int, ...]  # path of a nested value: names and indices


def read_value(schema: Schema, raw: Any, name: str) -> Any:
    """The value of a field. Raises Invalid, which names the field, the expectation and the given value.

    A value that is neither a number nor one of some words is returned unchanged. Files say `true` for the word.
    """
    if raw is None and any(kind["type"] == "null" for kind in schema.get("anyOf", ())):
        return None
    kinds = kinds_of(schema)
    if words := words_of(schema):
        if isinstance(raw, bool):
            raw = str(raw).lower()
        if raw in words:
            return str(raw)
        if len(kinds) == 1:
            raise Invalid(name, expected=either(words), got=raw)
    number = next((kind for kind in kinds if kind["type"] in ("integer", "number")), None)
    if number is None:
        return raw
    try:
        return _read_whole_number(number, raw, name) if number["type"] == "integer" else _real(number, raw, name)
    except Invalid as error:
        if not words:
            raise
        expected = Phrase("%(words)s or %(number)s", words=", ".join(words), number=error.parts["expected"])
        raise Invalid(name, expected=expected, got=raw) from None


@cache
def fields_of(model: type[BaseModel]) -> Mapping[str, Schema]:
    """The JSON Schema of each field of a model, in declaration order."""
    found: Mapping[str, Schema] = model.model_json_schema()["properties"]
    return found


def invalid_of(name: str, fault: ErrorDetails) -> Invalid:
    """The error that pydantic found in the field with this name."""
    if fault["type"] == "missing":
        return Invalid(name, expected=Phrase("a value"), got=Phrase("none"))
    return Invalid(name, expected=fault["msg"].removeprefix("Input should be ").lower(), got=fault["input"])


def kinds_of(schema: Schema) -> Sequence[Schema]:
    """The kinds of values that a field may have, except null."""
    return [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]


def words_of(schema: Schema) -> Sequence[str]:
    """The words that a field allows."""
    return [word for kind in kinds_of(schema) for word in kind.get("enum", [kind["const"]] if "const" in kind else [])]


def choices_in(schema: Schema) -> Sequence[str]:
    """The words that a field is limited to; empty if it also allows something else."""
    return words_of(schema) if len(kinds_of(schema)) == 1 else ()


def limits_in(schema: Schema) -> str:
    """The limits of a field in words, for tables of fields; empty where it has none that a reader would meet."""
    found = [words for kind in kinds_of(schema) for words in _limits_of_kind(kind)]
    return " or ".join(dict.fromkeys(found))


def _limits_of_kind(kind: Schema) -> Iterator[str]:
    low = f"{_number(kind['minimum'])}" if "minimum" in kind else ""
    low = f"above {_number(kind['exclusiveMinimum'])}" if "exclusiveMinimum" in kind else low
    high = f"to {_number(kind['maximum'])}" if kind.get("maximum", _MOST) < _MOST else ""
    high = f"to below {_number(kind['exclusiveMaximum'])}" if "exclusiveMaximum" in kind else high
    if high:
        yield f"{low} {high}".strip()
    elif low:
        yield low if low.startswith("above") else f"from {low}"
    if "maxLength" in kind:
        yield f"at most {_number(kind['maxLength'])} characters"
    if "maxItems" in kind:
        yield f"{kind.get('minItems', 0)} to {_number(kind['maxItems'])} of them"


def _number(value: float) -> str:
    return f"{value:,g}" if isinstance(value, float) else f"{value:,}"


def choice_of(known: Mapping[str, T], name: Any, field: str) -> T:
    """What `known` has by a name, which may be anything that a file can hold. Raises Invalid, which names `field`."""
    if not isinstance(name, str) or name not in known:
        raise Invalid(field, expected=either(known), got=name)
    return known[name]


def _read_whole_number(kind: Schema, raw: Any, name: str) -> int:
    least = kind.get("minimum", kind.get("exclusiveMinimum", -_MOST - 1) + ("exclusiveMinimum" in kind))
    most = kind.get("maximum", kind.get("exclusiveMaximum", _MOST + 1) - 1)
    return whole_number(raw, name, least, most)


def _real(kind: Schema, raw: Any, name: str) -> float:
    above, below = kind.get("exclusiveMinimum"), kind.get("exclusiveMaximum")
    least, most = kind.get("minimum", -_LARGEST), kind.get("maximum", _LARGEST)
    if above is None and below is None:
        return real_number(raw, name, least, most)
    try:
        number = real_number(raw, name, least if above is None else above, most if below is None else below)
    except Invalid:
        number = None
    if number is None or number in (above, below):
        raise Invalid(name, expected=_span(least, above, most, below), got=raw)
    return number


def _span(least: float, above: float | None, most: float, below: float | None) -> Phrase:
    """The range of numbers that a field allows."""
    low, high = f"{least if above is None else above:g}", f"{most if below is None else below:g}"
    if below is None and most >= _LARGEST:
        return Phrase("a number above %(low)s", low=low)
    if above is None:
        return Phrase("a number from %(low)s to below %(high)s", low=low, high=high)
    if below is None:
        return Phrase("a number above %(low)s to %(high)s", low=low, high=high)
    return Phrase("a number above %(low)s and below %(high)s", low=low, high=high)


def is_storable(text: str) -> bool:
    """Whether every database can store a text: it has no NUL and no half of a surrogate pair."""
    return _UNSTORABLE.search(text) is None


# ---- Numbers ---------------------------------------------------------------------


def whole_number(raw: Any, name: str, least: int, most: int) -> int:
    """Read a whole number that may be given as text, in ordinary digits only."""
    try:
        if isinstance(raw, bool) or (isinstance(raw, float) and not raw.is_integer()):
            raise ValueError
        if isinstance(raw, str) and not is_plain_whole(raw):
            raise ValueError
        number = int(raw)
    except (TypeError, ValueError, OverflowError):
        raise Invalid(
            name, expected=Phrase("a whole number from %(least)s to %(most)s", least=least, most=most), got=raw
        ) from None
    if not least <= number <= most:
        raise Invalid(
            name, expected=Phrase("a whole number from %(least)s to %(most)s", least=least, most=most), got=raw
        )
    return number


def real_number(raw: Any, name: str, least: float, most: float) -> float:
    """Read a number that may be given as text, in ordinary digits with an optional exponent."""
    try:
        number = float("nan") if isinstance(raw, bool) or not _may_be_real(raw) else float(raw)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not least <= number <= most:
        raise Invalid(
            name, expected=Phrase("a number from %(least)s to %(most)s", least=f"{least:g}", most=f"{most:g}"), got=raw
        )
    return number


def _may_be_real(raw: Any) -> bool:
    return is_plain_real(raw) if isinstance(raw, str) else True
