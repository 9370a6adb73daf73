"""Which pieces of a game's material are held out: models are evaluated on them, and never learn from them."""

import hashlib
import json
from typing import Any

from app.games.material import MaterialKind

HELD_OUT = "held-out material"
_SHARE = 10  # one in so many pieces of material is held out


def is_held_out(kind: MaterialKind, piece: Any) -> bool:
    """Whether a piece of material is kept for evaluations, and never played.

    It depends on the piece alone, so all campaigns and recipes hold out the same pieces.
    """
    return hash_of(kind, piece) % _SHARE == 0


def hash_of(kind: MaterialKind, piece: Any) -> int:
    """A hash that is equal for all pieces that are held out together."""
    return int.from_bytes(hashlib.sha256(json.dumps(kind.held_out_key(piece)).encode()).digest()[:8])
