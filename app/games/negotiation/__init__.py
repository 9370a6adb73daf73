"""Deal or No Deal."""

from app.games.negotiation.rules import NEGOTIATION

GAME = NEGOTIATION
