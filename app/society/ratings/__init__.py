"""Parses a rating, and the reason for it, from the text of a critic or an observer. Pure.

A prompt asks for a rating on a scale, of an aspect, before or after the reason; a `RatingForm` says which, and the
parser follows it. It finds the numbers that may be the rating (`candidates.py`), each with its evidence: a label, a
sentence that rates, its scale, its position. It discards those of other aspects, of other people, of drafts and within
the reason. What the text settles on takes precedence over what it took back, the aspect by name over a rating without
one, a final rating over others, and a clear label over a sentence. Numbers that still differ are no rating, and neither
is a range, a hedge, or a number on another scale: ambiguity means missing.

Departure from the reference, where a rating other than a single digit behind the exact label became 8 or
-1.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.society.config import ALIGNMENT, ENGAGEMENT, LARGEST_RATING
from app.society.ratings.candidates import Candidate, Finder, Strength
from app.society.ratings.fields import fields_of
from app.society.ratings.scales import mentions
from app.society.ratings.text import LINE, WORD, Token, Tokens, plain_text, tokens_of
from app.society.ratings.words import CORRECTIONS, EXAMPLES, REASON


@dataclass(frozen=True, slots=True)
class RatingForm:
    """The form of a rating in a prompt: from `low` to `high`, for an aspect, before or after the reason."""

    low: int
    high: int
    aspect: str
    rating_first: bool = True


ALIGNMENT_FORM = RatingForm(1, LARGEST_RATING, ALIGNMENT)
ENGAGEMENT_FORM = RatingForm(1, LARGEST_RATING, ENGAGEMENT)

_CORRECTION = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, CORRECTIONS))})", re.IGNORECASE)
_EXAMPLE = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, EXAMPLES))})\W{{0,6}}\Z", re.IGNORECASE)
_LINE_START = re.compile(r"(?:^|\n)[\s#*_`>•·\-–+(\[{|]*(?:\d{1,2}\s?[.)]\s+[*_]*)?\Z")
_KEY = re.compile(r"""(["'])[\w -]{1,40}\1\s?[:=]""")  # a quotation with a label and a number must not be such a key
_BEFORE_LABEL = 40  # characters of a line that marks before a label may occupy
_REASON = re.compile(
    r"(?:reason(?:ing|s)?|explanation|rationale|justification|feedback|comment|because)[\"']?\s*:\s*[\"']?",
    re.IGNORECASE,
)
_FRAGMENT = re.compile(r"(?:^|(?<=[.!?\n,:]))[^.!?\n,:]{0,30}\Z")
_PASSAGE = re.compile(r'"[^"\n]{1,600}"')
_SAID = re.compile(r"[^\W\d_]+")
_MOST_OF_QUOTED_RATING = 3  # words in quotes that may be a rating, such as "5 out of 7"
_OWN_WORDS = re.compile(
    r"\b(?:my (?:final )?(?:answer|rating|score)|rating|score|I (?:would|will|'d|'ll) \w+)\b\W*(?:is)?\W*\Z",
    re.IGNORECASE,
)
_NEAR = 60  # characters after the rating within which a reason's label is that of its reason
_MARKS = " \t\r\n#*_`"
_EDGES = " \t\r\n.,;:|/#*_-–—\"'`()[]{}<>"


@dataclass(frozen=True, slots=True)
class ReadRating:
    """A text's rating and reason. `rating` is on the scale, or None; `reason` is the rest of the text, or all."""

    rating: float | None
    reason: str


def read_rating(text: str, form: RatingForm) -> ReadRating:
    """The rating and the reason in a text. The rating is None if there is none, or it is ambiguous."""
    if (fields := fields_of(text)) is not None:
        found = _chosen_candidate(fields.text, form)
        return ReadRating(found.rating if found else None, fields.reason or _without_label(text))
    found = _chosen_candidate(text, form)
    if found is None:
        return ReadRating(None, _without_label(text))
    leads = not text[: found.begin].strip(_EDGES)
    if found.rating is None or not (found.is_apart or leads):
        return ReadRating(found.rating, _without_label(text))
    return ReadRating(found.rating, _without(text, found))


# ---- Deciding -------------------------------------------------------------------------


def _chosen_candidate(text: str, form: RatingForm) -> Candidate | None:
    """The candidate that is used; one without a rating if it is ambiguous."""
    plain = plain_text(text)
    ours, others = mentions(plain, form.low, form.high)
    tokens = tokens_of(plain, [(each.begin, each.end) for each in ours])
    found = [*Finder(tokens, form.low, form.high, form.aspect, form.rating_first).candidates()]
    reasons = _reasons(plain, tokens, found)
    found = [*_unquoted(plain, _outside(reasons, plain, tokens, found))]
    if any(not _is_within(reasons, each.begin) for each in others):
        found = [each if each.has_scale else replace(each, rating=None) for each in found]
    found = _candidates_after_correction(plain, [each for each in found if each.aspect in (None, form.aspect)])
    for preferred in (
        [each for each in found if each.aspect == form.aspect and each.strength >= Strength.NAMED],
        [each for each in found if each.is_final],
        found,
    ):
        if preferred:
            return _agreed(preferred)
    return None


Spans = Sequence[tuple[int, int]]


def _reasons(text: str, tokens: Tokens, found: Sequence[Candidate]) -> Spans:
    """The spans of reasons: from their label up to the label of a rating that begins a line or is a quoted key."""
    ends = [
        each.begin
        for each in found
        if each.strength == Strength.LABELLED and (_begins_line(text, each) or _KEY.match(text, max(0, each.begin - 1)))
    ]
    ends.append(len(text) + 1)
    spans: list[tuple[int, int]] = []
    at = 0
    for label in _reason_labels(tokens):
        begin = tokens[label].begin
        while ends[at] <= begin:
            at += 1
        if not spans or spans[-1][1] <= begin:
            spans.append((begin, ends[at]))
    return spans


def _is_within(spans: Spans, place: int) -> bool:
    before = bisect_right(spans, (place, len(spans) and spans[-1][1] + 1)) - 1
    return before >= 0 and place < spans[before][1]


def _begins_line(text: str, found: Candidate) -> bool:
    return _LINE_START.search(text[max(0, found.begin - _BEFORE_LABEL) : found.begin]) is not None


def _outside(spans: Spans, text: str, tokens: Tokens, found: Sequence[Candidate]) -> list[Candidate]:
    """The candidates outside reasons, and of those within, the ones that end the text or take another one back."""
    kept: list[Candidate] = []
    corrections = [match.end() for match in _CORRECTION.finditer(text)]
    for each in found:
        if _EXAMPLE.search(text[max(0, each.begin - _BEFORE_LABEL) : each.begin]):
            continue
        is_last = (
            not kept and each.strength == Strength.LABELLED and not any(t.kind == WORD for t in _after(tokens, each))
        )
        is_alone = each.strength == Strength.ALONE
        corrects = bool(kept) and bisect_right(corrections, kept[-1].end) < bisect_right(corrections, each.end)
        if is_last or is_alone or corrects or not _is_within(spans, each.begin):
            kept.append(each)
    return kept


def _unquoted(text: str, found: Sequence[Candidate]) -> Iterator[Candidate]:
    """The candidates outside others' words, that is, outside quoted passages that do not begin a line."""
    passages = [
        match.span() for match in _PASSAGE.finditer(text) if len(_SAID.findall(match[0])) > _MOST_OF_QUOTED_RATING
    ]
    for each in found:
        if not (_is_within(passages, each.begin) and _is_said_by_others(text, passages, each.begin)):
            yield each


def _is_said_by_others(text: str, passages: Spans, place: int) -> bool:
    """Whether the passage around a position shares its line with other words, and follows no label."""
    begin, end = passages[bisect_right(passages, (place, len(text))) - 1]
    before = text[max(0, begin - _BEFORE_LABEL) : begin].rpartition("\n")[2]
    behind = text[end : end + _BEFORE_LABEL].partition("\n")[0]
    is_own = _OWN_WORDS.search(before) is not None
    return not is_own and bool(_SAID.search(before) or _SAID.search(behind))


def _reason_labels(tokens: Tokens) -> list[int]:
    """The tokens that are labels of reasons: "Reason:", "Reason for it:", or one on its own line."""
    found = []
    for at, each in enumerate(tokens):
        if each.kind != WORD or REASON not in each.roles:
            continue
        behind = tokens[at + 1] if at + 1 < len(tokens) else None
        before = tokens[at - 1] if at else None
        is_line = (before is None or before.kind == LINE) and (behind is None or behind.kind == LINE)
        if is_line or behind is None or tokens.is_reason(at):
            found.append(at)
    return found


def _after(tokens: Tokens, found: Candidate) -> Sequence[Token]:
    return [each for each in tokens[found.at + 1 : found.at + 40] if each.begin >= found.end]


def _candidates_after_correction(text: str, found: Sequence[Candidate]) -> list[Candidate]:
    """The candidates after the last words that take back what precedes them."""
    for place in range(len(found) - 1, 0, -1):
        if _CORRECTION.search(text, found[place - 1].end, found[place].end):
            return [*found[place:]]
    return [*found]


def _agreed(found: Sequence[Candidate]) -> Candidate:
    """The first of the clearest candidates, without a rating where these differ."""
    clearest = max(each.strength for each in found)
    found = [each for each in found if each.strength == clearest]
    return found[0] if len({each.rating for each in found}) == 1 else replace(found[0], rating=None)


# ---- The reason ----------------------------------------------------------------------


def _without(text: str, found: Candidate) -> str:
    """The reason: the text after its own label, or else before and after the rating."""
    after = text[found.end :]
    if label := _REASON.search(after, 0, _NEAR):
        return after[label.end() :].strip(_MARKS)
    # "Overall" in "Overall rating: 5" belongs to the label.
    before = _FRAGMENT.sub("", text[: found.begin]).rstrip(" \t\r\n,;:|/#*_-–—\"'`([{<")
    after = after.lstrip(_EDGES).rstrip()
    return _without_label(" ".join(part for part in (before, after) if re.search(r"\w", part)))


def _without_label(text: str) -> str:
    """The text without its leading label, if any."""
    label = _REASON.match(text.lstrip(_EDGES))
    return (text.lstrip(_EDGES)[label.end() :] if label else text).strip(_MARKS)
