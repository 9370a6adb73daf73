"""Reading what people actually type about books, hats and balls: who is to get what, and yes or no.

Nothing here depends on the reader: a share is the *speaker's*.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.games.negotiation import vocabulary
from app.games.negotiation.claims import ClaimParser
from app.games.negotiation.contexts import Counts

LONGEST = 600  # characters that are read; nobody bargains in more, and reading stays quick
_NEGATED = 4  # a yes within this many words after a no belongs to it: "not a deal"
_BOTH = 2  # what "both" is read as: "both the book and the hat" is not two books
_BETWEEN = frozenset(("of", "the", "those", "these", "more", "basket"))  # words between a number and its thing

Share = tuple[int | None, int | None, int | None]  # what the speaker is to get, None where nothing was said


@dataclass(frozen=True, slots=True)
class Utterance:
    """What a text says. `share` is the speaker's; `answer` is True for yes, False for no, None for neither.

    `rest` names who gets what was not named (speaker or listener), if the text says so; `took` and `gave` tell whether
    it named items for the speaker and for the listener, `owned` whether it named any person at all. `high`, `low` and
    `values` are what the speaker says items are worth; `excess` is the item of which it names more than lie on the
    table, if it speaks of shares and not of values. `contradicts`: a sentence names parts for both sides that do not
    add up to the table, so that `share` has those named last.
    """

    share: Share = (None, None, None)
    rest: str | None = None
    took: bool = False
    gave: bool = False
    owned: bool = False
    answer: bool | None = None
    adds: bool = False
    final: bool = False
    asks: bool = False
    high: tuple[int, ...] = ()
    low: tuple[int, ...] = ()
    values: tuple[tuple[int, int], ...] = ()
    excess: int | None = None
    contradicts: bool = False

    @property
    def names_a_split(self) -> bool:
        """Whether it says who is to get something; to say what one does not want is not enough."""
        return self.rest is not None or self.took or self.gave

    @property
    def adds_up(self) -> bool:
        """Whether the parts named for both sides add up to the table; true if only one side's are named."""
        return not self.contradicts and self.excess is None


def read(text: str, counts: Counts) -> Utterance:
    """Read one message, with or without its prefix, about a table of `counts` books, hats and balls."""
    return _parse_text(text[:LONGEST], counts)


@lru_cache(maxsize=16384)
def _parse_text(text: str, counts: Counts) -> Utterance:
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    plain = plain.lower().replace("’", "'").replace("`", "'").removeprefix("[message]").strip()
    words = vocabulary.TOKEN.findall(plain)
    parser = ClaimParser(counts)
    parser.parse(plain, words)
    first, second, third = parser.share
    return Utterance(
        share=(first, second, third),
        rest=parser.rest,
        took=parser.took or (parser.kept and not parser.gave),
        gave=parser.gave,
        owned=parser.owned,
        answer=_yes_or_no(plain, words),
        adds=not vocabulary.MORE.isdisjoint(words) or _has(plain, vocabulary.MORE_PHRASES),
        final=_has(plain, vocabulary.FINAL),
        asks="?" in plain,
        high=tuple(sorted(parser.high - parser.low)),
        low=tuple(sorted(parser.low)),
        values=tuple(sorted(parser.values.items())),
        excess=None if parser.values else _excess(words, counts),
        contradicts=parser.contradicts,
    )


def _yes_or_no(plain: str, words: Sequence[str]) -> bool | None:
    kindly = _has(plain, vocabulary.KIND_NO)
    no = not vocabulary.NO.isdisjoint(words)
    if not kindly and (no or _has(plain, vocabulary.NO_PHRASES)):
        # "No, that is fine" is rarer than "sorry, no deal".
        return no and _ends_well(words)
    if kindly or _has(plain, vocabulary.YES_PHRASES):
        return True
    if vocabulary.YES.isdisjoint(words):
        return None
    # "Deal?" asks for a yes and is none.
    pairs = zip(words, [*words[1:], ""], strict=True)
    return True if any(word in vocabulary.YES and after != "?" for word, after in pairs) else None


def _ends_well(words: Sequence[str]) -> bool:
    """Whether a clear yes follows the last word that sounds like a no: "I don't love that, but fine"."""
    if vocabulary.CLEAR_YES.isdisjoint(words):
        return False
    last = max(at for at, word in enumerate(words) if word in vocabulary.NO)
    later = zip(words[last + _NEGATED :], [*words[last + _NEGATED + 1 :], ""], strict=False)
    return any(word in vocabulary.CLEAR_YES and after != "?" for word, after in later)


def _excess(words: Sequence[str], counts: Counts) -> int | None:
    if not vocabulary.WORTH.isdisjoint(words):
        return None
    number: int | None = None
    for word in words:
        if word in vocabulary.ITEMS:
            item, plural = vocabulary.ITEMS[word]
            if number is not None and number > counts[item] and (plural or number != _BOTH):
                return item
            number = None
        elif word in vocabulary.NUMBERS:
            number = vocabulary.NUMBERS[word]
        elif word not in _BETWEEN:
            number = None
    return None


def _has(plain: str, phrases: Sequence[str]) -> bool:
    for phrase in phrases:  # noqa: SIM110  a generator takes twice as long, and every text is looked through four times
        if phrase in plain:
            return True
    return False
