"""The material that a campaign plays with, and that held out for evaluation: no piece is in both."""

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from app.core.errors import Invalid, Phrase
from app.games import find_game
from app.rounds.held_out import HELD_OUT, is_held_out
from app.rounds.lifecycle import Material

Parted = tuple[Material, Material]  # to play with, and to evaluate on


def split_material(game: str, given: Material | None, evaluation: int, seed: int) -> Parted:
    """Material to play with, and `evaluation` pieces to evaluate on, some repeated if there are too few.

    Without a list, it is the game's own, or pieces are drawn. A game without material has neither: its evaluations have
    seeds of their own. Raises Invalid for a list that is too short to hold anything out.
    """
    kind = find_game(game).material
    if kind is None:
        return Material("what each match draws", ()), Material(HELD_OUT, ())
    rng = random.Random(f"{seed}/campaign")
    whole = given or Material(kind.title.lower() if kind.listed() else f"generated {kind.name}", kind.draw_all(rng))
    play = [piece for piece in whole.items if not is_held_out(kind, piece)]
    held = [piece for piece in whole.items if is_held_out(kind, piece)]
    if not play or not held:
        raise Invalid(
            None,
            expected=Phrase("a list of which a tenth can be held out"),
            got=Phrase("%(count)s items", count=len(whole.items)),
            subject=whole.source,
        )
    rng.shuffle(held)
    return Material(whole.source, play), Material(HELD_OUT, (held * -(-evaluation // len(held)))[:evaluation])


def whole(source: str, kept: Mapping[str, Sequence[Any]]) -> Material | None:
    """The material that was split into a campaign's stored `play` and `held_out`; None if there was none."""
    held = {json.dumps(piece): piece for piece in kept["held_out"]}
    return Material(source, [*kept["play"], *held.values()]) if kept["play"] else None
