"""Example texts and similar blanks that nobody has filled in: no wave opens with one. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from app.core.errors import shown
from app.core.validation import KeyPath
from app.studies.design import StudyDesign

# Domain names that belong to nobody. Source: RFC 2606; .edu is not reserved, but example.edu is in the shipped
# examples.
_NOBODYS = r"(?:[\w-]+\.)*example\.(?:com|org|net|edu)\b"
# How a blank begins: "[your name]", "[Insert the date]", "[hier Ihren Namen eintragen]".
_ASKED = (
    r"(?:your|write|insert|enter|add|put|fill|describe|explain|state|replace|name|date|place|amount|number|title|e-?mail|mail"
    r"|phone|telephone|address|contact|university|institution|department|researchers?|investigators?|principal|ethics|irb"
    r"|study|todo|tbd|x{2,}|\.{3}|…|hier|bitte|ihre?[nmrs]?|datum|ort|universität|hochschule|anschrift|telefon|betrag)"
)
_WHOSE = r"(?:name|university|institution|department|e-?mail|mail|address|phone|telephone|contact|title|text)"
_SOURCES = (
    # Words of the shipped examples, and similar ones.
    rf"\b(?:write|insert|enter|put|add|type) (?:your|the) {_WHOSE}[^.\n]{{0,40}} here\b",
    r"\bhier (?:ihre?n?|den|die|das) [^.\n]{1,40} (?:eintragen|einsetzen|einfügen)\b",
    rf"(?<=[@/]){_NOBODYS}",  # the part before it is searched separately: starting at each letter would be slow
    rf"\[\s*{_ASKED}(?![\w-])[^\[\]\n]*\](?![(\[:])",  # neither a Markdown link nor the target of one
    rf"<\s*{_ASKED}(?![\w-])[^<>@/\n]*>",
    r"\blorem ipsum\b",
    r"(?-i:\b(?:TODO|FIXME|TBD|XXX+)\b)",
)
_ANYWHERE = re.compile("|".join(_SOURCES), re.IGNORECASE)
# What stands alone in place of one's own entry: as a contact, a controller, a code, an id at the recruiter.
_ALONE = re.compile(
    r"(?:the |my )?(?:name|university|institution|e-?mail|mail)(?: here)?|your .{1,40}|ihre? .{1,40}|n\.? ?n\.?"
    r"|(?:your|my|the)?[ _-]?(?:completion)?[ _-]?(?:code|(?:study|project)?[ _-]?id)(?:[ _-]?here)?"
    r"|x{2,}|\?+|\.{2,}|…|-+|placeholder|example|change[ _-]?me|dummy|foo|bar|asdf|test[ _-]?code|abc123",
    re.IGNORECASE,
)
_OWN = ("contact", "privacy", "codes", "study_id", "project_id")  # keys whose values never hold such words on purpose
_OF_WAVE = ("codes", "provider")
_BEFORE = re.compile(r"[^\s<>()\"']*$")
_LONGEST = 60  # characters shown


class Placeholder(NamedTuple):
    """A blank that was not filled in: the key, the file if the text is in one, and the words."""

    path: KeyPath
    file: str | None
    words: str

    def __str__(self) -> str:
        key = ".".join(map(str, self.path))
        return f"{key}{f' ({self.file})' if self.file else ''} {shown(self.words, _LONGEST)}"


def in_design(design: StudyDesign, texts: Mapping[str, str]) -> Iterator[Placeholder]:
    """All blanks in a design and in the texts that people read, in the order of the design's keys."""
    written = design.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for path, text in _nested_texts(written, ()):
        yield from _placeholders_in_text(path, text)
        name = design.text_files.get(path)
        if name is not None:
            for match in _ANYWHERE.finditer(texts[name]):
                yield Placeholder(path, name, _found_words(match))


def in_wave(settings: Mapping[str, Any]) -> Iterator[Placeholder]:
    """All blanks in the file of a wave: in its codes, the ids at the recruiter, and the return addresses."""
    for key in _OF_WAVE:
        for path, text in _nested_texts(settings.get(key), (key,)):
            yield from _placeholders_in_text(path, text)


def _placeholders_in_text(path: KeyPath, text: str) -> Iterator[Placeholder]:
    match = _ANYWHERE.search(text)
    if match is not None:
        yield Placeholder(path, None, _found_words(match))
    elif _ALONE.fullmatch(text.strip()) and not {*_OWN}.isdisjoint((path[0], path[-1])):
        yield Placeholder(path, None, text.strip())


def _found_words(match: re.Match[str]) -> str:
    """The words found, including a person or scheme before a host."""
    start = match.start()
    before = _BEFORE.search(match.string[max(0, start - _LONGEST) : start])
    return f"{before[0] if before and match.string[start - 1 : start] in ('@', '/') else ''}{match[0]}"


def _nested_texts(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """All texts of a mapping, each with its keys."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _nested_texts(each, (*path, key))
    elif isinstance(value, list | tuple):
        for at, each in enumerate(value):
            yield from _nested_texts(each, (*path, at))
