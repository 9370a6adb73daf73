"""The scales mentioned in a text: the requested one, and others, on which no rating counts. Pure."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from app.society.ratings.words import RATING, SCALE, folded, number_words, roles_of

_NAMES = "|".join(sorted((name for name in number_words() if name.isalpha() and name.isascii()), key=len, reverse=True))
_N = rf"(?:(?<![\w.,])[-+]?\d{{1,4}}(?:[.,]0)?(?![\w%]|[.,]\d)|(?<!\w)(?:{_NAMES}|hundred)(?!\w))"
_ASIDE = r"(?:\s?\([^()\n]{0,80}\))?"
_TO = (
    r"\s{0,3}(?:-|–|~|…|to|through|bis|à|a|al|ate|até|tot|do|до|ile|至|到|から|에서|إلى|से|and|und|et|y|e)"
    r"\s{0,3}(?:the\s)?"
)
_RANGE = re.compile(rf"(?P<low>{_N}){_ASIDE}{_TO}(?P<high>{_N}){_ASIDE}", re.IGNORECASE)
_JOINED_RANGE = re.compile(
    r"(?<![\d.,])(?P<low>-?\d{1,4})\s?[分点點점]?\s?(?:-|–|~|至|到|から|에서|부터)\s?(?P<high>\d{1,4})(?!\d)\s?[分点點점]?"
)
_LEGEND = re.compile(
    rf"(?P<at>{_N})\s?(?:=|\b(?:means|meaning|being)\b|\bis\s(?:the\s)?(?:best|worst|highest|lowest|perfect)"
    r"|:\s?(?=not|perfect|best|worst))",
    re.IGNORECASE,
)
_MOST_APART = 60  # characters between two entries of a legend
_ENTRY = re.compile(r"[^\n.;)]{0,40}")
_TOPS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?P<top>{_N})[-\s](?:points?|punkte|stufig\w*|puntos)[-\s]{{0,2}}(?:likert|rating|scale|skala)",
        rf"(?P<top>{_N})\s(?:being|is|means|as)\s(?:the\s)?(?:best|highest|perfect|maximum|top|most)\b",
        (
            r"(?:max(?:imum|\.)?|highest|top)(?:\s(?:score|possible|rating))?[\s:=]{0,3}(?:of\s)?"
            rf"(?P<top>{_N})(?!\s?(?:of\b|the\b))"
        ),
        r"满分(?:为|是)?\s?(?P<top>\d{1,4})\s?分?|最高\s?(?P<most>\d{1,4})\s?[分点]",
        (
            r"(?P<top>\d{1,4})\s?(?:点[満滿满]点|[点點]中|점\s?만점|점\s?중|分中的?|分制|分满分|段階|üzerinden|uzerinden|में\sसे)"
            r"\s?(?:中|で|の|에서|에|으로|기준)?"
        ),
    )
)
_OUT_OF = re.compile(
    rf"(?P<before>\S{{0,14}}[\s(]{{0,2}})\bout\sof\s(?:a\spossible\s)?(?P<top>{_N})(?!\s?\w)", re.IGNORECASE
)
_FROM = ("from", "von", "de", "da", "od", "от", "van", "从", "從")
_USUAL_TOPS = (4, 5, 6, 7, 10, 20, 100)
_NEAR = 24  # characters before or after a range in which a word says that it is a scale
_WORD = re.compile(r"[^\W\d]+|[(\[]")


class Mention(NamedTuple):
    """A scale's lowest number, None if only the highest is given, its highest, and where the text mentions it."""

    low: float | None
    high: float
    begin: int
    end: int


def mentions(text: str, low: int, high: int) -> tuple[list[Mention], list[Mention]]:
    """The mentions of the scale from `low` to `high`, without overlap, and those of others, by position."""
    ours: list[Mention] = []
    others: list[Mention] = []
    end = 0
    every = (*_ranges(text, low, high), *_tops(text), *_legends(text))
    for each in sorted(every, key=lambda each: each.begin):
        if each.high == high and each.low in (None, low):
            if each.begin >= end:
                ours.append(each)
        elif each.begin >= end or each.high != high:
            others.append(each)
        end = max(end, each.end)
    return ours, others


def _ranges(text: str, low: int, high: int) -> Iterator[Mention]:
    for pattern in (_RANGE, _JOINED_RANGE):
        for match in pattern.finditer(text):
            least, most = _parse_scale_number(match["low"]), _parse_scale_number(match["high"])
            if least < most and ((least, most) == (low, high) or _is_scale(text, match, least, most)):
                yield Mention(least, most, match.start(), match.end())


def _is_scale(text: str, match: re.Match[str], least: float, most: float) -> bool:
    """Whether a range is a scale: by a nearby word, in brackets after "rating", or "from 1 (bad) to 5 (good)"."""
    before = _WORD.findall(text[max(0, match.start() - _NEAR) : match.start()].rpartition("\n")[2])
    after = _WORD.findall(text[match.end() : match.end() + _NEAR].partition("\n")[0])
    if any(SCALE in roles_of(folded(word)) for word in before[-4:] + after[:2]):
        return True
    if before[-1:] in (["("], ["["]):
        return len(before) > 1 and RATING in roles_of(folded(before[-2]))
    is_usual = least <= 1 and most in _USUAL_TOPS
    return bool(before) and folded(before[-1]) in _FROM and (is_usual or "(" in match[0])


def _tops(text: str) -> Iterator[Mention]:
    for pattern in _TOPS:
        for match in pattern.finditer(text):
            raw = next(each for each in match.groups() if each is not None)
            yield Mention(None, _parse_scale_number(raw), match.start(), match.end())
    for match in _OUT_OF.finditer(text):
        # "6 out of 7" is a number on a scale, and is read as such.
        before = folded(match["before"].strip(" ("))
        if not before[-1:].isdigit() and before not in number_words():
            yield Mention(None, _parse_scale_number(match["top"]), match.end("before"), match.end())


def _legends(text: str) -> Iterator[Mention]:
    """The legends with at least two entries for what numbers mean, such as "1 = worst, 10 = best"."""
    group: list[re.Match[str]] = []
    for match in (*_LEGEND.finditer(text), None):
        if group and (match is None or match.start() - group[-1].end() > _MOST_APART):
            if len(group) > 1:
                numbers = [_parse_scale_number(each["at"]) for each in group]
                last = _ENTRY.match(text, group[-1].end())
                yield Mention(min(numbers), max(numbers), group[0].start(), last.end() if last else group[-1].end())
            group = []
        if match is not None:
            group.append(match)


def _parse_scale_number(raw: str) -> float:
    name = folded(raw)
    if name == "hundred":
        return 100
    return number_words()[name] if name in number_words() else float(raw.replace(",", "."))
