"""Whether a deal was ever named in the talk before it, as the scripted negotiator reads people's words. Pure."""

from collections.abc import Sequence

from app.games.negotiation.contexts import Counts
from app.games.negotiation.offers import OfferHistory


def was_said(counts: Counts, messages: Sequence[tuple[int, str]], share: Counts) -> bool:
    """Whether any of the messages, (seat, text) each in their order, means the split in which seat 0 gets `share`.

    A message need not name all of it: what it leaves open is filled from what was said before. Heard with the ears of
    both seats, since who speaks reads his own words more plainly; one that hears it is enough.
    """
    return any(_names_split(counts, messages, share, seat) for seat in (0, 1))


def _names_split(counts: Counts, messages: Sequence[tuple[int, str]], share: Counts, seat: int) -> bool:
    """Whether `seat` read the split named."""
    talk = OfferHistory(counts)
    mine = share if seat == 0 else talk.complement(share)
    for by, text in messages:
        talk.add_message("you" if by == seat else "partner", text)
        if talk.table == mine:
            return True
    return False
