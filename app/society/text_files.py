"""Reads the files given to a society, and describes errors in them in one line."""

import json
from pathlib import Path
from typing import Any

from app.core.csv_reader import decode_text
from app.core.errors import Invalid, Phrase, Verbatim
from app.core.files import file_problem
from training.json_rows import RepeatedField, parse_json

LARGEST = 150_000_000  # bytes; the published file of first memories has 105 million
LONGEST_TEXT = 20_000  # characters in a question or an answer


def read_bytes(path: Path, field: str) -> bytes:
    """The whole content of a file. Raises Invalid if it cannot be read or is too large."""
    try:
        if path.stat().st_size > LARGEST:
            raise Invalid(
                field,
                expected=Phrase("at most %(most)s MB", most=LARGEST // 1_000_000),
                got=Phrase("a larger file"),
                subject=str(path),
            )
        return path.read_bytes()
    except OSError as error:
        raise Invalid(
            field, expected=Phrase("a file that can be read"), got=Verbatim(file_problem(error)), subject=str(path)
        ) from None


def decode(raw: bytes, field: str, name: str) -> str:
    """The text of a file, without the byte order mark that some programs write before UTF-8. Raises Invalid."""
    try:
        return decode_text(raw)
    except UnicodeDecodeError:
        raise Invalid(
            field, expected=Phrase("a text in UTF-8"), got=Phrase("bytes that are not UTF-8"), subject=name
        ) from None


def decode_json(text: str, field: str, name: str) -> Any:
    """The value in a text. Raises Invalid."""
    try:
        return parse_json(text)
    except RepeatedField as repeated:
        raise Invalid(
            field, expected=Phrase("each field of an object once"), got=Verbatim(str(repeated)), subject=name
        ) from None
    except json.JSONDecodeError as error:
        got = Phrase("none from line %(line)s on", line=error.lineno)
    except (RecursionError, ValueError):
        got = Phrase("something else")
    raise Invalid(field, expected=Phrase("JSON"), got=got, subject=name)


def check_text(raw: object, field: str, place: Phrase) -> str:
    """A text that could be a question to a model or its answer, stripped of spaces around it. Raises Invalid."""
    text = raw.strip() if isinstance(raw, str) else ""
    if not 1 <= len(text) <= LONGEST_TEXT or "\0" in text or not _is_whole(text):
        raise Invalid(
            field,
            expected=Phrase("a text of 1 to %(most)s characters", most=LONGEST_TEXT),
            got=raw if not isinstance(raw, str) or len(text) <= LONGEST_TEXT else Phrase("a longer one"),
            subject=place,
        )
    return text


def _is_whole(text: str) -> bool:
    """Whether the text has no lone surrogate, which JSON can express but no database stores."""
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)
