"""The inputs given for a run of a recipe, each of the type of its default. Pure."""

from collections.abc import Mapping
from typing import Any

from app.core.errors import Invalid
from app.core.typed_numbers import is_plain_real, is_plain_whole
from app.recipes.expressions import Input, Scalar

SET = "--set "  # precedes the fields of errors, which are named as on the command line


def read_inputs(defaults: Mapping[str, Input], given: Mapping[str, Any]) -> dict[str, Input]:
    """The default inputs, overridden by those given; texts are parsed as the default's type. Raises Invalid."""
    for name in given:
        if name not in defaults:
            expected = f"one of the inputs {', '.join(defaults)}" if defaults else "none, as the recipe has no inputs"
            raise Invalid(f"{SET}{name}", expected=expected, got=name)
    return {
        name: _read_input_or_list(name, usual, given[name]) if name in given else usual
        for name, usual in defaults.items()
    }


def _read_input_or_list(name: str, usual: Input, raw: Any) -> Input:
    if isinstance(usual, str | int | float):
        return read_input(f"{SET}{name}", name, usual, raw)
    if isinstance(raw, str):
        raw = [each.strip() for each in raw.split(",")]
    elif not isinstance(raw, list | tuple | dict):
        raw = [raw]
    if not isinstance(raw, list | tuple) or not raw:
        raise Invalid(f"{SET}{name}", expected="values with commas between", got=raw)
    return [read_input(f"{SET}{name}", name, usual[0], each) for each in raw]


def read_input(field: str | None, name: str, usual: Scalar, raw: Any) -> Scalar:
    """One value of an input, of the type of its default. Raises Invalid, naming the field."""
    found: Scalar | None
    if isinstance(usual, bool):
        expected, found = "true or false", {"true": True, "false": False}.get(str(raw).lower())
    elif isinstance(usual, int):
        expected, found = f"a whole number, as {name} is {usual}", _number_or_none(raw, whole=True)
    elif isinstance(usual, float):
        expected, found = f"a number, as {name} is {usual:g}", _number_or_none(raw, whole=False)
    else:
        expected, found = "text", _value_as_text(raw)
    if found is None:
        raise Invalid(field, expected=expected, got=raw)
    return found


def _value_as_text(raw: Any) -> str | None:
    """A value as text; a whole number is accepted, as command lines pass one for such text."""
    return str(raw) if isinstance(raw, str | int) and not isinstance(raw, bool) else None


def _number_or_none(raw: Any, *, whole: bool) -> int | float | None:
    if isinstance(raw, str) and is_plain_whole(raw):
        return int(raw) if whole else float(raw)
    if isinstance(raw, str):
        return float(raw) if is_plain_real(raw) and not whole else None
    if isinstance(raw, bool) or not isinstance(raw, int if whole else int | float):
        return None
    return int(raw) if whole else float(raw)
