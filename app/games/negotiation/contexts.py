"""The contexts of a negotiation, drawn at random or read from a file.

Source: Lewis et al. 2017, whose `selfplay.txt` has this format.
"""

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.core.errors import Invalid, Phrase, Verbatim, shown

ITEMS = ("book", "hat", "ball")
POINTS = 10  # what all items together are worth to each seat

Counts = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Context:
    """The items on the table: counts of books, hats and balls, and what one of each is worth to each seat."""

    counts: Counts
    values: tuple[Counts, Counts]


def generate_context(rng: random.Random) -> Context:
    """Draw a context: 5 to 7 items, each type at least once, 10 points for each seat.

    Every type is wanted by a seat, and some type by both, so that there is something to negotiate.
    """
    counts = rng.choice(_all_counts())
    candidates = _all_values(counts)
    while True:
        values = rng.choice(candidates), rng.choice(candidates)
        if _worth_talking_about(values):
            return Context(counts, values)


def read_contexts(lines: Iterable[str], source: str = "contexts file") -> list[Context]:
    """Read a contexts file: two lines per context (seat 0, seat 1), each with `count value` three times.

    Raises Invalid with the number of the first malformed line.
    """
    contexts: list[Context] = []
    opening: tuple[int, Counts, Counts] | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = Phrase("%(source)s, line %(line)s", source=source, line=number)
        counts, values = _read_line(line, where)
        if opening is None:
            opening = number, counts, values
            continue
        first_line, first_counts, first_values = opening
        if counts != first_counts:
            raise Invalid(
                None,
                expected=Phrase(
                    "the counts of line %(line)s, %(counts)s", line=first_line, counts=_spaced(first_counts)
                ),
                got=Verbatim(_spaced(counts)),
                remedy=Phrase("both lines of a context describe the same table"),
                subject=where,
            )
        contexts.append(_checked_context(Context(counts, (first_values, values)), where))
        opening = None
    if opening is not None:
        raise Invalid(
            None,
            expected=Phrase("a second line for seat 1"),
            got=Phrase("the end of the file"),
            subject=Phrase("%(source)s, line %(line)s", source=source, line=opening[0]),
        )
    if not contexts:
        raise Invalid(None, expected=Phrase("two lines a context"), got=Phrase("an empty file"), subject=source)
    return contexts


def _read_line(line: str, where: Phrase | Verbatim) -> tuple[Counts, Counts]:
    words = line.split()
    if len(words) != 6:
        raise Invalid(
            None, expected=Phrase("six whole numbers, count and value three times"), got=len(words), subject=where
        )
    if not all(word.isascii() and word.isdigit() for word in words):
        raise Invalid(
            None,
            expected=Phrase("six whole numbers, count and value three times"),
            got=line.strip()[:60],
            subject=where,
        )
    numbers = [int(word) for word in words]
    return three(numbers[0::2]), three(numbers[1::2])


def _checked_context(context: Context, where: Phrase | Verbatim) -> Context:
    if min(context.counts) < 1 or max(context.counts) > POINTS:
        raise Invalid(
            None,
            expected=Phrase("1 to %(points)s of each item", points=POINTS),
            got=Verbatim(_spaced(context.counts)),
            subject=where,
        )
    for seat, values in enumerate(context.values):
        worth = sum(count * value for count, value in zip(context.counts, values, strict=True))
        if min(values) < 0 or worth != POINTS:
            raise Invalid(
                None,
                expected=Phrase(
                    "values of seat %(seat)s that make %(points)s points over all items", seat=seat, points=POINTS
                ),
                got=worth,
                subject=where,
            )
    return context


@lru_cache
def _all_counts() -> list[Counts]:
    return [three(counts) for counts in itertools.product(range(1, 6), repeat=3) if 5 <= sum(counts) <= 7]


@lru_cache
def _all_values(counts: Counts) -> list[Counts]:
    ranges = (range(POINTS // count + 1) for count in counts)
    return [
        three(values)
        for values in itertools.product(*ranges)
        if sum(count * value for count, value in zip(counts, values, strict=True)) == POINTS
    ]


def _worth_talking_about(values: tuple[Counts, Counts]) -> bool:
    pairs = list(zip(*values, strict=True))
    return all(a or b for a, b in pairs) and any(a and b for a, b in pairs)


def context_of(counts: Any, values: Any) -> Context:
    """The context given by a config's counts and values. Raises Invalid."""
    where = Verbatim("counts, values")
    try:
        context = Context(three(counts), (three(values[0]), three(values[1])))
        numbers = [*context.counts, *context.values[0], *context.values[1]]
        if len(values) != 2 or any(isinstance(number, bool) or not isinstance(number, int) for number in numbers):
            raise ValueError
    except (TypeError, ValueError, KeyError, IndexError):
        raise Invalid(
            None,
            expected=Phrase("three whole counts and two lists of three whole values"),
            got=Phrase("%(counts)s and %(values)s", counts=shown(counts), values=shown(values)),
            subject=where,
        ) from None
    return _checked_context(context, where)


def three(numbers: Sequence[int]) -> Counts:
    """Numbers of books, hats and balls as a tuple. Raises ValueError when there are not three."""
    first, second, third = numbers
    return first, second, third


def rest_of(counts: Counts, share: Counts) -> Counts:
    """What is left on the table after a share is taken."""
    (a, b, c), (x, y, z) = counts, share
    return a - x, b - y, c - z


def _spaced(numbers: Counts) -> str:
    return " ".join(map(str, numbers))
