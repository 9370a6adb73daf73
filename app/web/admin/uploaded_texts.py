"""Texts that a form accepts as a file or as typed lines: read once, and sent back with the page if it is refused."""

from collections.abc import Mapping, Sequence
from typing import Any

from flask import Request

from app.core.csv_reader import decode_text
from app.core.errors import Invalid, Phrase
from app.games.base import JSON

MOST_UPLOADED = 200_000  # characters in one text
UPLOAD, AGAIN = "upload", "again"  # besides the shipped one: one's own text, or that of an earlier job


def read_uploads(request: Request, names: Sequence[str], most: int = MOST_UPLOADED) -> JSON:
    """The form fields that uploaded files fill in; the content of a file is in its text field.

    A file with more than `most` characters is read only far enough to show that it is too long.
    """
    found: JSON = {}
    for name in names:
        file = request.files.get(f"{name}_file")
        if file is not None and file.filename:
            text = _decoded(file.read(4 * most)).replace("\0", "\ufffd")
            found |= {f"{name}_text": text, f"{name}_name": file.filename, name: UPLOAD}
    return found


def _decoded(content: bytes) -> str:
    try:
        return decode_text(content)
    except UnicodeDecodeError:  # unreadable bytes are shown in place, and refused with their line
        return content.decode("utf-8", errors="replace")


def uploaded_text(name: str, form: Mapping[str, Any], most: int = MOST_UPLOADED) -> tuple[str, str]:
    """The uploaded or typed text, of at most `most` characters, and its name in errors. Raises Invalid."""
    text, option = form[f"{name}_text"], name.replace("_", "-")
    if not text.strip():
        raise Invalid(name, expected=Phrase("a file or lines of text"), got=Phrase("nothing"))
    if len(text) > most:
        raise Invalid(
            name,
            expected=Phrase("at most %(most)s characters here", most=most),
            got=len(text),
            remedy=Phrase("the command line takes longer files by --%(name)s FILE", name=option),
        )
    return text, form.get(f"{name}_name") or f"the {option} of the form"
