"""The baselines of Deal or No Deal."""

from functools import partial

from app.games.negotiation.rules import NEGOTIATION
from app.players.scripted.base import ScriptedGame
from app.players.scripted.negotiation import careless, casual_phrases, negotiator

SCRIPTED_GAME = ScriptedGame(
    game=NEGOTIATION.name,
    choosers={"negotiator": negotiator.choose},
    styles={
        "casual": {"negotiator": partial(negotiator.choose, words=casual_phrases)},
        "careless": {"negotiator": careless.choose},
    },
)
