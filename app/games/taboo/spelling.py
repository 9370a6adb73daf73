"""Reads disguised English: the words that a reader can make out in a text, whatever characters it was typed with.

A text is first folded to plain lower-case letters; then its words are listed, including words that are spelled out
(`c-a-t`), broken up (`ca-t`) or written with digits (`c4t`). Source: Unicode Standard Annex 15 (NFKC) and Technical
Standard 39 (confusable characters), of which the common ones are here.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

# Characters that look like Latin letters and that no normalisation form of Unicode maps to them.
_LOOK_ALIKES = (
    ("АВСЕНІЈКМОРԚЅТУЅԜХҮѴԌӀ", "abcehijkmopqstyswxyvgi"),  # Cyrillic capitals
    ("авсԁеһіјкӏмпоргԛѕтуѵԝхүзьԍ", "abcdehijklmnoprqstyvwxyzbg"),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹ", "abezhikmnoptyxc"),  # Greek capitals
    ("αβϲεηικνορςστυχωγμϳ", "abcenikvopcotuxwyuj"),
    ("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz"),  # small capitals
    ("ɑɡıȷɩøđłħŧɛɔəʀþðƅ", "agijiodlhteoerpdb"),
    ("ⅼ∣ǀ℮⍺∂", "lllead"),
)
_MARKS = {"’": "'", "‘": "'", "‛": "'", "ʼ": "'", "′": "'", "´": "'", "−": "-"}
_LETTERS_IN_BOXES = (0x1F1E6, 0x1F150, 0x1F170)  # regional indicators, and two rows of white letters on black
_INVISIBLE = frozenset({"Mn", "Me", "Cf", "Cs", "Cn", "Co"})  # categories: accents, formats, what has no glyph
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")  # letters to Unicode, invisible to a reader

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_BROKEN = re.compile(r"(?<![^\W\d_])[^\W\d_]+(?:[-_*~.·][^\W\d_]+)+")
_MAYBE_BROKEN = re.compile(r"[-_*~.·][^\W\d_]")
# No run of single letters starts in a contraction: after `it's`, `Tom's` or `I'm` the next letter is the first.
# Nor with the letter that names a vitamin: "vitamin c a t shirt".
_RUN_START = r"(?<![^\W_])(?<![^\W_]')(?!i'[md]\b|(?<=vitamin )\w )"
_EVENLY_SPELLED = re.compile(rf"{_RUN_START}[^\W\d_]([\W_]{{1,5}})[^\W\d_](?:\1[^\W\d_](?![^\W_]))+")
SPELLED_OUT = re.compile(rf"{_RUN_START}[^\W\d_](?:[\W_]{{1,5}}[^\W\d_](?![^\W_])){{2,}}")
_SPELLED_WITH_DIGITS = re.compile(rf"{_RUN_START}(?<!_)[a-z0-9@$](?:[^\w@$]{{1,5}}[a-z0-9@$](?!\w)){{2,}}")
_NEIGHBOUR_BEFORE = re.compile(r"[ai]\W?\s")
_NEIGHBOUR_AFTER = re.compile(r"\s\W?[ai]$")
_NOT_A_LETTER = re.compile(r"[\W\d_]")
_MAYBE_LEET = re.compile(r"[a-z0-9][0-9@$!|€£¢]|[0-9@$!|€£¢][^\w]{0,5}[a-z]")
_LEET_WORD = re.compile(r"[a-z0-9@$!|€£¢]+")
_NUMBER = re.compile(r"\d+(?:[a-z]|st|nd|rd|th|am|pm|kg|km|cm|mm|ml|hrs?|mins?|secs?|ft|in|lbs?|oz|[kmgt]b)?")
_LEET = "0345789@$€£¢"
_LEET_READINGS = tuple(str.maketrans(f"{_LEET}1!|", f"oeastbgaselc{ones}") for ones in ("iii", "lll"))
_CONTRACTION = re.compile(r"[a-z]+n't")


def _look_alikes() -> dict[str, str]:
    table = dict(_MARKS)
    for foreign, latin in _LOOK_ALIKES:
        table.update(zip(foreign, latin, strict=True))
    for first in _LETTERS_IN_BOXES:
        table.update({chr(first + n): chr(ord("a") + n) for n in range(26)})
    return table


_TABLE = _look_alikes()


@lru_cache(maxsize=8192)
def _fold_character(character: str) -> str:
    if character in _TABLE:
        return _TABLE[character]
    folded = []
    for part in unicodedata.normalize("NFKD", character):
        category = unicodedata.category(part)
        if part in _TABLE:
            folded.append(_TABLE[part])
        elif category == "Pd":
            folded.append("-")
        elif category in _INVISIBLE or part in _FILLERS:
            continue  # accents and invisible characters
        elif category == "Cc":
            folded.append(" " if part.isspace() else "")
        elif category == "Lo":
            folded.append(" ")  # caseless scripts: their letters delimit English words as spaces do
        else:
            folded.append(part.casefold())
    return "".join(folded)


class _Folding(dict[int, str]):
    """A table for str.translate: ASCII is computed in advance, every other character on first use."""

    def __missing__(self, code: int) -> str:
        return _fold_character(chr(code))


_FOLDING = _Folding({code: _fold_character(chr(code)) for code in range(128)})


def fold(text: str) -> str:
    """The text in plain lower-case letters: compatibility forms and look-alikes mapped, accents and invisible
    characters removed. Punctuation stays, with all apostrophes and all hyphens unified.
    """
    if text.isascii() and not _CONTROL.search(text):
        return text.lower()
    return text.translate(_FOLDING)


def readings(folded: str) -> list[str]:
    """Every word that a reader can make out in a folded text: whole words first, in order, then disguised ones.

    The parts of a hyphenated compound and the stem of a possessive are words of their own; `can't` is not `can`.
    """
    found: list[str] = []
    for word in _WORD.findall(folded):
        if "'" not in word:
            found.append(word)
        elif not _CONTRACTION.fullmatch(word):
            found += word.split("'")
    # Most texts hide nothing, and checking for a disguise's minimal signs is cheaper than searching for the disguise.
    single_letters = sum(len(word) == 1 for word in found)
    if _MAYBE_BROKEN.search(folded):
        found += (_NOT_A_LETTER.sub("", broken) for broken in _BROKEN.findall(folded))
    if single_letters > 1:
        for pattern in (_EVENLY_SPELLED, SPELLED_OUT):
            for run in pattern.finditer(folded):
                found += _without_neighbours(run[0])
    if _MAYBE_LEET.search(folded):
        found += _leet(folded)
    return list(dict.fromkeys(found))


def readings_of_word(word: str) -> list[str]:
    """The readings of one word on its own, no part of which counts: `cat-like` reads `catlike` only, `cat's` is
    `cat`.
    """
    plain = _NOT_A_LETTER.sub("", word.removesuffix("'s"))
    return [*(_without_neighbours(word) if SPELLED_OUT.fullmatch(word) else [plain]), *_leet(word)]


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: it is empty, or contains only spaces and invisible characters."""
    return all(c.isspace() or c in _FILLERS or unicodedata.category(c) in _INVISIBLE for c in text)


def _without_neighbours(run: str) -> Iterator[str]:
    """A spelled-out run, with and without an `a` or `I` before or after it that is separated by a space."""
    letters = _NOT_A_LETTER.sub("", run)
    starts = (0, 1) if _NEIGHBOUR_BEFORE.match(run) else (0,)
    ends = (len(letters), len(letters) - 1) if _NEIGHBOUR_AFTER.search(run) else (len(letters),)
    yield from (letters[start:end] for start in starts for end in ends)


def _leet(folded: str) -> Iterator[str]:
    """Words with digits and symbols as letters; a number, with or without its unit, stays a number."""
    spelled = (re.sub(r"[^\w@$]|_", "", run) for run in _SPELLED_WITH_DIGITS.findall(folded))
    for word in (*_LEET_WORD.findall(folded), *spelled):
        core = word.strip("!|")
        if core.isalpha() or _NUMBER.fullmatch(core) or not any("a" <= c <= "z" for c in core):
            continue
        for reading in _LEET_READINGS:
            plain = core.translate(reading)
            if plain.isalpha():
                yield plain
