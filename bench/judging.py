"""How well splits are read from talk: deals drawn to be judged by hand, and precision and recall against two judges.

    flask export lm-selfplay --round 1 --out round-1
    python -m bench.judging draw base=round-1 final=round-9 people=human_dialogues.txt --out deals.csv
    python -m bench.judging score base=round-1 final=round-9 people=human_dialogues.txt first.csv second.csv

`draw` takes deals of rounds in their published form, or of a file of people's dialogues (docs/formats.md), by the seed,
and mixes them, so that a judge does not see whose they are, nor what was agreed. Two judges fill in a copy of the file
each, without the other's: `splits` is what A gets by each split that a message means, with what was said before it, as
three numbers, in their order with ; between, or - where none was named. Empty cells are left out, and only the columns
`id` and `splits` are read, so that judgements can be kept without the talk. `score` draws the
same deals again and compares the split that was named last (which the reader has to read for both seats), and whether
that of the deal was named at all. Where judges differ, each is compared by itself. People's words do not come with
Parlor: keep such files apart.
"""

import argparse
import csv
import hashlib
import random
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from app.games.negotiation.contexts import Counts, three
from app.games.negotiation.spoken import read_talk
from bench.last_offers import matches_of
from bench.reading import dialogues

COLUMNS = ("id", "books hats balls", "talk", "splits")
NONE, YES, NO = "-", "yes", "no"
_SPLIT = re.compile(r"\d+ \d+ \d+")


class Deal(NamedTuple):
    """A match that ended in a deal; `share` is what seat 0 got, which judges see as A."""

    counts: Counts
    talk: Sequence[tuple[int, str]]
    share: Counts


class Judgement(NamedTuple):
    """A judge's, or the reader's, view of a deal: the last split, or NONE, and whether the deal's own split was
    named.
    """

    last: str
    named: str


def deals_of(source: Path) -> list[Deal]:
    """The deals in a folder written by `flask export lm-selfplay`, or in a file of people's dialogues."""
    if source.is_file():
        return [Deal(each.state.context.counts, each.texts, each.shares[0]) for each in dialogues(str(source))]
    return [
        Deal(three(match.counts), match.messages, three(match.proposed[0]))
        for match in matches_of(source)
        if match.proposed[0] is not None and match.points(match.proposed) is not None
    ]


def drawn(sources: Mapping[str, Path], number: int, seed: int) -> dict[str, tuple[str, Deal]]:
    """`number` deals of each source, or all that it has, shuffled: (name of the source, deal) by id."""
    rng = random.Random(seed)
    found: list[tuple[str, Deal]] = []
    for name, source in sources.items():
        deals = deals_of(source)
        found += [(name, deal) for deal in rng.sample(deals, min(number, len(deals)))]
    rng.shuffle(found)
    return {_id_of(deal, place): (name, deal) for place, (name, deal) in enumerate(found, 1)}


def _id_of(deal: Deal, place: int) -> str:
    """The position in the draw and a hash of what is judged, so that judgements of different draws are not confused."""
    said = f"{_spaced(deal.counts)}\n{_in_lines(deal.talk)}"
    return f"{place}-{hashlib.sha256(said.encode()).hexdigest()[:8]}"


def read(deal: Deal) -> Judgement:
    """The result of the product's reader."""
    talk = read_talk(deal.counts, deal.talk)
    last = talk.last[0] if talk.last[0] == talk.last[1] else None
    return Judgement(NONE if last is None else _spaced(last), YES if deal.share in talk.named else NO)


def judgements(path: Path, deals: Mapping[str, tuple[str, Deal]]) -> dict[str, Judgement]:
    """A judge's entries, by id. Raises SystemExit, which names file and line, for an invalid judgement."""
    found: dict[str, Judgement] = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        for line, row in enumerate(csv.DictReader(file), 2):
            number, filled = row.get("id") or "", " ".join((row.get("splits") or "").split())
            if number not in deals:
                raise SystemExit(f"{path}, line {line}: expected a deal of this draw, got {number or 'no id'}")
            if not filled:
                continue
            splits = [] if filled == NONE else [" ".join(each.split()) for each in filled.split(";")]
            if not all(_SPLIT.fullmatch(each) for each in splits):
                raise SystemExit(
                    f"{path}, line {line}: splits: expected such as 1 0 2; 0 0 2, - or nothing, got {filled}"
                )
            named = _spaced(deals[number][1].share) in splits
            found[number] = Judgement(splits[-1] if splits else NONE, YES if named else NO)
    return found


class Rates(NamedTuple):
    """How often the reader is right where it names something (precision), and where a judge does (recall)."""

    right: int
    read: int
    judged: int

    def in_words(self) -> str:
        """The rates as text, such as 91.2 % (of 57) | 88.1 % (of 59)."""
        return " | ".join(f"{self.right / of:.1%} (of {of})" if of else "none" for of in (self.read, self.judged))


def rates(pairs: Iterable[tuple[str, str]], nothing: str) -> Rates:
    """The rates for pairs of the reader's and a judge's answer; `nothing` means that no split was named."""
    known = list(pairs)
    return Rates(
        sum(reader == judge != nothing for reader, judge in known),
        sum(reader != nothing for reader, _ in known),
        sum(judge != nothing for _, judge in known),
    )


def kappa(pairs: Sequence[tuple[str, str]]) -> float:
    """Cohen's kappa of two judges. Source: Cohen 1960, A coefficient of agreement for nominal scales."""
    number = len(pairs)
    same = sum(a == b for a, b in pairs) / number
    firsts, seconds = ([pair[place] for pair in pairs] for place in (0, 1))
    chance = sum(firsts.count(value) * seconds.count(value) for value in {*firsts}) / number**2
    return 1.0 if chance == 1 else (same - chance) / (1 - chance)


def table(deals: Mapping[str, tuple[str, Deal]], judged: Sequence[Mapping[str, Judgement]]) -> str:
    """Each source's figures, as Markdown: precision and recall against each judge, and the judges' agreement."""
    lines = ["| deals | field | judge | precision | recall |", "|---|---|---|---|---|"]
    agreement = ["| deals | field | both judged | same | kappa |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(name for name, _ in deals.values()):
        numbers = [number for number, (source, _) in deals.items() if source == name]
        readings = {number: read(deals[number][1]) for number in numbers}
        for place, (field, nothing) in enumerate((("last", NONE), ("named", NO))):
            for who, judge in enumerate(judged, 1):
                pairs = [(readings[each][place], judge[each][place]) for each in numbers if each in judge]
                lines.append(f"| {name} | {field} | {who} | {rates(pairs, nothing).in_words()} |")
            first, second = judged
            both = [(first[each][place], second[each][place]) for each in numbers if each in first and each in second]
            if both:
                same = sum(a == b for a, b in both) / len(both)
                agreement.append(f"| {name} | {field} | {len(both)} | {same:.1%} | {kappa(both):.2f} |")
    return "\n".join([*lines, "", *agreement])


def _spaced(share: Sequence[int]) -> str:
    return " ".join(map(str, share))


def _in_lines(talk: Sequence[tuple[int, str]]) -> str:
    return "\n".join(f"{'AB'[seat]}: {' '.join(text.split())}" for seat, text in talk)


def _sources(given: Sequence[str]) -> dict[str, Path]:
    named = {name: Path(path) for name, _, path in (each.partition("=") for each in given)}
    for name, path in named.items():
        if not name or not path.name or not path.exists():
            raise SystemExit(f"expected NAME=FOLDER or NAME=FILE that exists, got {name}={path}")
    return named


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw deals, or score the judgements."""
    parser = argparse.ArgumentParser(prog="python -m bench.judging", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("do", choices=("draw", "score"))
    parser.add_argument("given", nargs="+", help="sources as NAME=PATH; to score, then the files of both judges")
    parser.add_argument("--deals", type=int, default=200, help="of each source (200)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("deals.csv"))
    asked = parser.parse_args(arguments)
    files = [Path(each) for each in asked.given if "=" not in each]
    if len(files) != (2 if asked.do == "score" else 0):
        parser.error("expected sources as NAME=PATH to draw, and the files of two judges besides to score")
    deals = drawn(_sources([each for each in asked.given if "=" in each]), asked.deals, asked.seed)
    if asked.do == "score":
        print(table(deals, [judgements(path, deals) for path in files]))
        return
    with asked.out.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for number, (_, deal) in deals.items():
            writer.writerow([number, _spaced(deal.counts), _in_lines(deal.talk), ""])
    print(f"{len(deals)} deals to be judged: {asked.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
