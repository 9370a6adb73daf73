"""The reasons for which a negotiation ends."""

DEAL, NO_DEAL, MOVE_LIMIT = "deal", "no deal", "move limit"
