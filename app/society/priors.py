"""What agents remember at the start: questions with answers, good ones and bad ones.

A file holds them as JSON: {"good": [{"question": "…", "answer": "…"}, …], "bad": […]}.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from app.core.config import ROOT
from app.core.errors import Invalid, Phrase, Verbatim
from app.society.config import BAD, GOOD, Label
from app.society.text_files import check_text, decode, decode_json, read_bytes

SHIPPED = ROOT / "data" / "society" / "priors.json"
_FIELD = "priors"

Priors: TypeAlias = Mapping[Label, tuple[tuple[str, str], ...]]  # questions with answers, by label


def read_priors(path: Path | None = None) -> Priors:
    """The first memories in a file; None: those that ship. Raises Invalid with the path and the place at fault."""
    path = path or SHIPPED
    return parse_priors(read_bytes(path, _FIELD), str(path))


def parse_priors(raw: bytes, name: str) -> Priors:
    """The first memories in the content of a file that errors call `name`; a label may be missing. Raises Invalid."""
    found = decode_json(decode(raw, _FIELD, name), _FIELD, name)
    if not isinstance(found, dict) or not found or not set(found) <= {GOOD, BAD}:
        got = Verbatim(", ".join(map(repr, found))[:80] or "none" if isinstance(found, dict) else type(found).__name__)
        raise Invalid(
            _FIELD,
            expected=Phrase("an object with lists of questions and answers under the labels good and bad"),
            got=got,
            subject=name,
        )
    return {label: _pairs(found[label], label, name) for label in (GOOD, BAD) if label in found}


def _pairs(raw: object, label: Label, name: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(raw, list):
        raise Invalid(
            _FIELD,
            expected=Phrase("a list under the label %(label)s", label=label),
            got=Verbatim(type(raw).__name__),
            subject=name,
        )
    pairs: dict[str, str] = {}
    for number, each in enumerate(raw, 1):
        place = Phrase("%(name)s, %(label)s, item %(number)s", name=name, label=label, number=number)
        if not isinstance(each, dict) or set(each) != {"question", "answer"}:
            got = Verbatim(", ".join(map(str, each))[:80] or "none") if isinstance(each, dict) else each
            raise Invalid(_FIELD, expected=Phrase("an object with question and answer"), got=got, subject=place)
        question = check_text(each["question"], _FIELD, place)
        if question in pairs:
            raise Invalid(
                _FIELD,
                expected=Phrase("each question once under a label, as it keeps its first answer"),
                got=question,
                subject=place,
            )
        pairs[question] = check_text(each["answer"], _FIELD, place)
    return tuple(pairs.items())
