"""The contents of a file of keys and values, with the line of each key. Pure."""

from typing import Any, NamedTuple

from app.core.errors import Invalid, Verbatim
from app.core.validation import KeyPath


class Line(NamedTuple):
    """A line of a file, counted from 1."""

    source: str
    number: int


class Document(NamedTuple):
    """The contents of a file, and the line of each key and list item by its path; lines may be in the file that it
    extends.
    """

    source: str
    value: dict[str, Any]
    lines: dict[KeyPath, Line]

    def line(self, path: KeyPath) -> Line:
        """The line of a value. For a missing value, the line of the value that should contain it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, Line(self.source, 1))

    def place(self, path: KeyPath) -> str:
        """The place of a value, or of the value that should contain it: file, line and key."""
        source, number = self.line(path)
        return f"{source}:{number}: {dotted(path)}" if path else f"{self.source}:1"

    def invalid(self, path: KeyPath, expected: str, got: object) -> Invalid:
        """An error about the value at a path, which may be missing."""
        return Invalid(None, expected=expected, got=got, subject=Verbatim(self.place(path)))


def dotted(path: KeyPath) -> str:
    """A path as people write it: `survey.end[2].ask`."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else part
    return text
