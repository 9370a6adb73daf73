"""A careless negotiator: it talks like the scripted one, but loses patience and forgets what was agreed.

It is no good as a partner, but a weak model learns from it: most of its matches end without a deal, and in those that
end in a deal it did what a good negotiator does, so that filtering has something to find.
"""

import random

from app.games.base import View
from app.games.negotiation.contexts import ITEMS
from app.players.scripted.negotiation import negotiator

_FORGETS = 0.65  # how often it proposes its own idea instead of what was agreed
_HASTY = 0.08  # how often it proposes although it had something to say


def choose(view: View, rng: random.Random) -> str:
    """The next move of the seat that sees `view`."""
    text = negotiator.choose(view, rng)
    may_propose = any(move["kind"] == "proposal" for move in view.may)
    if rng.random() < (_FORGETS if text.startswith("[propose]") else _HASTY * may_propose):
        counts = view.facts["counts"]
        first, second, third = (rng.randint(0, counts[item]) for item in ITEMS)
        return negotiator.proposed((first, second, third))
    return text
