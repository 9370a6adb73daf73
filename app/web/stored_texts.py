"""English texts stored in the database, such as why a job stopped, in the language of the page.

They were written by workers, which know no languages. Most are phrases of the catalogs with their values filled in: a
text that matches a phrase's pattern becomes its translation with the same values, each of which may be such a text
itself.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from flask_babel import get_locale
from markupsafe import Markup

from app.core.config import ENGLISH
from app.web.labels import in_code
from app.web.translations import N_, read_catalog

_VALUE = re.compile(r"%\((\w+)\)s")
_LEAST = 5  # letters of a pattern besides its values: with fewer, as in "%(this)s or %(that)s", it matches too much
_SENTENCE = 4  # words: shorter texts count as names
_DEPTH = 10  # levels of nested values
_SEPARATORS = (": ", "; ", ", ")  # between an error's parts: its subject, what was expected, what to do


# Texts that workers store without a Phrase; tests/integration/test_stored_texts.py has each made by its own code.
STORED = (
    N_("budget of %(budget)s reached: %(spent)s spent; resume with a higher one"),
    N_("budget of %(budget)s tokens reached: %(spent)s spent; resume with a higher one"),
    N_("budget of %(budget)s tokens reached: %(spent)s spent, %(part)s of them by estimate; resume with a higher one"),
    N_(
        "budget of %(budget)s a month of this installation reached: %(spent)s spent since %(day)s, UTC; raise"
        " SPENDING_LIMIT_USD or wait for the next month"
    ),
    N_(
        "budget of %(budget)s a day of this installation reached: %(spent)s spent since %(day)s, UTC; raise"
        " SPENDING_LIMIT_USD or wait for the next day"
    ),
    N_("all spending was stopped by %(name)s at %(moment)s UTC; end that stop first"),
    N_("internal error %(reference)s: %(what)s; the log says more under this reference"),
    N_("something broke"),
    N_("internal error: %(what)s ended with exit code %(code)s; its log says where"),
    N_("%(what)s ended with exit code %(code)s and said nothing"),
    *(N_("the training"), N_("the benchmark")),
    *(N_("its status is cancelled"), N_("its status is failed")),
    N_("%(count)s workers died while running it, and no call was answered in between"),
    N_("%(count)s workers died while playing the matches %(first)s to %(last)s; `flask round resume` tries them again"),
    N_(
        "the training or its worker was killed %(count)s times without a new step between, probably for lack of memory;"
        " lower batch and raise accumulation by as much"
    ),
    N_(
        "the benchmark or its worker was killed %(count)s times without a task scored between, probably for lack of"
        " memory; lower batch"
    ),
    N_("the disk of %(folder)s is full; make room and resume the job"),
    N_("the disk of %(folder)s is full; make room and resume"),
    N_("no answer for %(seconds)s s: %(why)s"),
    N_("%(why)s (retries: %(count)s)"),
    *(N_("a connection to %(server)s"), N_("a certificate that can be trusted"), N_("an answer"), N_("a whole answer")),
    *(N_("an answer by HTTP"), N_("one that breaks off"), N_("connection refused"), N_("something else"), N_("none")),
)


class _Pattern(NamedTuple):
    """A phrase with values: its longest piece, which a matching text must contain, and where the values are."""

    piece: str
    form: re.Pattern[str]
    translation: str


def stored_text(text: str) -> Markup:
    """A stored text for a page: translated, or marked as English; anything in back-ticks is set as code."""
    language = str(get_locale() or ENGLISH)
    found = text if language == ENGLISH else _translated_stored_text(language, text, _DEPTH)
    return Markup('<span lang="en">{}</span>').format(in_code(text)) if found is None else in_code(found)


@lru_cache(maxsize=2000)
def _translated_stored_text(language: str, text: str, depth: int) -> str | None:
    """A text in a language; None where no part of it is in the catalog."""
    if depth == 0 or not text.strip():
        return None
    catalog = _phrases(language)
    if text in catalog:
        return catalog[text]
    for pattern in _patterns(language):
        if pattern.piece in text and (match := pattern.form.fullmatch(text)):
            values = {name: _translated_part(language, value, depth) for name, value in match.groupdict().items()}
            if None not in values.values():
                return pattern.translation % values
    for separator in _SEPARATORS:
        first, mark, rest = text.partition(separator)
        if mark:
            found = [_translated_part(language, part, depth) for part in (first, rest)]
            if None not in found and found != [first, rest]:
                return separator.join(map(str, found))
    return None


def _translated_part(language: str, text: str, depth: int) -> str | None:
    """A part of a text: translated, or unchanged if it is a name or a figure; None for a sentence in English."""
    found = _translated_stored_text(language, text, depth - 1)
    return text if found is None and len(text.split()) < _SENTENCE else found


@lru_cache
def _phrases(language: str) -> dict[str, str]:
    return {
        message.id: message.string
        for message in read_catalog(language)
        if isinstance(message.id, str) and message.id and isinstance(message.string, str) and message.string
    }


@lru_cache
def _patterns(language: str) -> Sequence[_Pattern]:
    """The phrases with values: first those that only workers use, then those with the most letters."""
    found = []
    for template, translation in _phrases(language).items():
        names, pieces = _VALUE.findall(template), _VALUE.split(template)[::2]
        letters = sum(character.isalpha() for piece in pieces for character in piece)
        if not names or letters < _LEAST or len({*names}) < len(names):
            continue
        # The subject of a text, before a colon, is no value that a phrase may begin with.
        begin = "(?!.*: )" if template.startswith("%(") and template not in STORED else ""
        form = begin + _VALUE.sub(lambda value: f"(?P<{value[1]}>.+?)", _escaped(template))
        pattern = _Pattern(max(pieces, key=len).replace("%%", "%"), re.compile(form, re.S), translation)
        found.append((template not in STORED, -letters, pattern))
    return [pattern for *_, pattern in sorted(found, key=lambda each: each[:2])]


def _escaped(template: str) -> str:
    """A template as a pattern, its values left as they are."""
    return "".join(
        part if place % 2 else re.escape(part.replace("%%", "%"))
        for place, part in enumerate(re.split(r"(%\(\w+\)s)", template))
    )
