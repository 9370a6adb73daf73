"""What a round of Deal or No Deal would have made had both seats proposed what was offered last, read by plain rules.

    flask export lm-selfplay --round 1 --out round-1
    python -m bench.last_offers round-1

Takes the published form of a round (docs/formats.md) and nothing of the product, so that its scores check ours, too.
The last message that says who gets what decides: its speaker takes its "I take …", the other seat its "you get …", and
where one of the two is missing that seat takes the rest. Parts that do not add up to the table are no deal. *Repaired*
is the same with the speaker's part cut to what there is and the rest to the other seat, which makes a deal of anything
that can be read. docs/headline-plan.md says what the figures are for.
"""

import argparse
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

Counts = tuple[int, ...]
ITEMS = ("book", "hat", "ball")
_MOVE = re.compile(r"^Player ([01]): (\[\w+\].*)$", re.MULTILINE)
_WORD = re.compile(r"[a-z]+|\d+|[.!?:;]")
_VERBS = frozenset(("take", "takes", "get", "gets", "have", "keep", "want", "need"))
_BETWEEN = frozenset(("can", "could", "would", "will", "should", "ll", "d"))  # "you can have", "I'll take"
_NUMBERS = {"no": 0, "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_ALL, _BOTH = "all", "both"


class Match(NamedTuple):
    """A match: counts, values and proposals by seat (None if there was none), and (seat, text) of its messages.

    `proposers` are the seats in the order in which they proposed; `scored` are the points that the product gave each.
    """

    counts: Counts
    values: tuple[Counts, Counts]
    proposed: tuple[Counts | None, Counts | None]
    messages: Sequence[tuple[int, str]]
    proposers: Sequence[int] = ()
    scored: tuple[int, int] = (0, 0)

    def points(self, shares: Sequence[Counts | None]) -> tuple[int, int] | None:
        """What both seats get for these shares, or None if there is no deal."""
        first, second = shares
        if first is None or second is None or _sum(first, second) != self.counts:
            return None
        return _worth(self.values[0], first), _worth(self.values[1], second)

    def is_optimal(self, points: tuple[int, int]) -> bool:
        """Whether no split of the items is better for one seat and no worse for the other."""
        for share in itertools.product(*(range(count + 1) for count in self.counts)):
            rest = tuple(count - n for count, n in zip(self.counts, share, strict=True))
            other = _worth(self.values[0], share), _worth(self.values[1], rest)
            if other != points and other[0] >= points[0] and other[1] >= points[1]:
                return False
        return True


class Offer(NamedTuple):
    """What a message gives to its speaker and to its listener; None where it does not say."""

    own: Counts | None
    other: Counts | None

    def shares(self, counts: Counts) -> tuple[Counts, Counts]:
        """The shares of speaker and listener as stated; they need not add up to all items."""
        own = self.own if self.own is not None else _left(counts, self.other or (0, 0, 0))
        return own, self.other if self.other is not None else _left(counts, own)

    def repaired(self, counts: Counts) -> tuple[Counts, Counts]:
        """The speaker's share limited to the items available, and the rest."""
        own = tuple(max(0, min(n, count)) for n, count in zip(self.shares(counts)[0], counts, strict=True))
        return own, _left(counts, own)


def offer_in(text: str, counts: Counts) -> Offer | None:
    """The split that a message states, or None. Unknown words are ignored."""
    parts: dict[str, Counts] = {}
    owner: str | None = None
    number: int | str | None = None
    words = _WORD.findall(text.lower().replace("’", "'"))
    for at, word in enumerate(words):
        after = [each for each in words[at + 1 : at + 4] if each not in _BETWEEN]
        if word in ("i", "you"):
            owner, number = word if after and after[0] in _VERBS else None, None
        elif word in ".!?:;":
            owner = number = None
        elif word in _NUMBERS or word in (_ALL, _BOTH) or word.isdigit():
            number = int(word) if word.isdigit() else _NUMBERS.get(word, word)
        elif owner is not None and word in ("everything", "nothing"):
            parts[owner] = counts if word == "everything" else (0, 0, 0)
        elif owner is not None and word.removesuffix("s") in ITEMS:
            item = ITEMS.index(word.removesuffix("s"))
            if number is None or number == _ALL:
                number = counts[item] if word.endswith("s") else 1
            amount = 2 if number == _BOTH else int(number)
            before = parts.get(owner, (0, 0, 0))
            parts[owner] = tuple(n + amount * (place == item) for place, n in enumerate(before))
            number = None
    return Offer(parts.get("i"), parts.get("you")) if parts else None


def last_offer(match: Match) -> tuple[int, Offer] | None:
    """The seat that stated a split last, and the split."""
    for seat, text in reversed(match.messages):
        offer = offer_in(text, match.counts)
        if offer is not None:
            return seat, offer
    return None


def matches_of(folder: Path) -> Iterator[Match]:
    """The matches of a round in its published form."""
    for path in sorted((folder / "results").glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        text = (folder / "text_logs" / f"{path.stem}_full.txt").read_text(encoding="utf-8")
        moves = [(int(seat), move) for seat, move in _MOVE.findall(text)]
        proposed = [_numbers(result[f"p{seat}_allocation"]) for seat in (0, 1)]
        yield Match(
            _numbers(result["counts"]) or (),
            (_numbers(result["p0_values"]) or (), _numbers(result["p1_values"]) or ()),
            (proposed[0], proposed[1]),
            tuple((seat, move.removeprefix("[message] ")) for seat, move in moves if move.startswith("[message] ")),
            tuple(seat for seat, move in moves if move.startswith("[propose]")),
            (result["p0_score"], result["p1_score"]),
        )


def figures(matches: Sequence[Match]) -> dict[str, float]:
    """Shares of matches, and points per player over all of them; `agreed_*` over those with a deal (0 if none)."""
    offers = [last_offer(match) for match in matches]
    played = [match.points(match.proposed) for match in matches]
    said = [_rescored(match, offer, repaired=False) for match, offer in zip(matches, offers, strict=True)]
    repaired = [_rescored(match, offer, repaired=True) for match, offer in zip(matches, offers, strict=True)]
    agreed = [(match, points) for match, points in zip(matches, played, strict=True) if points is not None]
    return {
        "matches": len(matches),
        "deals": _share(played),
        "points": _points(played),
        "agreed_points": _points([points for _, points in agreed]),
        "agreed_pareto": _mean([match.is_optimal(points) for match, points in agreed]),
        "aborted": _mean([None in match.proposed for match in matches]),
        "readable": _share(offers),
        "last_offer_deals": _share(said),
        "last_offer_points": _points(said),
        "repaired_deals": _share(repaired),
        "repaired_points": _points(repaired),
    }


def scored_otherwise(matches: Sequence[Match]) -> int:
    """How many matches the product scored differently from their proposals' points computed here."""
    return sum(match.scored != (match.points(match.proposed) or (0, 0)) for match in matches)


def _rescored(match: Match, found: tuple[int, Offer] | None, *, repaired: bool) -> tuple[int, int] | None:
    if found is None:
        return None
    seat, offer = found
    own, other = offer.repaired(match.counts) if repaired else offer.shares(match.counts)
    if min(*own, *other) < 0:
        return None
    return match.points((own, other) if seat == 0 else (other, own))


def _numbers(by_item: Mapping[str, int] | None) -> Counts | None:
    return None if by_item is None else tuple(by_item[item] for item in ITEMS)


def _sum(first: Counts, second: Counts) -> Counts:
    return tuple(a + b for a, b in zip(first, second, strict=True))


def _left(counts: Counts, share: Counts) -> Counts:
    return tuple(count - n for count, n in zip(counts, share, strict=True))


def _worth(values: Counts, share: Counts) -> int:
    return sum(value * n for value, n in zip(values, share, strict=True))


def _share(found: Sequence[object]) -> float:
    return _mean([each is not None for each in found])


def _points(found: Sequence[tuple[int, int] | None]) -> float:
    return _mean([sum(each) / 2 if each else 0 for each in found])


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


def main() -> None:
    """Print the figures of rounds, one JSON object per line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+", help="what `flask export lm-selfplay` wrote")
    for folder in parser.parse_args().folders:
        matches = list(matches_of(folder))
        found = {name: round(value, 4) for name, value in figures(matches).items()}
        print(json.dumps({"folder": str(folder), **found, "scored_otherwise": scored_otherwise(matches)}))


if __name__ == "__main__":
    main()
