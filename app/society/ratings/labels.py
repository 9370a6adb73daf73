"""Parses the words before a number: whether they are the label of a rating, and of which aspect. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from app.society.ratings import words
from app.society.ratings.text import NUMBER, OURS, WORD, Token

MOST_WORDS = 18  # in a label
_REJECTS = frozenset((words.NOT, words.BOUND, words.IF, words.OTHERS, words.EARLIER, words.WHEN, words.MODAL))


class Label(NamedTuple):
    """A label: the aspect that it names, whether it is of the final rating, and whether it says "rating" at all."""

    aspect: str | None
    is_final: bool
    is_rating: bool

    @property
    def is_usual(self) -> bool:
        """Whether it announces a rating or an aspect, and not just an answer."""
        return self.is_rating or self.aspect is not None


class LabelReader:
    """Parses labels in texts where a rating of one aspect is requested."""

    def __init__(self, aspect: str) -> None:
        self._aspect = aspect
        self._name = frozenset(words.folded(word) for word in aspect.replace("_", " ").split())

    def label(self, tokens: Sequence[Token]) -> Label | None:
        """The label formed by tokens; None if they form none, or one of something other than the writer's rating."""
        said = [each for each in tokens if each.kind == WORD]
        has_scale = any(each.kind == OURS for each in tokens)
        if not (said or has_scale) or len(said) > MOST_WORDS or any(each.kind == NUMBER for each in tokens):
            return None
        roles = roles_in(said)
        if not self.are_known(said) or roles & _REJECTS:
            return None
        if len(said) > 1 and len(said[-1].text) == 1 and said[-1].text.isascii():
            return None  # "Answer A"
        found = Label(self.aspect(said), words.FINAL in roles, words.RATING in roles)
        is_general = roles & {words.GENERAL, words.FINAL} and words.FIRST_PERSON not in roles
        return found if found.is_usual or has_scale or is_general else None

    def aspect(self, said: Sequence[Token]) -> str | None:
        """The last aspect that words name; "my honest rating" does not name honesty."""
        for place in range(len(said) - 1, -1, -1):
            is_manner = words.MANNER in said[place].roles and place and words.OWN in said[place - 1].roles
            if not is_manner and (found := self._aspect_of(said[place])) is not None:
                return found
        return None

    def is_core(self, token: Token) -> bool:
        """Whether a word is "rating" or the name of an aspect."""
        return words.RATING in token.roles or self._aspect_of(token) is not None

    def are_known(self, tokens: Sequence[Token]) -> bool:
        """Whether all words may introduce a rating, because none names something else that could be rated."""
        return all(
            each.kind != WORD or each.text in self._name or (each.roles and words.UNIT not in each.roles)
            for each in tokens
        )

    def _aspect_of(self, token: Token) -> str | None:
        return self._aspect if token.text in self._name else words.aspect_of(token.text)


def roles_in(tokens: Sequence[Token]) -> frozenset[str]:
    """The roles of all words together."""
    return frozenset[str]().union(*(each.roles for each in tokens))
