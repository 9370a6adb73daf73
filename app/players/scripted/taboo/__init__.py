"""The baselines of Adversarial Taboo."""

from collections.abc import Sequence
from functools import lru_cache, partial

from app.games.taboo.outcomes import ROLES
from app.games.taboo.rules import TABOO
from app.games.taboo.words import target_words
from app.players.scripted.base import ScriptedGame
from app.players.scripted.taboo import casual_lures, clues, seats

_ATTACKER, _DEFENDER = ROLES


@lru_cache(maxsize=1)
def words_with_clues() -> Sequence[str]:
    """The target words that an attacker has clues for: with any other it can only make small talk."""
    return [word for word in target_words() if word in clues.table()]


SCRIPTED_GAME = ScriptedGame(
    game=TABOO.name,
    choosers={_ATTACKER: seats.attack, _DEFENDER: seats.defend},
    styles={"casual": {_ATTACKER: partial(seats.attack, lures=casual_lures.lures)}},
    pieces=words_with_clues,
)
