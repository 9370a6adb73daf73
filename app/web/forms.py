"""What the forms of several pages share."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.errors import AppError, Invalid, either


class RefusedField(Exception):
    """The field of a form that an error is about, by its name there, and the error."""

    def __init__(self, field: str, error: AppError) -> None:
        super().__init__(error.message)
        self.field = field
        self.error = error


def one_of(name: str, form: Mapping[str, Any], known: Sequence[str]) -> str:
    """What was chosen of what is known. Raises Invalid."""
    value: str = form[name]
    if value not in known:
        raise Invalid(name, expected=either(known), got=value)
    return value
