"""Players: what fills a seat of a match. `make_player` loads only the module of the kind that is asked for."""

import importlib

from app.errors import Invalid
from app.players.base import Generator, PlayerSpec, Scripted

_MODULES = {"scripted": "app.players.scripted", "api": "app.players.api"}


def make_player(spec: PlayerSpec) -> Scripted | Generator:
    """Build the player that a spec describes. Raises Invalid for a kind or an option that does not exist."""
    if spec.kind not in _MODULES:
        raise Invalid(f"kind of player: expected {' or '.join(_MODULES)}, got {spec.kind!r}")
    player: Scripted | Generator = importlib.import_module(_MODULES[spec.kind]).make(spec)
    return player
