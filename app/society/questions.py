"""The questions for a society: a file with one per line, or a JSON list of texts."""

from pathlib import Path

from app.core.config import ROOT
from app.core.errors import Invalid, Phrase
from app.society.text_files import check_text, decode, decode_json, read_bytes

SHIPPED = ROOT / "data" / "society" / "questions.txt"
_FIELD = "questions"


def read_questions(path: Path | None = None) -> tuple[str, ...]:
    """The questions in a file, in order; None: the shipped ones. Raises Invalid with the path and the position."""
    path = path or SHIPPED
    return parse_questions(read_bytes(path, _FIELD), str(path))


def parse_questions(raw: bytes, name: str) -> tuple[str, ...]:
    """The questions in the content of a file, called `name` in errors; empty lines are ignored. Raises Invalid."""
    text = decode(raw, _FIELD, name)
    if text.lstrip().startswith("{"):  # else the braces of an object would be asked
        expected = Phrase("one question per line, or a JSON list of texts")
        raise Invalid(_FIELD, expected=expected, got=Phrase("JSON objects"), subject=name)
    if text.lstrip().startswith("["):
        listed = decode_json(text, _FIELD, name)
        placed = [
            (Phrase("%(name)s, item %(number)s", name=name, number=at), each) for at, each in enumerate(listed, 1)
        ]
    else:
        lines = enumerate(text.split("\n"), 1)
        placed = [
            (Phrase("%(name)s, line %(number)s", name=name, number=at), line) for at, line in lines if line.strip()
        ]
    if not placed:
        raise Invalid(_FIELD, expected=Phrase("at least one question"), got=Phrase("an empty file"), subject=name)
    return tuple(check_text(each, _FIELD, place) for place, each in placed)
