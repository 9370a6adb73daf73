"""The scripted baselines: one player that takes every seat of every game, at once and without a model."""

import random
from collections.abc import Callable, Mapping
from functools import partial

from app.errors import Invalid, Verbatim, either
from app.games.base import View
from app.players.base import PlayerSpec
from app.players.scripted.negotiation import careless, casual_phrases, negotiator
from app.players.scripted.taboo import casual_lures, seats

_Chooser = Callable[[View, random.Random], str]
_CHOOSERS: Mapping[tuple[str, str], _Chooser] = {
    ("negotiation", "negotiator"): negotiator.choose,
    ("taboo", "attacker"): seats.attack,
    ("taboo", "defender"): seats.defend,
}
PLAIN = "plain"
MANNERS: Mapping[str, Mapping[tuple[str, str], _Chooser]] = {
    PLAIN: _CHOOSERS,
    "casual": {
        **_CHOOSERS,
        ("negotiation", "negotiator"): partial(negotiator.choose, words=casual_phrases),
        ("taboo", "attacker"): partial(seats.attack, lures=casual_lures.lures),
    },
    "careless": {**_CHOOSERS, ("negotiation", "negotiator"): careless.choose},
}


class ScriptedPlayer:
    """Looks at the game and the role of a view and lets the baseline for that seat choose, in some manner of speech."""

    def __init__(self, manner: str = PLAIN) -> None:
        self._choosers = MANNERS[manner]

    def choose(self, view: View, rng: random.Random) -> str:
        """The text of a move. Raises Invalid for a game or a role that has no baseline."""
        chooser = self._choosers.get((view.game, view.role))
        if chooser is None:
            known = ", ".join(f"{role} of {game}" for game, role in _CHOOSERS)
            raise Invalid(
                None, expected=f"{known}", got=Verbatim(f"{view.role} of {view.game}"), subject="scripted player"
            )
        return chooser(view, rng)


def make(spec: PlayerSpec) -> ScriptedPlayer:
    """Build the scripted player. Raises Invalid for any option but `manner`, and for an unknown one of that."""
    options = dict(spec.options)
    manner = options.pop("manner", PLAIN)
    if options:
        raise Invalid(
            None,
            expected="manner",
            got=Verbatim(", ".join(sorted(options))),
            subject=f"option of scripted player {spec.name}",
        )
    if manner not in MANNERS:
        raise Invalid("manner", expected=either(MANNERS), got=manner)
    return ScriptedPlayer(manner)
