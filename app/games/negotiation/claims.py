"""One pass over the words of a text: who is to get what, and what items are worth to the speaker.

The pass knows no grammar beyond a small memory: whose share is being spoken of, the last number, and the quantities not
yet given to anyone. So it copes with slips, missing commas and half sentences.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from app.games.negotiation.contexts import POINTS, Counts
from app.games.negotiation.vocabulary import (
    ARTICLES,
    ASIDE,
    EACH,
    ITEMS,
    LISTENER,
    LITTLE,
    NUMBERS,
    OPENERS,
    PART,
    PLEASED,
    SPEAKER,
    TOKEN,
    WORTH,
)

# Version of the reading of people's words behind figures. Raise it whenever a change here, in `vocabulary`,
# `understanding` or `offers` reads some text differently.
CLAIMS_VERSION = 2

_HALF = -1
_ALL = -2
_END = "."
_SENTENCE = re.compile(r"(?<=[.!?;\n])\s*")
_CLAUSE = re.compile(
    r"(?<=,)|\bbut\b|\bso\b|\bsince\b|\bbecause\b|\bcause\b| - |\band (?=you|i )|\bif\b|\band (?=the )"
)
_VALUE = re.compile(
    r"\b(books?|hats?|balls?|basketballs?)\b(?:\s+(?:is|are|each|only|worth|just|at|a|me|gives?|points?|has|have))*"
    r"\s+(\d\d?|nothing|zero|one|two|three|four|five|six|seven|eight|nine|ten)\b(?!\s+(?:books?|hats?|balls?))"
)
_TO_LISTENER = re.compile(r"\b(?:to|for) (?:you|u|ya)\b")
_NOT_LITTLE = re.compile(r"\bnot? (?:be )?(?:without|just|only)\b")


class StatedValue(NamedTuple):
    """What one clause says that items are worth: points by item, and items that are liked or, if `little`, disliked."""

    values: tuple[tuple[int, int], ...]
    items: frozenset[int]
    little: bool


class ClaimParser:
    """What one text says. `share` is the speaker's share, None where nothing was said."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self.share: list[int | None] = [None, None, None]
        self.rest: str | None = None  # who gets whatever was not named
        self.kept = False  # whether something was refused to the listener
        self.took = self.gave = False  # whether things were named for the speaker, for the listener
        self.owned = False  # whether the text says anywhere who is to get something
        self.contradicts = False  # whether a sentence names more, or fewer, things for both sides than there are
        self.high: set[int] = set()
        self.low: set[int] = set()
        self.values: dict[int, int] = {}
        self._last: int | None = None
        self._words: Sequence[str] = ()
        self._at = 0
        self._begin_sentence()

    def parse(self, plain: str, words: Sequence[str]) -> None:
        """Read a lower-case text; `words` are its tokens."""
        if self._parse_price_list(words):
            return
        if WORTH.isdisjoint(words):
            self._parse_shares(words)
            return
        for sentence in _SENTENCE.split(plain):
            words = TOKEN.findall(sentence)
            if not WORTH.isdisjoint(words):
                words, worths = _taken_apart(sentence)
                self._parse_worths(worths)
            self._parse_shares(words)

    # ---- What things are worth --------------------------------------------------

    def _parse_price_list(self, words: Sequence[str]) -> bool:
        """Whether the text consists only of values: "hat 6, books 2, balls 0"."""
        if len(words) < 6 or words[0] not in ITEMS or words[1] not in NUMBERS:
            return False
        bare = [word for word in words if word in ITEMS or word in NUMBERS]
        prices = {ITEMS[name][0]: NUMBERS[n] for name, n in _pairs_of_words(bare) if name in ITEMS and n in NUMBERS}
        if len(bare) != 6 or len(prices) != 3 or sum(prices[item] * self.counts[item] for item in prices) != POINTS:
            return False
        self.values.update(prices)
        return True

    def _parse_worths(self, worths: Sequence[StatedValue]) -> None:
        for worth in worths:
            self.values.update(worth.values)
            items = worth.items.difference(self.values)
            (self.low if worth.little else self.high).update(items)

    # ---- Words ------------------------------------------------------------------

    def _begin_sentence(self) -> None:
        """Reset the state of one sentence."""
        self._owner: str | None = None
        self._owners: dict[int, str] = {}  # who was last given a number of an item
        self._asking = False  # whether the listener is asked for something: "let me have"
        self._pending: list[tuple[int | None, int]] = []  # (item, how many); item None: everything left
        self._number: int | None = None
        self._article = False
        self._patience = 0
        self._clause_ends()

    def _clause_ends(self) -> None:
        self._negated = self._wanting = self._giving = False
        self._excepting = self._alternative = self._halving = self._sweeping = False

    def _parse_shares(self, words: Sequence[str]) -> None:
        self._begin_sentence()
        self._words = words
        for at, word in enumerate(words):
            read = _LEXICON.get(word)
            if read is not None:
                self._at = at
                read(self, word)
            elif self._number is not None:
                self._unknown(word)
        self._at = len(words)
        self._flush()

    def _unknown(self, word: str) -> None:
        """Let a number wait for its item over a word or two, and an article hardly at all."""
        self._patience -= 3 if self._article and word not in ("extra", "basket", "single", "of") else 1
        if self._patience <= 0:
            self._loose_number()

    def _neighbour(self, offset: int) -> str:
        at = self._at + offset
        return self._words[at] if 0 <= at < len(self._words) else _END

    def _hold(self, number: int, article: bool = False, patience: int = 3) -> None:
        self._loose_number()
        self._number, self._article, self._patience = number, article, patience

    def _counted_item(self, word: str) -> None:
        if self._number is not None and not self._article and self._neighbour(-1) in ("the", "of", "those"):
            return  # "two of the three"
        if self._number == _ALL:
            self._number = None  # "all four hats"
        self._hold(NUMBERS[word], word in ARTICLES)

    def _loose_number(self) -> None:
        """Apply a number without an item to the last named item, unless it was only an article."""
        number, self._number = self._number, None
        if number is None or self._article:
            return
        if self._last is None:
            if number == _ALL:
                self._pending.append((None, 0))
            return
        if self._excepting or all(item != self._last for item, _ in self._pending):
            self._number = number
            self._of_item(self._last, False)

    def _item(self, word: str) -> None:
        self._of_item(*ITEMS[word])

    def _of_item(self, item: int, plural: bool) -> None:
        count = self.counts[item]
        number, self._number = self._number, None
        if number is None:
            number = _HALF if self._halving else count if plural else 1
        elif number == _ALL:
            number = count
            self._sweeping = True
        self._last = item
        if self._excepting:
            self._except(item, number)
        elif not self._alternative:
            self._pending.append((item, number))

    def _except(self, item: int, number: int) -> None:
        """ "All but some": subtract these from what was just counted."""
        self._pending = [(one, max(n - number, 0) if one == item else n) for one, n in self._pending]

    # ---- Parts of a sentence ------------------------------------------------------

    def _stop(self, _: str) -> None:
        self._flush()
        self._begin_sentence()

    def _comma(self, _: str) -> None:
        self._flush()
        self._clause_ends()

    def _person(self, word: str) -> None:
        owner, before, after = PART[word], self._neighbour(-1), self._neighbour(1)
        if owner == EACH and before == "of":  # "one of each"
            number, self._number = self._number, None
            self._pending += [(item, number or 1) for item in range(3)]
            return
        if before in ASIDE or (before == "for" and self._neighbour(-2) in PLEASED):
            return
        self.owned = True
        self._loose_number()
        trailing = before in ("for", "to") or (owner == EACH and after in (".", ",", "!", "?", "and"))
        if trailing and self._pending:
            self._give_out(owner)
            return
        if self._pending and not trailing:
            if self._owner is None and owner == SPEAKER and before == "and" and PART.get(after) == "take":
                self._owner = LISTENER  # "all the books and I take one ball"
            self._flush()
            self._negated = self._wanting = False
        self._halving = self._giving = False
        self._asking = before in _BEGGING or word in _BEGGING
        if owner != EACH or after != "have":
            self._owner = owner

    def _possessive(self, word: str) -> None:
        self._loose_number()
        self.owned = True
        self._give_out(SPEAKER if word == "mine" else LISTENER)

    def _all(self, _: str) -> None:
        if self._neighbour(-1) != "at" and PART.get(self._neighbour(1)) not in _NOT_OF_ALL:
            self._hold(_ALL)

    def _half(self, word: str) -> None:
        self._hold(_HALF)
        self._halving = word != "half"

    def _everything(self, _: str) -> None:
        self._number = None
        if PART.get(self._neighbour(1)) != "rest":
            self._sweeping = True
            self._pending += list(enumerate(self.counts))

    def _things(self, word: str) -> None:
        """ "All the items" is everything; "two items" says nothing of books."""
        if self._number == _ALL:
            self._everything(word)
        self._number = None

    def _rest(self, word: str) -> None:
        self._number = None
        if word == "else" and PART.get(self._neighbour(-1)) not in ("everything", "all"):
            return  # "what else", "somewhere else"
        if not _SPARED.isdisjoint(self._words[self._at + 2 : self._at + 4]):
            return
        if self._owner is not None:
            self._flush()
        self._pending.append((None, 0))

    def _but(self, _: str) -> None:
        self._loose_number()
        if self._sweeping and self._pending:
            self._excepting = True
        else:
            self._comma(",")

    def _or(self, _: str) -> None:
        self._loose_number()
        self._alternative = bool(self._pending) and self._neighbour(1) not in ("i", "you")
        self._owners = {}  # what follows is another split

    def _no(self, _: str) -> None:
        if self._neighbour(1) in ITEMS or self._neighbour(1) == "more":
            self._hold(0, patience=2)
        elif self._neighbour(1) in ("use", "need", "interest"):
            self._negated = self._wanting = True

    def _not(self, _: str) -> None:
        self._negated = True

    def _without(self, _: str) -> None:
        self._loose_number()
        self._negated = False
        self._owner = self._owner or SPEAKER

    def _want(self, _: str) -> None:
        self._wanting = True

    def _take(self, _: str) -> None:
        if self._owner is None and self._neighbour(-1) in OPENERS:
            self._owner, self.owned = LISTENER, True
        elif self._asking and "rest" in map(PART.get, self._words[self._at + 1 : self._at + 4]):
            self._flush()
            self._owner = LISTENER  # "let me have the hats and take the rest"

    def _give(self, _: str) -> None:
        self._flush()
        self._giving = True

    def _for(self, _: str) -> None:
        """ "Some items for others": what follows goes to the other side."""
        after = self._neighbour(1)
        if self._pending and (after in NUMBERS or after in ITEMS or after in ("the", "all")):
            self._loose_number()
            owner = self._receiver()
            self._flush()
            self._owner = SPEAKER if owner == LISTENER else LISTENER
            self._giving = False

    # ---- Giving out ---------------------------------------------------------------

    def _receiver(self) -> str:
        if not self._giving:
            return self._owner or SPEAKER
        return SPEAKER if self._owner == LISTENER else self._owner if self._owner == EACH else LISTENER

    def _flush(self) -> None:
        self._loose_number()
        if self._pending:
            self._give_out(self._receiver())

    def _give_out(self, owner: str) -> None:
        """Assign the pending quantities to their owner."""
        pending, self._pending = self._pending, []
        if self._negated and owner == SPEAKER and not self._wanting and not self._giving:
            return  # "I can't do two books" names no share
        for item, number in pending:
            if item is None:
                self.rest = owner if owner != EACH else self.rest
            elif self._negated:
                self._denied(item, owner)
            else:
                self._assign_item(item, number, owner)

    def _denied(self, item: int, owner: str) -> None:
        if owner == LISTENER:  # what the listener cannot have, the speaker keeps
            self.share[item] = self.counts[item]
            self.kept = True
        elif self._wanting:
            self.share[item] = 0
            self.low.add(item)

    def _assign_item(self, item: int, number: int, owner: str) -> None:
        count = self.counts[item]
        if number == _HALF:
            self.share[item] = count // 2
            self.took = True
            return
        amount = min(max(number, 0), count)
        share = count - amount if owner == LISTENER else amount
        before = self._owners.get(item, owner)
        if before != owner and EACH not in (before, owner) and share != self.share[item]:
            self.contradicts = True
        self._owners[item] = owner
        self.share[item] = share
        self.took = self.took or owner != LISTENER
        self.gave = self.gave or owner == LISTENER


@lru_cache(maxsize=2048)  # there are few ways to state preferences, and no other sentence takes as long to parse
def _taken_apart(sentence: str) -> tuple[Sequence[str], tuple[StatedValue, ...]]:
    """The words of a sentence about worth, without its clauses about worth, and what those clauses say."""
    left, worths = [], []
    worth = False
    for clause in _CLAUSE.split(sentence):
        words = TOKEN.findall(clause)
        shares = words[:1] not in (["to"], ["for"]) and any(PART.get(word) in _PEOPLE for word in words[:2])
        worth = not WORTH.isdisjoint(words) or (worth and not shares)
        if not worth:
            left.append(clause)
        elif not _TO_LISTENER.search(clause):
            worths.append(_stated_value(clause, words))
    return tuple(TOKEN.findall(" ".join(left))), tuple(worths)


def _stated_value(clause: str, words: Sequence[str]) -> StatedValue:
    values = _VALUE.findall(clause)
    little = not LITTLE.isdisjoint(words) and not _NOT_LITTLE.search(clause)
    return StatedValue(
        values=tuple((ITEMS[name][0], 0 if n == "nothing" else NUMBERS.get(n, 0)) for name, n in values),
        items=frozenset(ITEMS[word][0] for word in words if word in ITEMS),
        little=little,
    )


def _pairs_of_words(words: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(words[::2], words[1::2], strict=False))


_NOT_OF_ALL = frozenset(("rest", SPEAKER, LISTENER))  # "all the rest", "all I want is"
_SPARED = frozenset(("negotiable", "day", "night"))  # "the rest is negotiable", "have a nice rest of the day"
_BEGGING = frozenset(("let", "give", "leave", "gimme", "lemme"))
_PEOPLE = frozenset((SPEAKER, LISTENER))
_PARTS: Mapping[str, Callable[[ClaimParser, str], None]] = {
    SPEAKER: ClaimParser._person,
    LISTENER: ClaimParser._person,
    EACH: ClaimParser._person,
    "mine": ClaimParser._possessive,
    "yours": ClaimParser._possessive,
    "all": ClaimParser._all,
    "everything": ClaimParser._everything,
    "rest": ClaimParser._rest,
    "things": ClaimParser._things,
    "half": ClaimParser._half,
    "but": ClaimParser._but,
    "give": ClaimParser._give,
    "want": ClaimParser._want,
    "take": ClaimParser._take,
    "not": ClaimParser._not,
    "no": ClaimParser._no,
    "for": ClaimParser._for,
    "without": ClaimParser._without,
    "or": ClaimParser._or,
    "stop": ClaimParser._stop,
    "comma": ClaimParser._comma,
}
_LEXICON: Mapping[str, Callable[[ClaimParser, str], None]] = {
    **{word: _PARTS[part] for word, part in PART.items()},
    **dict.fromkeys(NUMBERS, ClaimParser._counted_item),
    **dict.fromkeys(ITEMS, ClaimParser._item),
}
