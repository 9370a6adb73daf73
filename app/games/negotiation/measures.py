"""A finished match's measures beside its result: what its talk says, and what reference splits would score. Pure."""

from collections.abc import Sequence
from fractions import Fraction

from app.games.base import GROUNDED, Event
from app.games.negotiation.contexts import Context, Counts, rest_of, three
from app.games.negotiation.points import Split, best_joint_score, demand_rule, is_pareto_optimal, scores
from app.games.negotiation.spoken import TalkReading, read_talk

# Whether the split of a deal was never named; whether any split was; whether a proposal asks for its seat's
# share of the last split that this seat reads in the talk, by seat and in order; whether an acceptance names another.
UNSPOKEN, NAMED, MISQUOTED = "unspoken", "named", "misquoted"
FIRST_GROUNDED, SECOND_GROUNDED = "first_grounded", "second_grounded"
# If both seats had proposed their share of the last split that each reads: a deal, the mean score, Pareto-optimal.
LAST_OFFER_AGREED, LAST_OFFER_SCORE, LAST_OFFER_PARETO = "last_offer_agreed", "last_offer_score", "last_offer_pareto"
# Mean scores of a seat in the same context: of a random split of all items, by the demand rule, of the best joint one.
RANDOM_SCORE, DEMAND_SCORE, BEST_SCORE = "random_score", "demand_score", "best_score"

_POINTS_OF_BOTH = 10  # average of a random split: each item goes to either seat equally often


def measures_of(context: Context, lam: Fraction, first: int, moves: Sequence[Event]) -> dict[str, float]:
    """The measures of a match with these accepted moves, by name; those that it lacks are left out.

    `first` is the seat that began. Scores are means of both seats, with λ.
    """
    talk = read_talk(context.counts, [(move.seat, move.text) for move in moves if move.kind == "message"])
    proposals = {move.seat: three(move.data["allocation"]) for move in moves if move.kind == "proposal"}
    weight = float(1 + lam) / 2  # of both seats' points in the mean of two utilities
    found: dict[str, float] = {
        NAMED: bool(talk.named),
        RANDOM_SCORE: _POINTS_OF_BOTH * weight,
        DEMAND_SCORE: sum(scores(context, demand_rule(context, first))) * weight,
        BEST_SCORE: best_joint_score(context) * weight,
    }
    for order, (seat, share) in zip((FIRST_GROUNDED, SECOND_GROUNDED), proposals.items(), strict=False):
        found[GROUNDED[seat]] = found[order] = _own(talk, context.counts, seat) == share
    if len(proposals) == 2 and rest_of(context.counts, proposals[0]) == proposals[1]:
        found[UNSPOKEN] = proposals[0] not in talk.named
    if talk.misquoted is not None:
        found[MISQUOTED] = talk.misquoted
    return found | _last_offer(context, lam, talk, weight)


def _last_offer(context: Context, lam: Fraction, talk: TalkReading, weight: float) -> dict[str, float]:
    split = talk.last[0]
    if split is None or split != talk.last[1]:
        return {LAST_OFFER_AGREED: False, LAST_OFFER_SCORE: 0.0}
    both: Split = split, rest_of(context.counts, split)
    return {
        LAST_OFFER_AGREED: True,
        LAST_OFFER_SCORE: sum(scores(context, both)) * weight,
        LAST_OFFER_PARETO: is_pareto_optimal(context, both, lam),
    }


def _own(talk: TalkReading, counts: Counts, seat: int) -> Counts | None:
    """The seat's share of the last split, as that seat reads it."""
    split = talk.last[seat]
    return split if split is None or seat == 0 else rest_of(counts, split)
