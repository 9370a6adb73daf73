"""English texts that the database holds, such as why a job stopped, in the language of the page.

They were written by workers, which know no languages. Most of them are phrases of the catalogs with their values put
in: what fits the pattern of one is its translation with the same values, each of which may be such a text itself.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from flask_babel import get_locale
from markupsafe import Markup

from app.core.config import ENGLISH
from app.web.labels import in_code
from app.web.translations import read_catalog

_VALUE = re.compile(r"%\((\w+)\)s")
_LEAST = 5  # letters of a pattern beside its values: fewer, such as those of "%(this)s or %(that)s", fit too much
_DEPTH = 6  # of values within values
_SEPARATORS = ("; ", ": ", ", ")  # between what an error says: what it is about, what was expected, what to do


class _Pattern(NamedTuple):
    """A phrase with values: its longest piece, which a text that fits has to hold, and where the values are."""

    piece: str
    form: re.Pattern[str]
    translation: str


def stored_text(text: str) -> Markup:
    """A stored text for a page: translated, or marked as English; back-ticks set what is between them as code."""
    language = str(get_locale() or ENGLISH)
    found = text if language == ENGLISH else _translated(language, text, _DEPTH)
    return Markup('<span lang="en">{}</span>').format(in_code(text)) if found is None else in_code(found)


@lru_cache(maxsize=2000)
def _translated(language: str, text: str, depth: int) -> str | None:
    """A text in a language; None where no part of it is in the catalog."""
    if depth == 0 or not text.strip():
        return None
    catalog = _phrases(language)
    if text in catalog:
        return catalog[text]
    for pattern in _patterns(language):
        if pattern.piece in text and (match := pattern.form.fullmatch(text)):
            values = {
                name: _translated(language, value, depth - 1) or value for name, value in match.groupdict().items()
            }
            return pattern.translation % values
    for separator in _SEPARATORS:
        if separator in text:
            parts = [(part, _translated(language, part, depth - 1)) for part in text.split(separator)]
            if any(found is not None for _, found in parts):
                return separator.join(part if found is None else found for part, found in parts)
    return None


@lru_cache
def _phrases(language: str) -> dict[str, str]:
    return {
        message.id: message.string
        for message in read_catalog(language)
        if isinstance(message.id, str) and message.id and isinstance(message.string, str) and message.string
    }


@lru_cache
def _patterns(language: str) -> Sequence[_Pattern]:
    """The phrases with values, those that say most first."""
    found = []
    for template, translation in _phrases(language).items():
        names, pieces = _VALUE.findall(template), _VALUE.split(template)[::2]
        letters = sum(character.isalpha() for piece in pieces for character in piece)
        if not names or letters < _LEAST or len({*names}) < len(names):
            continue
        form = _VALUE.sub(lambda value: f"(?P<{value[1]}>.+?)", _escaped(template))
        found.append((letters, _Pattern(max(pieces, key=len).replace("%%", "%"), re.compile(form, re.S), translation)))
    return [pattern for _, pattern in sorted(found, key=lambda each: -each[0])]


def _escaped(template: str) -> str:
    """A template as a pattern, its values left as they are."""
    return "".join(
        part if place % 2 else re.escape(part.replace("%%", "%"))
        for place, part in enumerate(re.split(r"(%\(\w+\)s)", template))
    )
