"""Reads the rating from 1 to 7, and the reason, out of what a critic or an observer wrote. Pure.

Strict: whatever could be read in two ways holds no rating, and neither does a number off the scale or of another
scale. What is looked for, the first of these that the text has at all:

1. a number behind a label and a colon ("Rating: 6"), of which the last one counts; other labels than "rating" and
   "score" only where there is neither;
2. a number of seven ("6/7", "6 out of 7");
3. a number in a sentence that rates ("I would give it a 6");
4. a number alone: all of the text, its first line or what that begins with, or its last line.

Of 2 to 4 several different numbers are no rating.

Departure from the reference, where a rating other than a single digit behind the exact label became 8 or -1.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from app.society.config import LARGEST_RATING

_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_WORDS = {name: number for number, name in enumerate(_NAMES)}
_WORD = rf"(?:{'|'.join(_NAMES)})\b"
_DIGITS = r"[-+<>≤≥=]{0,2}\d+(?:[.,]\d{1,2}(?!\d))?½?"
_NUMBER = rf"(?:{_DIGITS}|{_WORD})"
_ABOUT = r"(?:(?:an?|about|around|roughly|approximately|approx\.?|probably|solid|strong|~|≈)\s*)*"
_IN_WORDS = rf"[a-z ]{{1,30}}\((?=\s*{_NUMBER}\s*(?:\)|/|out\b))"  # "very good (6)"

_LABEL = re.compile(
    rf"\b(?:rating|score|rate|grade|mark|alignment|engagement|overall)\b[^:=\n\d.!?]{{0,60}}[:=]\s*(?:{_ABOUT}|{_IN_WORDS})"
    rf"(?P<value>{_NUMBER}|n\s?/\s?a\b|none\b|unknown\b)",
    re.IGNORECASE,
)
_USUAL = re.compile(r"\b(?:rating|score)\b", re.IGNORECASE)
_OF_SEVEN = re.compile(
    rf"(?<![\w.,/+-])(?P<value>{_NUMBER})(?=\s*(?:points?\s+|stars?\s+)?[(]?\s*(?:/|out\s+of)\s*(?:a\s+possible\s+)?"
    r"(?:7(?:\.0)?|seven)(?![\w/%]|[.,]\d))",
    re.IGNORECASE,
)
_SENTENCE = re.compile(
    r"\b(?:rate|rated|rating|score|scored|grade|give|gave|giving|assign|award|deserves?|earns?|gets?|merits?)\b"
    rf"(?P<between>[^\d.!?:;\n]{{0,60}}?)(?P<value>(?<!\w)(?:{_DIGITS}|(?!one|zero){_WORD}))"
    r"(?=\s*(?:$|[.,;:!?)\n—–]|-\s|\(|because\b|since\b|for\b|as\b|due\b|on\b|from\b|overall\b|reason\b|here\b|based\b|points?\b))",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:not|never|cannot|hardly|than|if|unless|every|each)\b|n['’]t\b", re.IGNORECASE)
_CLAUSE = 80  # characters before a sentence's verb in which a word may turn its meaning round
_ALONE = re.compile(rf"\s*[(]?{_ABOUT}(?P<value>{_NUMBER})\s*(?:points?)?[)]?\s*[.!]?\s*", re.IGNORECASE)
_BEGINNING = re.compile(
    rf"\s*[(]?(?P<value>{_NUMBER})(?P<mark>\s*[.)](?=\s)|\s*[:;,—–](?=\D)|\s+-\s|\s+(?=reason\b))", re.IGNORECASE
)
_LISTED = re.compile(r"^\s*\d+\s*[.)]\s", re.MULTILINE)

# What is behind a number, in its line, that is then none, or one of several.
_BLANK = r"[^\S\n]*"
_OTHER = re.compile(
    rf"[\w%½°]|[.,]\d|{_BLANK},{_BLANK}\d|\+|-\w|{_BLANK}and\s+a\s+half\b"
    rf"|{_BLANK}(?:-|–|—|−|/|&|to\b|or\b|and\b|through\b|,?{_BLANK}(?:but\s+)?(?:maybe|perhaps|possibly)\b)"
    rf"{_BLANK}(?:even\s+)?(?:an?\s+)?{_NUMBER}",
    re.IGNORECASE,
)
_UNIT = re.compile(rf"{_BLANK}(?:percent|per cent|%|stars?)", re.IGNORECASE)
_OUT_OF = re.compile(
    rf"{_BLANK}(?:points?\s+|stars?\s+)?[(]?{_BLANK}(?:/|out\s+of|of){_BLANK}(?:an?\s+)?"
    rf"(?:possible\s+|maximum\s+(?:of\s+)?)?(?P<of>{_NUMBER})",
    re.IGNORECASE,
)
_SCALE = re.compile(
    r"(?<![\d.,])(?:1|one)\s*(?:-|–|—|−|to|through|and|\.\.\.?)\s*(?:7|seven)(?![\w/%]|[.,]\d)", re.IGNORECASE
)
_POINTS = re.compile(r"\b(?:7|seven)[-\s]point\b", re.IGNORECASE)
_REASON = re.compile(
    r"(?:reason(?:ing|s)?|explanation|rationale|justification|feedback|comment|because)[\"']?\s*:\s*[\"']?",
    re.IGNORECASE,
)
_MARKUP = str.maketrans(
    dict.fromkeys('*_`"“”[]{}#|\\$', " ") | {chr(0xFF10 + digit): str(digit) for digit in range(10)}
    | {"：": ":", "／": "/", "．": ".", "−": "-"}
)  # fmt: skip
_BRACKETS = re.compile(r"<(\d(?:\.\d)?)>")
_FRAGMENT = re.compile(r"(?:^|(?<=[.!?\n,:]))[^.!?\n,:]{0,30}\Z")
_NEAR = 60  # characters behind the rating in which a reason's label is the reason's
_MARKS = " \t\r\n#*_`"
_EDGES = " \t\r\n.,;:|/#*_-–—\"'`()[]{}<>"


@dataclass(frozen=True, slots=True)
class ReadRating:
    """What a text says. `rating` is from 1 to 7, or None; `reason` the text without it, or all of it."""

    rating: float | None
    reason: str


class _Found(NamedTuple):
    """A number and its place with its label, None for one that is no rating."""

    rating: float | None
    begin: int
    end: int


def read_rating(text: str) -> ReadRating:
    """The rating and the reason in a text. The rating is None where there is none, or more than one could be meant."""
    plain = _without_markup(text)
    for found, is_apart in (
        (_labelled(plain), True),
        (_agreed(_of_seven(plain)), False),
        (_agreed(_in_sentences(plain)), False),
        (_agreed(_alone(plain)), True),
    ):
        if found is not None:
            leads = not text[: found.begin].strip(_EDGES)
            if found.rating is None or not (is_apart or leads):
                return ReadRating(found.rating, _without_label(text))
            return ReadRating(found.rating, _without(text, found))
    return ReadRating(None, _without_label(text))


def _without_markup(text: str) -> str:
    """The text without markup and without mentions of the scale, each character at its place."""
    plain = text.translate(_MARKUP)
    plain = _BRACKETS.sub(lambda match: f" {match[1]} ", plain)
    for mention in (_SCALE, _POINTS):
        plain = mention.sub(lambda match: " " * len(match[0]), plain)
    return plain


def _rating_of(text: str, match: re.Match[str]) -> float | None:
    """The number of a match as a rating, judged with what is behind it."""
    raw, rest = match["value"].lower(), text[match.end("value") :]
    if of := _OUT_OF.match(rest):
        if _read_rating(of["of"]) != LARGEST_RATING or _OTHER.match(rest[of.end() :]):
            return None
    elif _OTHER.match(rest) or _UNIT.match(rest):
        return None
    number = _read_rating(raw)
    return number if number is not None and 1 <= number <= LARGEST_RATING else None


def _read_rating(raw: str) -> float | None:
    if raw in _WORDS:
        return float(_WORDS[raw])
    half = 0.5 if raw.endswith("½") else 0.0
    try:
        return float(raw.removesuffix("½").replace(",", ".")) + half
    except ValueError:
        return None


# ---- Where ratings are --------------------------------------------------------------


def _labelled(text: str) -> _Found | None:
    matches = list(_LABEL.finditer(text))
    last = ([match for match in matches if _USUAL.search(match[0])] or matches)[-1:]
    return _found(text, last[0], last[0].start()) if last else None


def _of_seven(text: str) -> Iterable[_Found]:
    return [_found(text, match, match.start("value")) for match in _OF_SEVEN.finditer(text)]


def _in_sentences(text: str) -> Iterable[_Found]:
    for match in _SENTENCE.finditer(text):
        before = text[max(0, match.start() - _CLAUSE) : match.start()]
        if not _NEGATED.search(re.split(r"[.!?;\n]", before)[-1] + match["between"]):
            yield _found(text, match, match.start())


def _alone(text: str) -> Iterable[_Found]:
    if whole := _ALONE.fullmatch(text):
        yield _found(text, whole, whole.start())
        return
    lines = [match for match in re.finditer(r"[^\n]+", text) if match[0].strip()]
    for line in lines[:1] + lines[-1:]:
        if match := _ALONE.fullmatch(text, line.start(), line.end()):
            yield _found(text, match, match.start())
    beginning = _BEGINNING.match(text)
    if beginning and not _is_a_list(text, beginning):
        yield _found(text, beginning, beginning.start())


def _is_a_list(text: str, beginning: re.Match[str]) -> bool:
    """Whether a number at the beginning may count points: "1." may be the first of a list that breaks off."""
    if beginning["mark"].strip() not in (".", ")"):
        return False
    return beginning["value"] in ("1", "one") or len(_LISTED.findall(text)) > 1


def _found(text: str, match: re.Match[str], begin: int) -> _Found:
    out_of = _OUT_OF.match(text, match.end("value"))
    return _Found(_rating_of(text, match), begin, out_of.end() if out_of else match.end("value"))


def _agreed(found: Iterable[_Found]) -> _Found | None:
    """One of the finds where all have the same rating; one without a rating where they differ."""
    every = list(found)
    if not every:
        return None
    return every[0] if len({each.rating for each in every}) == 1 else every[0]._replace(rating=None)


# ---- The reason ----------------------------------------------------------------------


def _without(text: str, found: _Found) -> str:
    """The reason: what is behind its own label, or else before and behind the rating."""
    after = text[found.end :]
    if label := _REASON.search(after, 0, _NEAR):
        return after[label.end() :].strip(_MARKS)
    # "Overall" of "Overall rating: 5" belongs to the label.
    before = _FRAGMENT.sub("", text[: found.begin]).rstrip(" \t\r\n,;:|/#*_-–—\"'`([{<")
    after = after.lstrip(_EDGES).rstrip()
    return _without_label(" ".join(part for part in (before, after) if re.search(r"\w", part)))


def _without_label(text: str) -> str:
    """The text without the label that it may begin with."""
    label = _REASON.match(text.lstrip(_EDGES))
    return (text.lstrip(_EDGES)[label.end() :] if label else text).strip(_MARKS)
