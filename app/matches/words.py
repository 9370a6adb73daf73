"""The words of a text for the search over matches, search queries, and where a text matches one. Pure.

A word is a run of letters and digits, in the form in which texts are compared (NFKC, case folded); in scripts that put
no spaces between words, each character is one. Both databases are given the words, so that both find the same.

Source: Unicode Standard Annex 15 (normalisation forms) and the Unicode Standard, section 3.13 (case folding)
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from app.core.errors import Invalid, Phrase

MOST_CHARACTERS = 200  # in a search
BETWEEN_LINES = "¶"  # stands in place of a word, so that no phrase spans two lines
_MOST_BYTES = 400_000  # bytes of one match's words: PostgreSQL stores less than a megabyte of them
# Han, Hiragana and Katakana, Thai, Lao, Myanmar and Khmer.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
# Most texts are ASCII, and each match is indexed while its last move waits: this takes half of the time.
_ASCII_WORDS = {code: " " for code in range(128) if not chr(code).isalnum()}
_TERM = re.compile(r'(?P<without>(?<!\S)-)?(?:"(?P<phrase>[^"]*)"?|(?P<plain>[^\s"]+))(?P<beginning>(?<=")\*)?')


class Term(NamedTuple):
    """Consecutive words; with `beginning`, the last one may be the beginning of a longer word."""

    words: tuple[str, ...]
    beginning: bool = False


class TextQuery(NamedTuple):
    """The terms that must all be said in a match, and those that must not be."""

    wanted: tuple[Term, ...]
    unwanted: tuple[Term, ...]


class Piece(NamedTuple):
    """A part of a text, and whether it is what was searched for."""

    text: str
    marked: bool


class _Place(NamedTuple):
    word: str
    start: int
    end: int


def words_of(text: str) -> list[str]:
    """The words of a text, in their order."""
    if text.isascii():
        return text.lower().translate(_ASCII_WORDS).split()
    return [place.word for place in _words_with_places(unicodedata.normalize("NFC", text))]


def indexed(lines: Iterable[str]) -> str:
    """The words of a match's lines as the index holds them: separated by single spaces.

    Lines that would make it longer than PostgreSQL accepts are left out.
    """
    found: list[str] = []
    room = _MOST_BYTES
    for line in lines:
        words = " ".join((*words_of(line), BETWEEN_LINES))
        room -= len(words.encode()) + 1
        if room < 0:
            break
        found.append(words)
    return " ".join(found)


def read_query(text: str) -> TextQuery:
    """The query that a search text stands for: words, "phrases", begin*, and -unwanted ones; every text is a query.

    Raises Invalid for one of more than MOST_CHARACTERS.
    """
    if len(text) > MOST_CHARACTERS:
        raise Invalid("text", expected=Phrase("at most %(most)s characters", most=MOST_CHARACTERS), got=len(text))
    wanted: list[Term] = []
    unwanted: list[Term] = []
    for found in _TERM.finditer(text):
        said = found["phrase"] if found["plain"] is None else found["plain"]
        beginning = found["beginning"] is not None or (found["plain"] or "").endswith("*")
        if words := tuple(words_of(said)):
            (unwanted if found["without"] else wanted).append(Term(words, beginning))
    return TextQuery(tuple(wanted), tuple(unwanted))


def marked(text: str, query: TextQuery) -> list[Piece]:
    """The text in pieces, with those that the query wants marked; a single unmarked piece if there are none.

    The text is composed (NFC), so that a letter and its accent are not separated.
    """
    text = unicodedata.normalize("NFC", text)
    places = [*_words_with_places(text)]
    spans = sorted(span for term in query.wanted for span in _spans(places, term))
    pieces: list[Piece] = []
    done = 0
    for start, end in spans:
        if end <= done:
            continue
        if start > done:
            pieces.append(Piece(text[done:start], marked=False))
        pieces.append(Piece(text[max(start, done) : end], marked=True))
        done = end
    if done < len(text) or not pieces:
        pieces.append(Piece(text[done:], marked=False))
    return pieces


def says(text: str, query: TextQuery) -> bool:
    """Whether a line contains any term that the query wants."""
    return any(piece.marked for piece in marked(text, query))


def _spans(places: Sequence[_Place], term: Term) -> Iterator[tuple[int, int]]:
    length = len(term.words)
    for first in range(len(places) - length + 1):
        part = places[first : first + length]
        *before, last = (place.word for place in part)
        ends = last.startswith(term.words[-1]) if term.beginning else last == term.words[-1]
        if ends and tuple(before) == term.words[:-1]:
            yield part[0].start, part[-1].end


def _words_with_places(composed: str) -> Iterator[_Place]:
    """The words of a composed text, each with its start and end; one letter may stand for several words."""
    for found in _WORD.finditer(composed):
        for word in _WORD.findall(unicodedata.normalize("NFKC", found[0]).casefold()):
            yield _Place(word, found.start(), found.end())
