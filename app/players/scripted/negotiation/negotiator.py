"""The scripted negotiator: says what it cares about, guesses what the partner wants, concedes step by step, closes.

Every call recomputes the whole line of play from the view, so that the same view and generator always give the same
move. All shares are *its own* unless a name says otherwise.
"""

import random
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import product
from math import exp
from operator import add, mul
from typing import NamedTuple, Protocol

from app.games.base import View
from app.games.negotiation.contexts import ITEMS, POINTS, Counts
from app.games.negotiation.offers import Evidence, follow
from app.players.scripted.negotiation import phrases

Worths = tuple[float, float, float]
_Slope = tuple[float, float, float, float]

_STEPS = (0.4, 0.0)  # how far above the fair level it asks, by the number of answers to its offers
_PATIENCE = 9  # its own messages after which it makes its last offer
_NOTHING = 1e-9  # utilities are sums of fractions
_LOWEST = 0.4  # the smallest part of the fair level that it settles for while there is time


class _Deal(NamedTuple):
    """A full split, and its estimated utility for both sides, including λ."""

    share: Counts
    mine: float
    theirs: float


class Phrasing(Protocol):
    """The wording of a negotiator, as the module `wording` provides it."""

    def opening(self, likes: str, mine: Counts, counts: Counts, rng: random.Random, /) -> str: ...
    def likes(self, values: Counts, counts: Counts, rng: random.Random, /) -> str: ...
    def worths(self, values: Counts, counts: Counts, /) -> str: ...
    def counter(self, mine: Counts, counts: Counts, rng: random.Random, repeated: bool, /) -> str: ...
    def idle(self, mine: Counts, counts: Counts, rng: random.Random, greeted: bool, /) -> str: ...
    def impossible(self, item: int, mine: Counts, counts: Counts, rng: random.Random, /) -> str: ...
    def accept(self, mine: Counts, counts: Counts, rng: random.Random, /) -> str: ...
    def final(self, mine: Counts, counts: Counts, rng: random.Random, /) -> str: ...


def choose(view: View, rng: random.Random, words: Phrasing = phrases) -> str:
    """The next move of the seat that sees `view`: a message, or a proposal when it is time to close."""
    table = _Position(view, words)
    proposal = table.proposal()
    if proposal is not None:
        return proposed(proposal)
    return f"[message] {table.message(rng)}"


class _Position:
    """One moment of a negotiation as its seat sees it."""

    def __init__(self, view: View, words: Phrasing) -> None:
        self._words = words
        counts, values = view.facts["counts"], view.secret["values"]
        self.counts: Counts = counts["book"], counts["hat"], counts["ball"]
        self.values: Counts = values["book"], values["hat"], values["ball"]
        self.lam = float(view.facts["lambda"])
        self.left = int(view.facts["limit"]) - view.ply  # moves left for both seats, including this one
        self.answering = bool(view.transcript) and view.transcript[-1].kind == "proposal"
        self.may_propose = any(move["kind"] == "proposal" for move in view.may)
        heard = tuple((entry.by, entry.text) for entry in view.transcript if entry.kind == "message")
        self.talk = follow(self.counts, heard)
        self.partner = partner_worths(self.counts, self.talk.evidence)
        self._slopes = _slopes(self.counts, self.values, self.partner, self.lam)

    @cached_property
    def deals(self) -> "_Deals":
        """All full splits. They are not needed to close a match with an agreement."""
        return _deals(self.counts, self.values, self.partner, self.lam)

    def _deal_of_share(self, share: Counts) -> _Deal:
        (i, j, k), ((a, b, c, mine), (x, y, z, theirs)) = share, self._slopes
        return _Deal(share, mine + a * i + b * j + c * k, theirs - x * i - y * j - z * k)

    # ---- Closing ----------------------------------------------------------------

    def proposal(self) -> Counts | None:
        """The share to propose now, or None when there is something to say first."""
        if self.answering:
            return self._closing_split()
        if not self.may_propose:
            return None
        talk = self.talk
        if talk.agreed is not None and self._bearable(talk.agreed):
            return talk.agreed
        if self.left == 2:
            return self._last_chance()
        if talk.own_messages > _PATIENCE and talk.mine is not None:
            return talk.mine
        return None

    def _closing_split(self) -> Counts:
        """The reply to a hidden proposal: the split both spoke of, else the likelier of both sides' last offers.

        A partner who proposes after my offer has either silently accepted it or insists on its own demand. The reply
        matches the one with the higher gain, weighted by its probability.
        """
        talk = self.talk
        if talk.agreed is not None and self._bearable(talk.agreed):
            return talk.agreed
        if talk.mine is None or talk.theirs is None:
            return talk.theirs or talk.mine or self.offer().share
        mine, theirs = self._deal_of_share(talk.mine), self._deal_of_share(talk.theirs)
        insists = 0.9 if talk.last.final else 0.75
        if self.left == 1 or mine.theirs >= theirs.theirs:
            insists = 0.2
        return talk.theirs if insists * theirs.mine > (1 - insists) * mine.mine else talk.mine

    def _last_chance(self) -> Counts:
        """The share to propose with two moves left, without time to talk: the partner's last offer, if it is worth
        having.
        """
        talk = self.talk
        if talk.theirs is not None and self._deal_of_share(talk.theirs).mine > _NOTHING:
            return talk.theirs
        return talk.mine or self.offer().share

    def _bearable(self, share: Counts) -> bool:
        """Whether a split is better than no deal, as far as can be told."""
        mine = self._deal_of_share(share).mine
        return mine > _NOTHING or (mine > -_NOTHING and self.deals.fair <= _NOTHING)

    # ---- Talking ----------------------------------------------------------------

    def offer(self) -> _Deal:
        """The split to ask for now: the best for the partner among those that give me enough."""
        least, deals = self._aspiration(), self.deals
        enough = [deal for deal in zip(deals.theirs, deals.mine, _shares(self.counts), strict=True) if deal[1] >= least]
        theirs, mine, share = max(enough)
        return _Deal(share, mine, theirs)

    def _aspiration(self) -> float:
        step = min(self.talk.pressed, len(_STEPS) - 1)
        if self.left <= 6:
            step = len(_STEPS) - 1
        fair, best = self.deals.fair, self.deals.best
        return min(best, fair + _STEPS[step] * (best - fair))

    def message(self, rng: random.Random) -> str:
        """What to say now."""
        talk, counts = self.talk, self.counts
        offer = self.offer()
        if talk.own_messages == 0 and talk.theirs is None and talk.excess is None:
            return self._words.opening(self._likes(rng), offer.share, counts, rng)
        if talk.excess is None and talk.theirs is not None and self._good_enough(talk.theirs, offer):
            return self._words.accept(talk.theirs, counts, rng)
        if self.left == 3 or talk.own_messages >= _PATIENCE:
            return self._words.final(offer.share, counts, rng)
        if talk.excess is not None:
            return self._words.impossible(talk.excess, offer.share, counts, rng)
        if talk.idle and talk.mine is not None:
            return self._words.idle(talk.mine, counts, rng, talk.greeted)
        lead = self._likes(rng) if talk.own_messages == 0 else ""
        return lead + self._words.counter(offer.share, counts, rng, offer.share == talk.mine)

    def _likes(self, rng: random.Random) -> str:
        if self.lam > 0.5:
            return self._words.worths(self.values, self.counts)
        return self._words.likes(self.values, self.counts, rng) if self.lam >= 0 else ""

    def _good_enough(self, share: Counts, offer: _Deal) -> bool:
        deal = self._deal_of_share(share)
        if not self._bearable(share):
            return False
        if self.talk.own_messages >= _PATIENCE - 1:
            return deal.mine >= _LOWEST * self.deals.fair
        return deal.mine >= offer.mine - _NOTHING


# ---- What the partner wants ----------------------------------------------------


@lru_cache(maxsize=16384)
def partner_worths(counts: Counts, evidence: tuple[Evidence, ...]) -> Worths:
    """The worth of one of each item to the partner, averaged over all valuations, given what the partner said."""
    candidates = _valuations(counts)
    weights: Sequence[float] = [0.0] * len(candidates)
    for kind, what in evidence:
        weights = list(map(add, weights, _fit_by_valuation(counts, kind, what)))
    top = max(weights)
    odds = [exp(weight - top) for weight in weights]
    total = sum(odds)
    first, second, third = (sum(map(mul, odds, values)) / total for values in zip(*candidates, strict=True))
    return first, second, third


@lru_cache(maxsize=4096)
def _fit_by_valuation(counts: Counts, kind: str, what: tuple[int, ...]) -> tuple[float, ...]:
    """How well each valuation explains one of the partner's statements, as a log-weight."""
    return tuple(_fit(values, kind, what) for values in _valuations(counts))


def _fit(values: Counts, kind: str, what: tuple[int, ...]) -> float:
    if kind == "demand":
        return 0.5 * sum(value * n for value, n in zip(values, what, strict=True))
    if kind == "refused":
        return -0.15 * sum(value * n for value, n in zip(values, what, strict=True))
    item = what[0]
    if kind == "high":
        return 0.0 if values[item] == max(values) else -2.0 - 0.5 * (max(values) - values[item])
    if kind == "low":
        return -1.5 * values[item] if values[item] == min(values) else -3.0 - 1.5 * values[item]
    return -4.0 * abs(values[item] - what[1])


@lru_cache(maxsize=256)
def _valuations(counts: Counts) -> tuple[Counts, ...]:
    """Every valuation under which the table is worth 10 points."""
    return tuple(
        (a, b, c)
        for a, b, c in product(*(range(POINTS // count + 1) for count in counts))
        if a * counts[0] + b * counts[1] + c * counts[2] == POINTS
    )


# ---- Splits ---------------------------------------------------------------------


class _Deals(NamedTuple):
    """All full splits, in the order of `_shares`, and the levels that an offer is measured against."""

    mine: tuple[float, ...]
    theirs: tuple[float, ...]
    fair: float  # what I get of the split that a fair third party would name
    best: float  # the most that a split can bring me


@lru_cache(maxsize=8192)
def _deals(counts: Counts, values: Counts, partner: Worths, lam: float) -> _Deals:
    """The utility of every split for both sides.

    Source: Nash 1950 for the fair one (the greatest product of both sides' gains), with no deal worth 0 to both.
    """
    (a, b, c, nothing), (x, y, z, everything) = _slopes(counts, values, partner, lam)
    shares = _shares(counts)
    mine = tuple([nothing + a * i + b * j + c * k for i, j, k in shares])
    theirs = tuple([everything - x * i - y * j - z * k for i, j, k in shares])
    merits = [u * v if u > 0 and v > 0 else min(u, v) for u, v in zip(mine, theirs, strict=True)]
    return _Deals(mine, theirs, mine[merits.index(max(merits))], max(mine))


def _slopes(counts: Counts, values: Counts, partner: Worths, lam: float) -> tuple[_Slope, _Slope]:
    """How much each item adds to my utility and takes from the partner's, each with the utility of my having
    nothing.
    """
    (a, b, c), (x, y, z) = values, partner
    theirs = x * counts[0] + y * counts[1] + z * counts[2]
    return (a - lam * x, b - lam * y, c - lam * z, lam * theirs), (x - lam * a, y - lam * b, z - lam * c, theirs)


@lru_cache(maxsize=256)
def _shares(counts: Counts) -> tuple[Counts, ...]:
    a, b, c = (range(count + 1) for count in counts)
    return tuple(product(a, b, c))


def proposed(share: Counts) -> str:
    """The text of a move that proposes a share."""
    parts = (f"{n} {item}{'' if n == 1 else 's'}" for item, n in zip(ITEMS, share, strict=True))
    return f"[propose] ({', '.join(parts)})"
