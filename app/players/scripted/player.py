"""The scripted baselines: one player for every seat of every game with a baseline, instantly and without a model."""

import random

from app.core.errors import Invalid, Verbatim, either
from app.games.base import View
from app.players.base import PlayerSpec
from app.players.scripted import SCRIPTED
from app.players.scripted.chat.player import CHAT, ScriptedChat, make_chat

PLAIN = "plain"


class ScriptedPlayer:
    """Lets the baseline for a view's game and role choose the move, in a style of speech."""

    def __init__(self, manner: str = PLAIN) -> None:
        self._manner = manner

    def choose(self, view: View, rng: random.Random) -> str:
        """The text of a move. Raises Invalid for a game or a role that has no baseline."""
        baseline = SCRIPTED.get(view.game)
        chooser = baseline and baseline.chooser(view.role, self._manner)
        if chooser is None:
            known = ", ".join(f"{role} of {each.game}" for each in SCRIPTED.values() for role in each.choosers)
            raise Invalid(
                None, expected=f"{known}", got=Verbatim(f"{view.role} of {view.game}"), subject="scripted player"
            )
        return chooser(view, rng)


def speech_styles() -> list[str]:
    """The styles of speech of any game's baselines, the plain one first."""
    return list(dict.fromkeys([PLAIN, *(style for each in SCRIPTED.values() for style in each.styles)]))


def make(spec: PlayerSpec) -> ScriptedPlayer | ScriptedChat:
    """Build the scripted player: with the option `chat` it answers chats, without it, it plays games.

    Raises Invalid for any option except `manner` if it plays games, and for an unknown `manner`.
    """
    options = dict(spec.options)
    if CHAT in options:
        return make_chat(spec)
    manner = options.pop("manner", PLAIN)
    if options:
        raise Invalid(
            None,
            expected="manner",
            got=Verbatim(", ".join(sorted(options))),
            subject=f"option of scripted player {spec.name}",
        )
    if manner not in speech_styles():
        raise Invalid("manner", expected=either(speech_styles()), got=manner)
    return ScriptedPlayer(manner)
