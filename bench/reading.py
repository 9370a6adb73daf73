"""How well `scripted` reads what people really type: which split they agreed on, and whether it closes their deals.

    python -m bench.reading FILE    human dialogues, one perspective a line (docs/formats.md)

Every dialogue that ended in a deal is looked at from both seats. *Read* is a view after whose last message the scripted
negotiator takes exactly the true split for agreed. *Closed* is one in which, when the partner then proposes what it
really chose, the negotiator answers with the other half. The baseline reads no sentences: it takes the numbers before
books, hats and balls in the last message that has any for what its speaker gets, or its listener if it says "you can
have", "you get" or "you take", and gives what is not named to the other side.

A tenth of the dialogues, by a hash of their words, is held out: nobody looks at it while the reading is worked on.
docs/results.md has figures. The published dialogues are CC BY-NC 4.0 and do not come with Parlor.
"""

import argparse
import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from app.datasets.importers.dialogues import Dialogues
from app.games.base import Event
from app.games.negotiation.contexts import Counts, three
from app.games.negotiation.offers import follow
from app.games.negotiation.rules import NEGOTIATION
from app.games.negotiation.vocabulary import ITEMS, NUMBERS
from app.matches import engine
from app.matches.events import Ended
from app.players.scripted.negotiation import negotiator

TUNING, HELD_OUT = "tuning", "held out"
_YOURS = re.compile(r"\byou (?:can |could )?(?:have|get|take|keep)\b")
_WORD = re.compile(r"[a-z]+|\d+")


class Dialogue(NamedTuple):
    """A dialogue that ended in a deal: the state after its last message, its texts with their seats, both shares."""

    state: Any
    texts: Sequence[tuple[int, str]]
    shares: tuple[Counts, Counts]

    @property
    def part(self) -> str:
        """Which part the dialogue belongs to (held out or not); the same from both perspectives."""
        words = "\n".join(text for _, text in self.texts)
        return HELD_OUT if int(hashlib.sha256(words.encode()).hexdigest(), 16) % 10 == 0 else TUNING


def dialogues(path: str) -> Iterator[Dialogue]:
    """The dialogues of a file that ended in a deal. Raises Invalid, which names the line."""
    for match in Dialogues(path):
        ended = match.events[-1]
        if not (isinstance(ended, Ended) and ended.reason == "deal"):
            continue
        talk = [event for event in match.events if isinstance(event, Event) and event.kind == "message"]
        state = engine.replay([match.events[0], *talk]).state
        texts = [(event.seat, event.text.removeprefix("[message]").strip()) for event in talk]
        first, second = (three(share) for share in ended.facts["allocations"])
        yield Dialogue(state, texts, (first, second))


def is_read(dialogue: Dialogue, seat: int) -> bool:
    """Whether the negotiator in this seat takes the true split as agreed."""
    heard = tuple(("you" if who == seat else "partner", f"[message] {text}") for who, text in dialogue.texts)
    return follow(dialogue.state.context.counts, heard).agreed == dialogue.shares[seat]


def is_closed(dialogue: Dialogue, seat: int) -> bool:
    """Whether the negotiator in the seat answers the partner's proposal with its own half."""
    hidden = Event("proposal", 1 - seat, "[propose]", {"allocation": list(dialogue.shares[1 - seat])})
    view = NEGOTIATION.view(NEGOTIATION.apply(dialogue.state, hidden), seat)
    return negotiator.choose(view, random.Random(0)) == negotiator.proposed(dialogue.shares[seat])


def plainly(dialogue: Dialogue) -> Counts | None:
    """Seat 0's share by the last numbers stated; None if none were stated."""
    counts = dialogue.state.context.counts
    for seat, text in reversed(dialogue.texts):
        words = _WORD.findall(text.lower())
        pairs = [pair for pair in pairwise(words) if pair[0] in NUMBERS and pair[1] in ITEMS]
        if pairs:
            named = {ITEMS[thing][0]: min(NUMBERS[number], counts[ITEMS[thing][0]]) for number, thing in pairs}
            own = (seat == 0) != bool(_YOURS.search(text.lower()))
            first, second, third = (
                named.get(item, 0) if own else count - named.get(item, 0) for item, count in enumerate(counts)
            )
            return first, second, third
    return None


def measure(path: str) -> dict[str, dict[str, int]]:
    """Counts for both parts: views, those read, those closed, and those the baseline gets right."""
    found: dict[str, Counter[str]] = {TUNING: Counter(), HELD_OUT: Counter()}
    for dialogue in dialogues(path):
        part = found[dialogue.part]
        plain = plainly(dialogue) == dialogue.shares[0]
        for seat in (0, 1):
            part.update(views=1, read=is_read(dialogue, seat), closed=is_closed(dialogue, seat), baseline=plain)
    return {name: dict(part) for name, part in found.items()}


def table(found: dict[str, dict[str, int]]) -> str:
    """The results, for a terminal."""
    lines = [f"{'part':10} {'views':>6} {'read':>8} {'closed':>8} {'baseline':>9} {'closed ÷ baseline':>18}"]
    for name, part in found.items():
        views = part.get("views", 0)
        if not views:
            lines.append(f"{name:10} {0:>6}")
            continue
        read, closed, baseline = (part[key] / views for key in ("read", "closed", "baseline"))
        ratio = f"{closed / baseline:.2f}" if baseline else "–"
        lines.append(f"{name:10} {views:>6} {read:>8.1%} {closed:>8.1%} {baseline:>9.1%} {ratio:>18}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.reading", description="How scripted reads human dialogues.")
    parser.add_argument("file", help="human dialogues, one perspective a line")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    found = measure(options.file)
    print(json.dumps(found) if options.json else table(found))


if __name__ == "__main__":
    main()
