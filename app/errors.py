"""The errors that Parlor raises on purpose: each says what was expected, what came and what to do.

The edges turn them into their own shape, in one place each: an HTTP status and `{error: {code, message}}`,
a socket acknowledgement, or one line and exit code 2 on the command line.
"""


class AppError(Exception):
    """A refusal that its reader can act on. `code` is for programs, `message` is one line for people."""

    code = "error"
    status = 400

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class Invalid(AppError):
    """The input has the wrong form or value."""

    code = "invalid"
    status = 400


class NotAllowed(AppError):
    """Whoever asks may not do this."""

    code = "not_allowed"
    status = 403


class NotFound(AppError):
    """There is no such thing."""

    code = "not_found"
    status = 404


class Conflict(AppError):
    """It was possible once, but the state has moved on."""

    code = "conflict"
    status = 409


class Unavailable(AppError):
    """The database is busy or away. Nothing was done; the same request may succeed after RETRY_AFTER seconds."""

    code = "unavailable"
    status = 503


RETRY_AFTER = 2  # seconds


def check_name(field: str, value: str) -> None:
    """Raises Invalid for what cannot be a name or a label that people read."""
    if not (value.strip() == value and 1 <= len(value) <= 80 and value.isprintable()):
        raise Invalid(f"{field}: expected 1 to 80 characters without spaces around them, got {shown(value)}")


def shown(value: object, most: int = 60) -> str:
    """What came, for a message: its repr, short enough for one line."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"
