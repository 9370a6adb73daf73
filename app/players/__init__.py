"""Players, which fill the seats of matches. `make_player` loads only the module of the requested kind."""

import importlib
from pathlib import Path

from app.core.errors import Invalid, either
from app.players.base import ChatPlayer, InstantPlayer, ModelPlayer, PlayerSpec
from app.players.local.options import located

_MODULES = {
    "scripted": "app.players.scripted.player",
    "api": "app.players.api.player",
    "local": "app.players.local.player",
}
_SERVED = "app.players.local.served_player"  # for a local model served by an engine beside the workers


def make_player(spec: PlayerSpec, home: Path | None = None) -> InstantPlayer | ChatPlayer | ModelPlayer:
    """Build the player that a spec describes; `home` is PARLOR_HOME, to which the path of a local model may be
    relative.

    Raises Invalid for a kind or an option that does not exist.
    """
    if spec.kind not in _MODULES:
        raise Invalid(None, expected=either(_MODULES), got=spec.kind, subject="kind of player")
    if spec.kind == "local" and home is not None:
        spec = located(spec, home)
    module = _MODULES[spec.kind] if spec.served is None else _SERVED
    player: InstantPlayer | ChatPlayer | ModelPlayer = importlib.import_module(module).make(spec)
    return player
