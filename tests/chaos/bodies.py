"""Large, chunked and trickling bodies and heads without end beside fifty players: how long other people's pages take.

`make chaos` does so before its storm; `python -m tests.chaos.bodies --connections 1 8 50` with several numbers of
connections. A page is asked for ten times a second, undisturbed and beside each kind of sender in turn. One that
comes late counts for all that would have been asked for meanwhile.
"""

import argparse
import http.client
import shutil
import threading
import time
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tests.chaos.harms import Harm
from tests.chaos.hostile import KINDS, attack_together, attacked
from tests.chaos.killer import SERVING, pid_of
from tests.chaos.player import Player
from tests.chaos.storm import ENV, HOUSE, PLAYERS, WISHES
from tests.stack import TURNS_ALONE, Stack, new_home

PAGE = "/about"
EVERY = 0.1  # seconds between two pages
TIMES = 2  # what a page may take beside senders, of what it takes undisturbed
LEAST = 0.05  # seconds that are no delay
PATIENCE = 60.0
NOBODY = "nobody"
SENDERS, SECONDS = 4, 3.0  # of one harm of a storm
_PLAYED = [wish for wish in WISHES if wish.opponent == HOUSE]


class Measured(NamedTuple):
    """Pages that were asked for beside a kind of senders: seconds of each, and whether the worker was another after."""

    kind: str
    connections: int
    pages: list[float]
    replaced: bool
    lost: int  # pages that did not come

    @property
    def p95(self) -> float:
        """Seconds within which 95 of 100 pages came."""
        return self.pages[int(len(self.pages) * 0.95)]


def harms() -> Mapping[str, Harm]:
    """A short attack of each kind, for a storm."""

    def of(kind: str) -> Harm:
        return lambda stack, _pid: attack_together(stack.url, kind, SENDERS, SECONDS) and None

    return {kind: of(kind) for kind in ("60 MB", "endless chunks", "body of a byte a second", "endless head")}


def measure(
    stack: Stack,
    seconds: float,
    connections: Sequence[int],
    players: int = PLAYERS,
    kinds: Iterable[str] = KINDS,
) -> list[Measured]:
    """Ask for pages while `players` play, for `seconds` beside each kind of senders, and half as long before each.

    The first of what is returned are the undisturbed pages of all these times.
    """
    calm = threading.Event()
    crowd = [Player(f"player {n}", stack.url, _PLAYED, f"bodies/{n}", calm) for n in range(players)]
    for player in crowd:
        player.start()
    time.sleep(5)  # all of them have begun
    found, undisturbed = list[Measured](), list[Measured]()
    for count in connections:
        for kind in kinds:
            undisturbed.append(_pages(stack, NOBODY, 0, seconds / 2))
            with attacked(stack.url, kind, count, seconds):
                found.append(_pages(stack, kind, count, seconds))
    calm.set()
    deadline = time.monotonic() + PATIENCE
    for player in crowd:
        player.join(max(0.0, deadline - time.monotonic()))
    quiet = sorted(page for each in undisturbed for page in each.pages)
    replaced, lost = any(each.replaced for each in undisturbed), sum(each.lost for each in undisturbed)
    return [Measured(NOBODY, 0, quiet, replaced, lost), *found]


def _pages(stack: Stack, kind: str, connections: int, seconds: float) -> Measured:
    serving, until = pid_of(stack, SERVING), time.monotonic() + seconds
    pages, lost = list[float](), 0
    while time.monotonic() < until:
        began = time.monotonic()
        try:
            urllib.request.urlopen(stack.url + PAGE, timeout=PATIENCE).close()  # noqa: S310 - our own address
        except (OSError, http.client.HTTPException):
            lost += 1
        took = time.monotonic() - began
        pages += [took - n * EVERY for n in range(int(took / EVERY) + 1)]
        time.sleep(max(0.0, EVERY - took))
    return Measured(kind, connections, sorted(pages), pid_of(stack, SERVING) != serving, lost)


def table(found: Sequence[Measured]) -> str:
    """As Markdown, for docs/results.md."""
    lines = ["| who sends beside | connections | pages | p50, ms | p95, ms | slowest, ms | worker replaced |"]
    lines.append("|---|---|---|---|---|---|---|")
    for each in found:
        p50, p95, most = each.pages[len(each.pages) // 2], each.p95, each.pages[-1]
        times = " | ".join(f"{1000 * seconds:.0f}" for seconds in (p50, p95, most))
        replaced = "yes" if each.replaced or each.lost else "no"
        lines.append(f"| {each.kind} | {each.connections or ''} | {len(each.pages)} | {times} | {replaced} |")
    return "\n".join(lines)


def problems(found: Sequence[Measured]) -> list[str]:
    """What should not be: a worker that was replaced, pages that were lost or took too long."""
    undisturbed = found[0].p95
    most = max(TIMES * undisturbed, LEAST)
    said = []
    for each in found:
        if each.replaced or each.lost:
            said.append(f"beside {each.kind}: the worker was replaced, {each.lost} pages were lost")
        if each.p95 > most:
            said.append(
                f"beside {each.kind} ({each.connections}): p95 {each.p95:.2f} s, undisturbed {undisturbed:.2f} s"
            )
    return said


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.bodies", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="beside each kind")
    parser.add_argument("--connections", type=int, nargs="+", default=[8])
    parser.add_argument("--players", type=int, default=PLAYERS)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    options = parser.parse_args()
    home = new_home()
    parlor = Stack(home, {**TURNS_ALONE, **ENV})
    try:
        parlor.wait_until_ready()
        found = measure(parlor, options.seconds, options.connections, options.players, options.kinds)
    finally:
        parlor.stop()
        shutil.rmtree(home, ignore_errors=True)
    print(table(found))
    for problem in problems(found):
        print(f"- {problem}")


if __name__ == "__main__":
    main()
