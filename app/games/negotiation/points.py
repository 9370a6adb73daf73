"""The value of a split to each seat, and which splits are the best. Pure."""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from app.games.negotiation.contexts import Context, Counts, rest_of, three

Split = tuple[Counts, Counts]  # what seat 0 gets, what seat 1 gets


def scores(context: Context, split: Split) -> tuple[int, int]:
    """Points of each seat, s = values · allocation, before λ."""
    ((a, b, c), (i, j, k)), ((d, e, f), (x, y, z)) = zip(context.values, split, strict=True)
    return a * i + b * j + c * k, d * x + e * y + f * z


def utilities(context: Context, split: Split, lam: Fraction) -> tuple[Fraction, Fraction]:
    """u_i = s_i + λ·s_j of a deal. Source: arXiv 2406.18872, section 3."""
    first, second = scores(context, split)
    return first + lam * second, second + lam * first


def splits(counts: Counts) -> Iterator[Split]:
    """Every way to share out all items between the seats."""
    first, second, third = counts
    for a, b, c in _sides(counts):
        yield (a, b, c), (first - a, second - b, third - c)


def is_pareto_optimal(context: Context, split: Split, lam: Fraction) -> bool:
    """Whether no full split is better for one seat and no worse for the other, in the utilities with λ."""
    here = _whole_utilities(context, split, lam)
    first, second = _whole_utilities(context, ((0, 0, 0), context.counts), lam)
    # Each thing that moves to seat 0 changes both utilities by the same amount, whatever else moves. Used at the end of
    # every match, this takes a sixth of the time of computing each split separately.
    over, under = lam.numerator, lam.denominator
    values = zip(*context.values, strict=True)
    (a, x), (b, y), (c, z) = ((under * v - over * w, over * v - under * w) for v, w in values)
    return not any(
        _dominates((first + a * i + b * j + c * k, second + x * i + y * j + z * k), here)
        for i, j, k in _sides(context.counts)
    )


def frontier(context: Context, lam: Fraction = Fraction(0)) -> list[Split]:
    """All Pareto-optimal full splits, in the order of `splits`."""
    everything = [(split, _whole_utilities(context, split, lam)) for split in splits(context.counts)]
    return [split for split, here in everything if not any(_dominates(there, here) for _, there in everything)]


def best_joint_score(context: Context) -> int:
    """The maximum joint score of both seats: each type goes to the seat that values it more."""
    first, second = context.values
    return sum(count * max(a, b) for count, a, b in zip(context.counts, first, second, strict=True))


def demand_rule(context: Context, first: int) -> Split:
    """A rule without skill: seat `first` gets all items of its most valuable type, its partner the rest.

    Between two types of the same value it takes the earlier one.
    """
    worth = [count * value for count, value in zip(context.counts, context.values[first], strict=True)]
    wanted = worth.index(max(worth))
    own = three([count if item == wanted else 0 for item, count in enumerate(context.counts)])
    rest = rest_of(context.counts, own)
    return (own, rest) if first == 0 else (rest, own)


@lru_cache(maxsize=256)
def _sides(counts: Counts) -> tuple[Counts, ...]:
    """Every share of the table that one seat can get."""
    first, second, third = (range(count + 1) for count in counts)
    return tuple(itertools.product(first, second, third))


def _whole_utilities(context: Context, split: Split, lam: Fraction) -> tuple[int, int]:
    """Utilities times the denominator of λ: the same order, exact, and far quicker than fractions."""
    first, second = scores(context, split)
    over, under = lam.numerator, lam.denominator
    return under * first + over * second, under * second + over * first


def _dominates(there: tuple[int, int], here: tuple[int, int]) -> bool:
    return there != here and there[0] >= here[0] and there[1] >= here[1]
