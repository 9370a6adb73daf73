"""What a round's matches can be played with: contexts of a negotiation, target words of taboo."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from app.errors import Invalid, Phrase, Verbatim, shown
from app.games import find_game
from app.games.negotiation.contexts import Context, read_contexts
from app.games.taboo.words import target_words
from app.matches.lobby import load_contexts
from app.rounds.lifecycle import Material

ALL = "all"  # the target words that Parlor comes with
MOST_WORDS = 100_000


def contexts(path: str) -> Material:
    """The contexts of a file, in its order. Raises Invalid, with the number of the first line that is not so."""
    return Material(path, items_of(load_contexts(path)))


def contexts_in(text: str, source: str) -> Material:
    """The contexts of a text that was read from `source`, two lines each. Raises Invalid."""
    return Material(source, items_of(read_contexts(text.splitlines(), source)))


def items_of(found: Iterable[Context]) -> list[Any]:
    """Contexts as material: [counts, values of seat 0, values of seat 1] each."""
    return [[list(each.counts), *(list(values) for values in each.values)] for each in found]


def words(path: str) -> Material:
    """The target words of a file, one a line, in its order; "all" are those that Parlor comes with. Raises Invalid."""
    if path == ALL:
        return Material("the list of target words", target_words())
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(
            "words",
            expected=Phrase("a readable text file"),
            got=Verbatim(f"{path}: {error}"),
            subject=Phrase("words file"),
        ) from None
    return words_in(text, path)


def words_in(text: str, source: str) -> Material:
    """The target words of a text that was read from `source`, one a line. Raises Invalid."""
    taboo, found = find_game("taboo"), {}
    for number, line in enumerate(text.splitlines(), 1):
        word = line.strip()
        if not word or word.startswith("#"):
            continue
        try:
            taboo.config({"word": word})
        except Invalid as error:
            raise error.at(Phrase("%(source)s, line %(line)s", source=source, line=number)) from None
        if word in found:
            raise Invalid(
                None,
                expected=Phrase("each word once"),
                got=Phrase("%(word)s again", word=shown(word)),
                subject=Phrase("%(source)s, line %(line)s", source=source, line=number),
            )
        found[word] = number
    if not 1 <= len(found) <= MOST_WORDS:
        raise Invalid(
            None, expected=Phrase("1 to %(most)s words, one a line", most=MOST_WORDS), got=len(found), subject=source
        )
    return Material(source, list(found))
