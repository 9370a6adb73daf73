"""Characters of a move that are invisible or reverse the text around them: found, named, and made visible. Pure.

Zero-width characters hide a word from a search, and direction overrides show a different text from the one that was
sent. Moves keep them, because the log holds what was sent; events name them, and pages show a mark in their place.
Joiners and variation selectors are left alone where scripts and emoji need them: not beside Latin letters.
`static/js/visible.js` does the same in the browser. Source: Unicode Technical Reports 9 (bidirectional controls) and 36
(security considerations).
"""

import re

_MARK = "\N{REPLACEMENT CHARACTER}"
_JOINERS = "\u200c\u200d"
_SELECTORS = "\ufe00-\ufe0f"
_OTHERS = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_SUSPECT = re.compile(f"[{_JOINERS}{_SELECTORS}{_OTHERS}]")
_FIRST_JOINED = "\u0600"  # Arabic and above: scripts that need joiners, and emoji
_FIRST_VARIED = "\u2000"  # symbols and above
_KEYCAP = "\u20e3"


def invisible(text: str) -> list[str]:
    """The code points of such characters, as U+200B, each once and in order; none in most texts."""
    if text.isascii():
        return []
    found = dict.fromkeys(each[0] for each in _SUSPECT.finditer(text) if not _has_a_use(text, each.start()))
    return [f"U+{ord(character):04X}" for character in found]


def visible(text: str) -> str:
    """The text with a mark in place of each such character."""
    if text.isascii():
        return text
    return _SUSPECT.sub(lambda found: found[0] if _has_a_use(text, found.start()) else _MARK, text)


def stripped(text: str) -> str:
    """The text without such characters, and without blanks, at its two ends."""
    if text.isascii():
        return text.strip()
    begin, end = 0, len(text)
    while begin < end and _is_to_go(text, begin, begin, end):
        begin += 1
    while begin < end and _is_to_go(text, end - 1, begin, end):
        end -= 1
    return text[begin:end]


def _is_to_go(text: str, at: int, begin: int, end: int) -> bool:
    """Whether a character at an end of text[begin:end] is a blank or has no visible effect there."""
    return text[at].isspace() or (_SUSPECT.match(text, at) is not None and not _has_a_use(text, at, begin, end))


def _has_a_use(text: str, at: int, begin: int = 0, end: int | None = None) -> bool:
    """Whether such a character is needed, as a part of text[begin:end]."""
    end = len(text) if end is None else end
    before, after = text[max(at - 1, begin) : at], text[at + 1 : min(at + 2, end)]
    if text[at] in _JOINERS:
        return before >= _FIRST_JOINED and after >= _FIRST_JOINED
    if "\ufe00" <= text[at] <= "\ufe0f":
        return before >= _FIRST_VARIED or (before != "" and before in "©®") or after == _KEYCAP
    return False
