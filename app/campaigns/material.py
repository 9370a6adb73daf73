"""What a campaign plays with, and what it keeps aside to be evaluated on: no piece of material is in both."""

import hashlib
import json
import random
from typing import Any

from app.errors import Invalid, Phrase
from app.games.negotiation.contexts import generate_context
from app.games.taboo.words import target_words
from app.rounds.lifecycle import Material
from app.rounds.material import items_of

HELD_OUT = "held-out material"
_SHARE = 10  # one piece of material in so many is held out
_DRAWS = 40_000  # of contexts; there are 5,793 different ones, and nearly all of them come up

Parted = tuple[Material, Material]  # to play with, and to evaluate on


def is_held_out(item: Any) -> bool:
    """Whether a context ([counts, values of seat 0, of seat 1]) or a word is kept for evaluations, and never played.

    Both seats of a match are trained on, so a context and its mirror image, the seats exchanged, are one piece: both
    are held out, or neither is. It follows from the piece alone, so all campaigns keep the same aside.
    """
    if not isinstance(item, str):
        counts, *values = item
        item = [counts, *sorted(values)]
    digest = hashlib.sha256(json.dumps(item).encode()).digest()
    return int.from_bytes(digest[:8]) % _SHARE == 0


def parted(game: str, given: Material | None, evaluation: int, seed: int) -> Parted:
    """Material to play with, and `evaluation` pieces to evaluate on, some of them twice if there are not so many.

    Without a list, contexts are drawn, and words are those that Parlor comes with. Raises Invalid for a list that is
    too short to hold anything out.
    """
    rng = random.Random(f"{seed}/campaign")
    whole = given or (_contexts(rng) if game == "negotiation" else Material("target words", target_words()))
    play = [item for item in whole.items if not is_held_out(item)]
    held = [item for item in whole.items if is_held_out(item)]
    if not play or not held:
        raise Invalid(
            None,
            expected=Phrase("a list of which a tenth can be held out"),
            got=Phrase("%(count)s items", count=len(whole.items)),
            subject=whole.source,
        )
    rng.shuffle(held)
    return Material(whole.source, play), Material(HELD_OUT, (held * -(-evaluation // len(held)))[:evaluation])


def _contexts(rng: random.Random) -> Material:
    """Contexts as matches draw them, each once."""
    return Material("generated contexts", items_of(dict.fromkeys(generate_context(rng) for _ in range(_DRAWS))))
