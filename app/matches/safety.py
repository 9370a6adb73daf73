"""What a model may not say to people in a study: contact data, links, and words that nobody should have to read.

A coarse, English-only filter, as games are played in English, for what slips through a model's own training. It reads
each text in isolation: what is unkind only in its context passes.
"""

import re
from functools import cache
from typing import Final

from app.core.config import ROOT

WORDS: Final = ROOT / "data" / "safety" / "words.txt"
CONTACT, LINK, OFFENSIVE = "contact data", "a link", "offensive words"

# Each pattern matches the least text that gives something away, so that no text is searched twice.
_MAIL = re.compile(r"[\w.+-]\s?(?:@|\(at\)|\[at\])\s?[\w-]+\.[\w-]", re.IGNORECASE)
_HANDLE = re.compile(r"(?<!\w)@\w{3,}")
_YEARS = r"\d{4}\s?-\s?\d{4}\b"
_PHONE = re.compile(rf"(?<!\d)(?!{_YEARS})\+?\(?\d(?:[\s().-]{{0,2}}\d){{6}}")
_ADDRESS = re.compile(
    r"(?:https?://|www\.)\S|(?<=[a-z0-9-]{2})\.(?:com|org|net|edu|gov|info|io|me|app|co\.uk|de)\b", re.IGNORECASE
)


def unsafe(text: str) -> str | None:
    """Why people should not read a model's text; None if it is safe."""
    if _MAIL.search(text) or _HANDLE.search(text) or _PHONE.search(text):
        return CONTACT
    if _ADDRESS.search(text):
        return LINK
    return OFFENSIVE if _offensive().search(text) else None


@cache
def _offensive() -> re.Pattern[str]:
    lines = (line.strip() for line in WORDS.read_text("utf-8").splitlines())
    phrases = [r"\W+".join(map(re.escape, line.split())) for line in lines if line and not line.startswith("#")]
    return re.compile(rf"\b(?:{'|'.join(phrases)})\b", re.IGNORECASE)
