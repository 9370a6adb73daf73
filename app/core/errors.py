"""The errors that Parlor raises on purpose: each tells what was expected, what came and what to do.

The edges convert them to their own form, in one place each: an HTTP status and `{error: {code, message}}`, a socket
acknowledgement, one line and exit code 2 on the command line, or a mark at the field of a form, in the page's language.
Nothing here depends on a language: a `Phrase` keeps its values apart so that an edge can translate it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

_MOST_CHOICES = 40  # in a message


class Verbatim(str):
    """Text that is shown unchanged: a name, a figure, another program's output."""


class FieldName(Verbatim):
    """The name of a field inside a phrase: a page shows the field's label in quotes instead."""


class Phrase:
    """An English phrase with `%(name)s` for each value; `python -m scripts.translations` finds it by this name.

    A value may be a phrase itself.
    """

    def __init__(self, template: str, **values: object) -> None:
        self.template = template
        self.values = values

    def __str__(self) -> str:
        return self.render()

    def render(self, translate: Callable[[str], str] = str, label: Callable[[str], str] = str) -> str:
        """The phrase with its values; `translate` is applied to its template and `label` to the names of fields."""
        template = translate(self.template)
        if not self.values:
            return template
        return template % {name: render(value, translate, label) for name, value in self.values.items()}


def render(value: object, translate: Callable[[str], str] = str, label: Callable[[str], str] = str) -> str:
    """A part of a message as text."""
    if isinstance(value, Phrase):
        return value.render(translate, label)
    if isinstance(value, FieldName):
        own = label(value)
        return own if own == value else Phrase("“%(label)s”", label=Verbatim(own)).render(translate)
    return str(value)


def either(choices: Iterable[str]) -> Phrase | Verbatim:
    """The choices joined with "or"; a long list is cut off."""
    first, *others = map(Verbatim, choices)
    if len(others) > _MOST_CHOICES:
        others[_MOST_CHOICES:] = [Verbatim("…")]
    found: Phrase | Verbatim = first
    for other in others:
        found = Phrase("%(choices)s or %(last)s", choices=found, last=other)
    return found


class AppError(Exception):
    """A refusal that its reader can act on. `code` is for programs, `message` is one line for people."""

    code = "error"
    status = 400
    field: str | None = None  # the one at fault, by its name on the command line and in forms

    def __init__(self, text: Phrase | str, *, code: str | None = None) -> None:
        self.text = text
        self.message = str(text)
        super().__init__(self.message)
        if code is not None:
            self.code = code

    def line(self, translate: Callable[[str], str] = str, label: Callable[[str], str] = str) -> str:
        """The error in one line; `translate` is applied to its phrases and `label` to the names of fields."""
        return render(self.text, translate, label)

    def is_translatable(self) -> bool:
        """Whether all of it is phrases and names, so that a translated line contains no English."""
        return isinstance(self.text, Phrase)


class FieldError(AppError):
    """A refusal of one field: what was expected of it, what it got, and what to do about it.

    field: its name on the command line and in forms; None if it has none, such as a file. expected, remedy: a Phrase if
    a page shows it; a str is English on every page. got: what came, shown by `shown`; a Phrase or Verbatim is shown
    unchanged. subject: the beginning of the line, if it is not the field's name: a path, a place in a file, "round 3".
    """

    def __init__(
        self,
        field: str | None,
        *,
        expected: Phrase | str,
        got: object,
        remedy: Phrase | str | None = None,
        subject: object = None,
    ) -> None:
        self.field = field
        self.parts: dict[str, Any] = {"expected": expected, "got": got, "remedy": remedy, "subject": subject}
        super().__init__(self.line())

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), self.field, **self.parts), ()

    def line(self, translate: Callable[[str], str] = str, label: Callable[[str], str] = str) -> str:
        expected, got, remedy, subject = self.parts.values()
        line = Phrase("expected %(expected)s, got %(got)s", expected=expected, got=_came(got)).render(translate, label)
        if remedy is not None:
            line = f"{line}; {render(remedy, translate, label)}"
        if subject is not None:
            return f"{render(subject, translate, label)}: {line}"
        return line if self.field is None else f"{label(self.field)}: {line}"

    def is_translatable(self) -> bool:
        return all(isinstance(self.parts[name], Phrase | Verbatim | None) for name in ("expected", "remedy"))

    def texts(self) -> dict[str, str | None]:
        """The expectation, the given value and the remedy, for programs."""
        expected, got, remedy, _ = self.parts.values()
        return {
            "expected": str(expected),
            "got": str(_came(got)),
            "remedy": None if remedy is None else str(remedy),
        }

    def of(self, field: str | None, **parts: Any) -> Self:
        """The same error of another field, with these parts in place of its own."""
        return type(self)(field, **{**self.parts, **parts})

    def at(self, place: object) -> Self:
        """The same error, found at a place in a file; the line begins with that place."""
        own = self.parts["subject"] or self.field
        subject = place if own is None else Phrase("%(place)s: %(subject)s", place=place, subject=own)
        return self.of(self.field, subject=subject)


class Invalid(FieldError):
    """The input has the wrong form or value."""

    code = "invalid"
    status = 400


class NotAllowed(AppError):
    """The requester may not do this."""

    code = "not_allowed"
    status = 403


class NotFound(FieldError):
    """The thing does not exist."""

    code = "not_found"
    status = 404


class Conflict(FieldError):
    """It was possible once, but the state has moved on."""

    code = "conflict"
    status = 409


class TooMany(AppError):
    """The person has reached the limit of something."""

    code = "too_many"
    status = 409


class Unavailable(AppError):
    """The database is busy or unreachable. Nothing was done; the same request may succeed after RETRY_AFTER seconds."""

    code = "unavailable"
    status = 503


RETRY_AFTER = 2  # seconds


@contextmanager
def refusals_of(field: str, **parts: Any) -> Iterator[None]:
    """Refusals inside are of this field, with these parts in place of their own."""
    try:
        yield
    except FieldError as error:
        raise error.of(field, **parts) from None


@contextmanager
def refusals_within(field: str) -> Iterator[None]:
    """Refusals inside are of parts of this field, `field.part`, unless they are of the whole field."""
    try:
        yield
    except FieldError as error:
        raise error.of(field if error.field in (None, field) else f"{field}.{error.field}") from None


def check_name(field: str, value: str) -> None:
    """Raises Invalid for text that cannot be a name or a label."""
    if not (value.strip() == value and 1 <= len(value) <= 80 and value.isprintable()):
        raise Invalid(field, expected=Phrase("1 to 80 characters without spaces around them"), got=value)


def _came(got: object) -> Phrase | str:
    return got if isinstance(got, Phrase | Verbatim) else shown(got)


def shown(value: object, most: int = 60) -> str:
    """A given value for a message: its repr, short enough for one line."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"
