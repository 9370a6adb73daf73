"""The client's errors, each in one line: what was expected, what was found, what to do."""

from collections.abc import Mapping
from typing import Any


class ParlorError(Exception):
    """Any error of the client."""


class NotReachable(ParlorError):
    """No Parlor answers at the address, or it no longer does."""


class ServerTooOld(ParlorError):
    """The server's version is older than the client requires."""


class Refused(ParlorError):
    """Parlor refused a request; nothing was changed.

    status: the HTTP status. code: for programs, such as `invalid`, `not_signed_in`, `not_allowed`, `not_found`,
    `conflict`. field, expected, got, remedy: details of what is wrong, None where unknown.
    """

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        self.status = status
        self.code: str = error.get("code") or "unknown"
        self.field: str | None = error.get("field")
        self.expected: str | None = error.get("expected")
        self.got: str | None = error.get("got")
        self.remedy: str | None = error.get("remedy")
        message = one_line(error.get("message") or f"refused with {status}")
        if self.remedy and self.remedy not in message:
            message += f"; {one_line(self.remedy)}"
        super().__init__(message)


class JobFailed(ParlorError):
    """A job that was waited for failed, or was cancelled or interrupted.

    kind, number: the job. status: `failed`, `cancelled` or `interrupted`. error: the job's own error message; None if
    it has none.
    """

    def __init__(self, kind: str, number: int, status: str, error: str | None) -> None:
        self.kind, self.number, self.status, self.error = kind, number, status, error
        line = f"{kind}[{number}]: expected it to be done, got {status}"
        line += f": {one_line(error)}" if error else ""
        if status == "interrupted":
            line += "; nobody works on it any more: job.resume() hands it to the workers"
        super().__init__(line)


def one_line(text: object) -> str:
    """A text without line breaks."""
    return " ".join(str(text).split())
