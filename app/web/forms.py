"""What the forms of several pages share."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from flask import request
from flask_babel import get_locale

from app.core.errors import AppError, Invalid, Phrase, either
from app.core.typed_numbers import ENGLISH, read_amount

T = TypeVar("T")


class RefusedField(Exception):
    """An error, and the name of the form field that it is about."""

    def __init__(self, field: str, error: AppError) -> None:
        super().__init__(error.message)
        self.field = field
        self.error = error


def one_of(name: str, form: Mapping[str, Any], known: Sequence[str]) -> str:
    """The chosen value, one of `known`. Raises Invalid."""
    value: str = form[name]
    if value not in known:
        raise Invalid(name, expected=either(known), got=value)
    return value


def pressed(actions: Mapping[str, T]) -> T:
    """The value of the pressed button. Raises Invalid for an unknown button."""
    action = request.form.get("action", "")
    if action not in actions:
        raise Invalid("action", expected=either(actions), got=action)
    return actions[action]


def typed_whole(text: str, field: str) -> int:
    """A whole number as it was typed. Raises Invalid."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise Invalid(field, expected=Phrase("a whole number"), got=text)
    return int(text)


def typed_minute(text: str) -> str:
    """A time as a browser sends it, converted to the format of wave files, to the minute."""
    return text.replace("T", " ")[:16]


def typed_amount(text: str, field: str, *, places: int = 2, signed: bool = False, such: str = "12.50") -> Decimal:
    """An amount entered on this page, whose language determines the thousands separator. Raises Invalid."""
    return read_amount(text, field, form_language(), places=places, signed=signed, such=such)


def form_language() -> str:
    """The language of this request's page."""
    return str(get_locale() or ENGLISH)
