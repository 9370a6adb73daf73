"""The scripted baselines: one player that takes every seat of every game, at once and without a model."""

import random
from collections.abc import Callable, Mapping

from app.errors import Invalid
from app.games.base import View
from app.players import negotiator, taboo_talk
from app.players.base import PlayerSpec

_CHOOSERS: Mapping[tuple[str, str], Callable[[View, random.Random], str]] = {
    ("negotiation", "negotiator"): negotiator.choose,
    ("taboo", "attacker"): taboo_talk.attack,
    ("taboo", "defender"): taboo_talk.defend,
}


class ScriptedPlayer:
    """Looks at the game and the role of a view and lets the baseline for that seat choose."""

    def choose(self, view: View, rng: random.Random) -> str:
        """The text of a move. Raises Invalid for a game or a role that has no baseline."""
        chooser = _CHOOSERS.get((view.game, view.role))
        if chooser is None:
            known = ", ".join(f"{role} of {game}" for game, role in _CHOOSERS)
            raise Invalid(f"scripted player: expected {known}, got {view.role} of {view.game}")
        return chooser(view, rng)


def make(spec: PlayerSpec) -> ScriptedPlayer:
    """Build the scripted player. Raises Invalid when the spec has options, for there are none."""
    if spec.options:
        names = ", ".join(map(repr, sorted(spec.options)))
        raise Invalid(f"options of scripted player {spec.name}: expected none, got {names}; remove them")
    return ScriptedPlayer()
