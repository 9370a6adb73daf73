"""The target words of taboo: which words are allowed, the list that comes with Parlor, and custom lists."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.core.errors import Invalid, Phrase, shown
from app.games.material import MaterialKind
from app.games.taboo.spelling import fold

LONGEST_WORD = 40
MOST_WORDS = 100_000
WORD_LIST = Path(__file__).resolve().parents[3] / "data" / "taboo" / "words.txt"
_ONE_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_ENGLISH = re.compile(r"[a-z]+(?:-[a-z]+)*")


def read_word(raw: Any) -> str | None:
    """A target word in lower case; None where it is left open. Raises Invalid."""
    if raw is None:
        return None
    if isinstance(raw, str) and len(raw) <= LONGEST_WORD:
        word = raw.strip().lower()
        if _ONE_WORD.fullmatch(word) and _ENGLISH.fullmatch(fold(word)):
            return word
    raise Invalid(
        "word",
        expected=Phrase("one English word of at most %(longest)s letters, possibly with hyphens", longest=LONGEST_WORD),
        got=str(raw)[:60],
    )


@lru_cache(maxsize=1)
def target_words() -> tuple[str, ...]:
    """The words from which a game draws its target, in the order of the list. data/SOURCES.md says how it was made."""
    return tuple(WORD_LIST.read_text(encoding="utf-8").split())


class TargetWords(MaterialKind):
    """Lists of target words, one per line; a piece is a word."""

    name = "words"
    piece = "word"
    fields = ("word",)
    title = "Target words"
    file = "target words, one a line"
    file_hint = "One word a line."
    text_label = "or words, one a line"
    text_hint = "Lines that begin with # are left out."
    each_once = True

    def read(self, lines: Iterable[str], source: str) -> list[Any]:
        found: dict[str, int] = {}
        for number, line in enumerate(lines, 1):
            word = line.strip()
            if not word or word.startswith("#"):
                continue
            where = Phrase("%(source)s, line %(line)s", source=source, line=number)
            try:
                read_word(word)
            except Invalid as error:
                raise error.at(where) from None
            if word in found:
                raise Invalid(
                    None,
                    expected=Phrase("each word once"),
                    got=Phrase("%(word)s again", word=shown(word)),
                    subject=where,
                )
            found[word] = number
        if not 1 <= len(found) <= MOST_WORDS:
            raise Invalid(
                None,
                expected=Phrase("1 to %(most)s words, one a line", most=MOST_WORDS),
                got=len(found),
                subject=source,
            )
        return list(found)

    def config_of(self, piece: Any) -> dict[str, Any]:
        return {"word": piece}

    def listed(self) -> Sequence[Any]:
        return target_words()
