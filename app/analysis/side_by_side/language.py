"""What players say, side by side: figures of their messages and offers with intervals. Pure.

Figures that are sums over matches are resampled by what was drawn independently, like all figures of a setting. The
vocabulary is not such a sum: it is the expected number of different words among 1,000 words drawn from all that a
player said, and its interval leaves out a tenth of the units at a time.

Source: Hurlbert 1971, Ecology 52, formula 16 (the expected number of species, here of words); Tukey 1958 and Kott 2001,
Journal of Official Statistics 17, for the jackknife by groups.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.analysis.bootstrap import LEAST, RESAMPLES, SEED_OF_DRAWS, Figure, Floats, Integers, interval_ends, wilson
from app.analysis.side_by_side.settings import FEW
from app.games.metrics import SHARE
from app.games.talk import LanguageMetric, Talk

VOCABULARY = "vocabulary"
WORDS_DRAWN = 1_000
FEW_WORDS = "too few words"
GROUPS = 10  # at most LEAST, so that each has a unit
MOST_OFFERS = 8  # per curve
_T = 2.2621571627409915  # 97.5 % of Student's t with GROUPS - 1 degrees of freedom


@dataclass(frozen=True, slots=True)
class LanguageFigures:
    """What a player said in one setting, in one role where roles differ, over `matches`.

    `words` counts all its words. `demands` has the worth of its first offer, its second and so on to itself.
    """

    player: str
    role: str | None
    setting: str
    matches: int
    units: int
    words: int
    columns: Mapping[str, Figure]
    demands: Sequence[Figure]


def language_figures(
    who: tuple[str, str | None],
    setting: str,
    unit: str,
    talks: Sequence[Talk],
    units: Integers,
    matches: Integers,
    metrics: Sequence[LanguageMetric],
) -> LanguageFigures:
    """The figures of a player in a role, from each seat's talk, the unit that was drawn, and the match."""
    parts = np.array([[each.part(talk) for each in metrics] for talk in talks], np.float64)
    longest = min(MOST_OFFERS, max((len(talk.offers) for talk in talks), default=0))
    demands = np.array([[_nth_offer(talk, place) for place in range(longest)] for talk in talks], np.float64)
    both = parts.reshape(len(talks), len(metrics), 2), demands.reshape(len(talks), longest, 2)
    together = np.concatenate(both, axis=1)
    shares = [each.unit == SHARE for each in metrics]
    found = _ratios(together, units, matches, FEW[unit], [*shares, *([False] * longest)])
    names = [each.name for each in metrics]
    spoken = [Counter(word for message in talk.messages for word in message) for talk in talks]
    columns = {VOCABULARY: _vocabulary(spoken, units, len(np.unique(matches)), FEW[unit])}
    columns |= dict(zip(names, found, strict=False))
    words = sum(each.total() for each in spoken)
    player, role = who
    number = len(np.unique(matches)), len(np.unique(units))
    return LanguageFigures(player, role, setting, *number, words, columns, found[len(names) :])


def expected_words(counts: Sequence[int], drawn: int = WORDS_DRAWN) -> float | None:
    """The expected number of different words among `drawn` words drawn from a text without replacement.

    `counts` says how often each word occurs. None for a text with fewer words.
    """
    total = sum(counts)
    if total < drawn:
        return None
    every = _log_ways(total, drawn)
    of_count = {count: 1 - math.exp(_log_ways(total - count, drawn) - every) for count in set(counts)}
    return sum(of_count[count] for count in counts)


def _log_ways(things: int, drawn: int) -> float:
    """The logarithm of the number of ways to draw `drawn` of `things`."""
    if things < drawn:
        return -math.inf
    return math.lgamma(things + 1) - math.lgamma(drawn + 1) - math.lgamma(things - drawn + 1)


def _vocabulary(spoken: Sequence[Counter[str]], units: Integers, matches: int, few: str) -> Figure:
    whole: Counter[str] = Counter()
    for each in spoken:
        whole.update(each)
    value = expected_words(list(whole.values()))
    if value is None:
        return Figure(None)
    known, group_of = np.unique(units, return_inverse=True)
    if len(known) < LEAST:
        return Figure(value, n=matches, no_interval=few)
    order = np.random.default_rng(SEED_OF_DRAWS).permutation(len(known)) % GROUPS
    groups: list[Counter[str]] = [Counter() for _ in range(GROUPS)]
    for each, place in zip(spoken, group_of.reshape(-1), strict=True):
        groups[order[place]].update(each)
    without = [expected_words([n - each[word] for word, n in whole.items() if n > each[word]]) for each in groups]
    if any(each is None for each in without):
        return Figure(value, n=matches, no_interval=FEW_WORDS)
    left = np.array(without, np.float64)
    error = math.sqrt((GROUPS - 1) / GROUPS * float(((left - left.mean()) ** 2).sum()))
    return Figure(value, value - _T * error, value + _T * error, matches)


def _nth_offer(talk: Talk, place: int) -> tuple[float, float]:
    return (talk.offers[place], 1) if place < len(talk.offers) else (0, 0)


def _ratios(parts: Floats, units: Integers, matches: Integers, few: str, shares: Sequence[bool]) -> list[Figure]:
    """The sum of the first numbers over that of the second ones, (n, figures, 2), with intervals by resampling.

    A share of 0 or 1, which resampling never changes, has Wilson's interval of the units.
    """
    known, unit_of = np.unique(units, return_inverse=True)
    sums = np.zeros((len(known), parts.shape[1], 2))
    np.add.at(sums, unit_of.reshape(-1), parts)
    often = np.random.default_rng(SEED_OF_DRAWS).multinomial(len(known), np.full(len(known), 1 / len(known)), RESAMPLES)
    found = []
    for place in range(parts.shape[1]):
        over, under = sums[:, place].sum(0)
        has = parts[:, place, 1] > 0
        number = len(np.unique(matches[has]))
        if not number:
            found.append(Figure(None))
        elif len(np.unique(units[has])) < LEAST:
            found.append(Figure(float(over / under), n=number, no_interval=few))
        elif shares[place] and over in (0, under):
            found.append(Figure(float(over / under), *wilson(over / under, len(np.unique(units[has]))), number))
        else:
            drawn = often @ sums[:, place]
            with np.errstate(invalid="ignore"):  # NaN for a resample without any
                found.append(Figure(float(over / under), *interval_ends(drawn[:, 0] / drawn[:, 1]), number))
    return found
