"""The scripted baselines, by the name of their game."""

from app.players.scripted.base import ScriptedGame
from app.players.scripted.negotiation import SCRIPTED_NEGOTIATION
from app.players.scripted.taboo import SCRIPTED_TABOO

SCRIPTED: dict[str, ScriptedGame] = {each.game: each for each in (SCRIPTED_NEGOTIATION, SCRIPTED_TABOO)}
