"""Adversarial Taboo in a terminal. Pure."""

import re

from app.games.base import View
from app.games.taboo.outcomes import ATTACKER_WINS, DEFENDER_WINS, RULES_BROKEN, TIED
from app.games.taboo.rules import TABOO
from app.matches.terminal.phrases import MOVE, UNCLEAR, GamePhrases, TerminalCommand, TerminalInput

_GUESS = re.compile(r"/guess\s+(\S.*)", re.IGNORECASE)


def _guess(view: View, text: str) -> TerminalInput:
    guess = _GUESS.fullmatch(text)
    if guess is None:
        return TerminalInput(UNCLEAR, "Say which word you think it is: /guess WORD")
    if not any(may["kind"] == "declaration" for may in view.may):
        return TerminalInput(UNCLEAR, "You know the word already: guessing is your partner’s part.")
    return TerminalInput(MOVE, f"I know the word! It is `{guess[1].strip()}`!")


def _taboo_opening_lines(view: View) -> list[str]:
    turns = f"Each of you has {view.facts['max_turns']} turns."
    if "word" in view.secret:
        return [f"The word is: {view.secret['word']}", f"Get your partner to say it; do not say it yourself. {turns}"]
    return [
        "Your partner knows a word and wants you to say it unawares.",
        f"Find out which it is, and say so once with /guess WORD. {turns}",
    ]


TABOO_PHRASES = GamePhrases(
    game=TABOO.name,
    commands=(TerminalCommand("/guess WORD", "say that you know the word; the defender can do so once", _guess),),
    opening=_taboo_opening_lines,
    endings={
        ATTACKER_WINS: "The attacker wins. The word was “{word}”.",
        DEFENDER_WINS: "The defender wins. The word was “{word}”.",
        RULES_BROKEN: "The attacker said what must not be said. The word was “{word}”.",
        TIED: "A tie: the turns are used up. The word was “{word}”.",
    },
)
