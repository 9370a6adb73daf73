"""The setup of each match of a round: a function of the round and the match's index alone. Pure.

So every worker sets up the same match, in whatever order matches are played, and a match that was lost before it was
stored is identical when it is replayed.
"""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from app.games import find_game
from app.games.base import JSON

Pick = Literal["in-order", "shuffled", "random"]
IN_ORDER: Final = "in-order"
SHUFFLED: Final = "shuffled"
RANDOM: Final = "random"


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """What the matches of a round share.

    `material` has pieces of the game's material, or nothing. `pick` is how matches get theirs: in the order of the
    list, shuffled (each once in an order drawn from the seed, then all of them again), or random (drawn for each
    match).
    """

    game: str
    config: JSON
    seed: int
    swap_seats: bool = False
    pick: str = IN_ORDER
    material: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class MatchSetup:
    """One match of a round. When it is `swapped`, the round's first model sits in seat 1."""

    index: int
    seed: int
    config: JSON
    swapped: bool


def setup(plan: RoundPlan, index: int) -> MatchSetup:
    """The match with that index. With swapped seats, 2k and 2k + 1 are the same game from either side."""
    pair, swapped = divmod(index, 2) if plan.swap_seats else (index, 0)
    seed = match_seed(plan.seed, pair)
    config = plan.config
    kind = find_game(plan.game).material
    if kind is not None and plan.material:
        config = {**config, **kind.config_of(plan.material[_pick(plan, pair, seed)])}
    return MatchSetup(index, seed, config, bool(swapped))


def match_seed(round_seed: int, pair: int) -> int:
    """A seed of 62 bits, which every database stores as a signed number."""
    digest = hashlib.blake2b(f"{round_seed}/{pair}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 2


def _pick(plan: RoundPlan, pair: int, seed: int) -> int:
    count = len(plan.material)
    if plan.pick == RANDOM:
        return random.Random(f"{seed}/material").randrange(count)
    turn, place = divmod(pair, count)
    return _order(plan.seed, turn, count)[place] if plan.pick == SHUFFLED else place


@lru_cache(maxsize=8)
def _order(seed: int, turn: int, count: int) -> list[int]:
    return random.Random(f"{seed}/order/{turn}").sample(range(count), count)


def usual_pick(game: str) -> Pick:
    """The default way in which the matches of a game get their material."""
    kind = find_game(game).material
    return IN_ORDER if kind is not None and kind.in_order else SHUFFLED
