"""What the talk of a match says of its proposals, as the scripted negotiator reads people's words. Pure.

The talk is read separately for each seat, since a speaker reads their own words more plainly, and gaps in a message are
filled from what was said before.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.games.negotiation import vocabulary
from app.games.negotiation.contexts import Counts
from app.games.negotiation.offers import OfferHistory
from app.games.negotiation.understanding import Utterance, read

_ACCEPTING = frozenset(("deal", "agree", "agreed", "accept", "accepted", "done", "settled", "sold"))
_MAY_ACCEPT = re.compile("deal|agree|accept|done|settled|sold")  # what any of these words has, much faster to look for
_LEADING = frozenset(
    ("ok", "okay", "yes", "great", "good", "i", "we", "have", "it's", "a", "then", "so", ",", ".", "!")
)


@dataclass(frozen=True, slots=True)
class TalkReading:
    """The splits named by either seat, each as the share of seat 0; seat 1 gets the rest."""

    named: frozenset[Counts]  # by any message whose parts add up, as either seat reads it
    last: tuple[Counts | None, Counts | None]  # the last one, as each seat reads it; None where it reads none
    misquoted: bool | None  # whether the last message that accepts a split in words names another; None: there is none


def read_talk(counts: Counts, messages: Sequence[tuple[int, str]]) -> TalkReading:
    """The splits named in the messages, given as (seat, text) in order."""
    named: set[Counts] = set()
    last: list[Counts | None] = []
    misquoted: dict[int, bool] = {}
    utterances = [read(text, counts) for _, text in messages]
    for seat in (0, 1):
        talk, split, adds_up = OfferHistory(counts), None, True
        for place, ((by, text), said) in enumerate(zip(messages, utterances, strict=True)):
            before, before_by = talk.table, talk.table_by
            talk.add_message("you" if by == seat else "partner", text)
            if talk.table is not None:
                split = talk.table if seat == 0 else talk.complement(talk.table)
                if said.names_a_split or talk.table != before:
                    adds_up = said.adds_up
                if adds_up:
                    named.add(split)
            if by == seat and before_by == "partner" and _accepts_in_words(text, said):
                misquoted[place] = talk.table != before
        last.append(split)
    first, second = last
    return TalkReading(frozenset(named), (first, second), misquoted[max(misquoted)] if misquoted else None)


def _accepts_in_words(text: str, said: Utterance) -> bool:
    """Whether a message, read as `said`, accepts and restates the split: "Agreed: I take the hats, you the rest"."""
    plain = text.lower()
    if not said.names_a_split or _MAY_ACCEPT.search(plain) is None:
        return False
    words = vocabulary.TOKEN.findall(plain.replace("’", "'").removeprefix("[message]"))
    opening = next((word for word in words if word not in _LEADING), "")
    return opening in _ACCEPTING and "if" not in words and "but" not in words
