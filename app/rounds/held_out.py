"""Which pieces of a game's material are held out: models are evaluated on them, and learn from no round on them."""

import hashlib
import json
from typing import Any

from app.games.material import MaterialKind

HELD_OUT = "held-out material"
_SHARE = 10  # one piece of material in so many is held out


def is_held_out(kind: MaterialKind, piece: Any) -> bool:
    """Whether a piece of material is kept for evaluations, and never played.

    It follows from the piece alone, so all campaigns and recipes keep the same aside.
    """
    return hash_of(kind, piece) % _SHARE == 0


def hash_of(kind: MaterialKind, piece: Any) -> int:
    """A number that is the same for all pieces that are held out together."""
    return int.from_bytes(hashlib.sha256(json.dumps(kind.held_out_key(piece)).encode()).digest()[:8])
