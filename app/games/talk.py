"""What players say in a match, and its metrics. Pure; each game's own are in its package."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
SEQUENCE = 3  # words in a sequence checked for repetition


class Talk(NamedTuple):
    """What one seat said in a match: the words of its messages, how many of these make an offer, and its offers.

    An offer is what the seat demands for itself, in its own points before its partner's are counted.
    """

    messages: Sequence[Sequence[str]]
    offering: int = 0
    offers: Sequence[float] = ()


class MatchPart(NamedTuple):
    """A match's part of a figure, which is the sum of all `over` divided by the sum of all `under`."""

    over: float
    under: float


@dataclass(frozen=True, slots=True, eq=False)
class LanguageMetric:
    """A figure of a player's language. `name` is its CSV column; that of a share ends in _rate."""

    name: str
    title: str  # as it is written within a sentence
    unit: str
    explanation: str  # what docs/analysis.md and the codebook say
    part: Callable[[Talk], MatchPart]

    @property
    def heading(self) -> str:
        """The title as a column heading."""
        return self.title[:1].upper() + self.title[1:]


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, without surrounding punctuation."""
    return [each.replace("’", "'") for each in _WORD.findall(text.lower())]


def repeated(things: Iterable[object]) -> tuple[int, int]:
    """The number of items that occurred before, and the number of all items."""
    seen: set[object] = set()
    again = number = 0
    for each in things:
        again += each in seen
        number += 1
        seen.add(each)
    return again, number


def _words_in_a_message(talk: Talk) -> MatchPart:
    return MatchPart(sum(map(len, talk.messages)), len(talk.messages))


def _repeated_messages(talk: Talk) -> MatchPart:
    return MatchPart(*repeated(tuple(words) for words in talk.messages))


def _repeated_sequences(talk: Talk) -> MatchPart:
    return MatchPart(
        *repeated(
            tuple(words[place : place + SEQUENCE])
            for words in talk.messages
            for place in range(len(words) - SEQUENCE + 1)
        )
    )


# Of every game. The vocabulary is no sum over matches, and has a column of its own: app/analysis/side_by_side.
MESSAGES = (
    LanguageMetric(
        "words_per_message_mean", "words in a message", "words", "words of its messages", _words_in_a_message
    ),
    LanguageMetric(
        "repeated_message_rate", "messages that it has sent before", "share",
        "of its messages, those whose words it has sent before in the same match", _repeated_messages,
    ),
    LanguageMetric(
        "repeated_sequence_rate", "three words in a row that it has used before", "share",
        "of all three words in a row, those that it has used before in the same match", _repeated_sequences,
    ),
)  # fmt: skip
