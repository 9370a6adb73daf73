"""Contexts as the material that a round's matches are played on."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.games.material import MaterialKind
from app.games.negotiation.contexts import Context, generate_context, read_contexts

_DRAWS = 40_000  # there are 5,793 different contexts, and nearly all of them come up


class Contexts(MaterialKind):
    """Lists of contexts; a piece is [counts, values of seat 0, values of seat 1]."""

    name = "contexts"
    piece = "context"
    fields = ("counts", "values")
    title = "Contexts"
    file = "contexts, two lines each"
    file_hint = "Two lines a context: count and value, three times, as in selfplay.txt."
    text_label = "or lines of it"
    text_hint = "1 4 2 2 1 2 ↵ 1 0 2 1 1 8"
    setting = "CONTEXTS_FILE"
    in_order = True

    def read(self, lines: Iterable[str], source: str) -> list[Any]:
        return pieces_of(read_contexts(lines, source))

    def lines_of(self, pieces: Iterable[Any]) -> Iterable[str]:
        for counts, *seats in pieces:
            for values in seats:
                yield " ".join(f"{count} {value}" for count, value in zip(counts, values, strict=True))

    def config_of(self, piece: Any) -> dict[str, Any]:
        counts, *values = piece
        return {"counts": counts, "values": values}

    def piece_of(self, config: Mapping[str, Any]) -> Any:
        counts, values = config.get("counts"), config.get("values")
        return None if counts is None or values is None else [counts, *values]

    def draw_all(self, rng: random.Random) -> Sequence[Any]:
        return pieces_of(dict.fromkeys(generate_context(rng) for _ in range(_DRAWS)))

    def held_out_key(self, piece: Any) -> Any:
        """The same key for a context and for its copy with the seats swapped, as both seats of a match are trained
        on.
        """
        counts, *values = piece
        return [counts, *sorted(values)]


def pieces_of(contexts: Iterable[Context]) -> list[Any]:
    """Contexts as pieces of material."""
    return [[list(each.counts), *(list(values) for values in each.values)] for each in contexts]
