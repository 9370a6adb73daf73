"""What has been said so far in a negotiation, folded from the transcript that one seat sees. Pure."""

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

from app.games.negotiation.contexts import Counts, rest_of
from app.games.negotiation.understanding import Share, Utterance, read
from app.games.negotiation.vocabulary import SPEAKER

Message = tuple[str, str | None]  # by you or partner, and the text
Evidence = tuple[str, tuple[int, ...]]  # demand | refused: the partner's share; high | low: (item,); value: (item, n)
_NOTHING: Share = (None, None, None)
_LONG = 60
_COURTESIES = re.compile(  # in lower case: to ignore case takes three times as long
    r"\b(?=h[eio]|g[or]|nic|ple|we|wha|and|i[' m]|fine|tha)"  # how they begin: skips other words at half the cost
    r"(?:(?:hi+|hello|hey+|greetings|howdy)(?: there)?\b"
    r"|good (?:morning|afternoon|evening|day)\b|(?:nice|good|great|pleased) to (?:meet|see) you\b"
    r"|(?:and )?how(?:'s| is| are|re) (?:you|u|it|life|things|everything)(?: (?:doing|going|today|too))*\b"
    r"|how do you do\b|what'?s up\b"
    r"|i(?:'?m| am) (?:doing |feeling )?(?:very |quite )?(?:good|fine|great|well|okay|ok|happy)\b"
    r"(?! with)(?:,? (?:thanks|thank you))?"
    r"|(?:(?:good|fine|great|well),? )?(?:(?:thanks|thank you),? )?"
    r"(?:and|how about) (?:you|u|yourself)(?=\s*[?!.]|$))"
)


@dataclass(slots=True)
class OfferHistory:
    """Offers and preferences voiced so far. Every allocation is *mine*, whoever named it; the partner gets the rest."""

    counts: Counts
    mine: Counts | None = None  # the last split I named
    theirs: Counts | None = None  # the last split the partner named
    table: Counts | None = None  # the split that is now being talked about
    table_by: str | None = None  # you | partner
    agreed: Counts | None = None  # the last split that both have voiced, until somebody takes it back
    own_messages: int = 0
    last: Utterance = field(default_factory=Utterance)  # the partner's last message
    idle: bool = False  # whether that says nothing about books, hats and balls
    greeted: bool = False  # whether it held a greeting
    excess: int | None = None  # the thing of which it asked for more than there is
    pressed: int = 0  # the partner's messages since my first offer that were not idle and not impossible
    evidence: tuple[Evidence, ...] = ()

    def copy(self) -> "OfferHistory":
        """A copy to continue from. Written out because one is made at every move."""
        return OfferHistory(
            self.counts,
            self.mine,
            self.theirs,
            self.table,
            self.table_by,
            self.agreed,
            self.own_messages,
            self.last,
            self.idle,
            self.greeted,
            self.excess,
            self.pressed,
            self.evidence,
        )

    def complement(self, share: Counts) -> Counts:
        """What is left on the table after a share is taken."""
        return rest_of(self.counts, share)

    def add_message(self, by: str, text: str) -> None:
        """Add one message."""
        if by == "partner":
            reading, self.greeted = _listen(text, self.counts)
            self.last, self.excess = reading, reading.excess
            self.idle = self.excess is None and _is_idle(reading)
            if self.excess is not None:
                self.agreed = None
                return
            self.pressed += self.mine is not None and not self.idle
            self._learn(reading)
        else:
            reading = read(text, self.counts)
            self.own_messages += 1
        share = self._whole_split(by, reading)
        if share is not None:
            self._note_offer(by, share)
        else:
            self._note_answer(by, reading)

    def _note_offer(self, by: str, share: Counts) -> None:
        self.agreed = share if (self.table == share and self.table_by != by) or self.agreed == share else None
        self.table, self.table_by = share, by
        if by == "you":
            self.mine = share
        else:
            self.theirs = share
            self.evidence += (("demand", self.complement(share)),)

    def _note_answer(self, by: str, reading: Utterance) -> None:
        if reading.answer is True and self.table is not None:
            if self.table_by != by:
                self.agreed = self.table
        elif reading.answer is False:
            if by == "partner" and self.mine is not None:
                self.evidence += (("refused", self.complement(self.mine)),)
            self.agreed = None

    def _learn(self, reading: Utterance) -> None:
        if reading.high or reading.low or reading.values:
            self.evidence += tuple(("high", (item,)) for item in reading.high)
            self.evidence += tuple(("low", (item,)) for item in reading.low)
            self.evidence += tuple(("value", pair) for pair in reading.values)

    def _whole_split(self, by: str, reading: Utterance) -> Counts | None:
        """The whole split that a message means, with its gaps filled from what was said before."""
        if not reading.names_a_split:
            return None
        if self.table_by not in (None, by) and (self._confirms(by, reading) or self._echoes(by, reading)):
            return self.table
        if self._is_about_the_other(by, reading):
            reading = replace(reading, share=self._turned(reading.share), took=False, gave=True)
        before = self._share_of_unnamed_items(by, reading)
        if reading.share != _NOTHING or self.table is None:
            left_open = before if reading.rest is None else self.counts if reading.rest == SPEAKER else (0, 0, 0)
            (a, b, c), (x, y, z) = reading.share, left_open
            before = x if a is None else a, y if b is None else b, z if c is None else c
        return self._as_mine(by, before)

    def _as_mine(self, by: str, share: Counts) -> Counts:
        """My share, given the speaker's; and vice versa."""
        return share if by == "you" else self.complement(share)

    def _confirms(self, by: str, reading: Utterance) -> bool:
        """Whether a message names only what the other side's split on the table already contains."""
        if reading.rest is not None or reading.answer is False or self.table is None:
            return False
        (a, b, c), (x, y, z) = reading.share, self._as_mine(by, self.table)
        return (a is None or a == x) and (b is None or b == y) and (c is None or c == z)

    def _is_about_the_other(self, by: str, reading: Utterance) -> bool:
        """Whether "how about one hat?" haggles over the other side's demand, not over the speaker's own."""
        if reading.owned or not (reading.asks or reading.answer) or reading.rest is not None:
            return False
        own, other = (self.mine, self.theirs) if by == "you" else (self.theirs, self.mine)
        if other is None:
            return False
        if own is not None and _within(reading.share, self._as_mine(by, own)):
            return False
        return _within(reading.share, self.complement(self._as_mine(by, other)))

    def _echoes(self, by: str, reading: Utterance) -> bool:
        """Whether "ok, the book and one hat" repeats what the other side has asked for."""
        if self.table is None or reading.owned or reading.answer is not True:
            return False
        other = self.complement(self._as_mine(by, self.table))
        return all((said or 0) == n for said, n in zip(reading.share, other, strict=True))

    def _turned(self, share: Share) -> Share:
        first, second, third = (
            None if said is None else count - said for said, count in zip(share, self.counts, strict=True)
        )
        return first, second, third

    def _share_of_unnamed_items(self, by: str, reading: Utterance) -> Counts:
        """The speaker's share of the items that the message does not name."""
        if reading.rest is not None and reading.share == _NOTHING and self.table is not None:
            # "I take the rest", of what the other side has just named
            return self._as_mine(by, self.table)
        own = self.mine if by == "you" else self.theirs
        if reading.adds and own is not None:
            return self._as_mine(by, own)
        named = sum(said is not None for said in reading.share)
        if reading.took and not reading.gave and named == 1 and self.table is not None and self.table_by != by:
            # "I need one ball", said to an offer, asks for a change of that offer
            return self._as_mine(by, self.table)
        return self.counts if reading.gave and not reading.took else (0, 0, 0)


def follow(counts: Counts, messages: tuple[Message, ...]) -> OfferHistory:
    """The history after all of `messages`. The result is shared: never change it."""
    if len(messages) > _LONG:  # no serious talk is that long, and each earlier text is remembered anyway
        return _fold(OfferHistory(counts), messages)
    return _cached_history(counts, messages)


@lru_cache(maxsize=4096)
def _cached_history(counts: Counts, messages: tuple[Message, ...]) -> OfferHistory:
    if not messages:
        return OfferHistory(counts)
    # What this seat worked out at its last turn, and what has been said since: its own message, perhaps an answer.
    since = 1 if messages[-1][0] == "you" else 2
    return _fold(_cached_history(counts, messages[:-since]).copy(), messages[-since:])


def _fold(conversation: OfferHistory, messages: tuple[Message, ...]) -> OfferHistory:
    for by, text in messages:
        conversation.add_message(by, text or "")
    return conversation


@lru_cache(maxsize=4096)
def _listen(text: str, counts: Counts) -> tuple[Utterance, bool]:
    """What the partner's text says, and whether it held a greeting."""
    # "I'm good, thanks" is no yes to what is on the table.
    plain, courtesies = _COURTESIES.subn(" ", text.replace("’", "'").lower())
    return read(plain if courtesies else text, counts), courtesies > 0


def _is_idle(reading: Utterance) -> bool:
    is_about_split = reading.answer is not None or reading.high or reading.low or reading.values
    return not (is_about_split or reading.names_a_split or reading.share != _NOTHING)


def _within(share: Share, demand: Counts) -> bool:
    return all(said is None or said <= most for said, most in zip(share, demand, strict=True))
