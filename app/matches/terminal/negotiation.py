"""Deal or No Deal in a terminal. Pure."""

import re

from app.games.base import TranscriptEntry, View
from app.games.negotiation.contexts import ITEMS
from app.games.negotiation.outcomes import DEAL, MOVE_LIMIT, NO_DEAL
from app.games.negotiation.rules import NEGOTIATION
from app.matches.terminal.phrases import MOVE, UNCLEAR, GamePhrases, TerminalCommand, TerminalInput

_OFFER = re.compile(r"/offer\s+(\d+)[\s,]+(\d+)[\s,]+(\d+)", re.IGNORECASE)
_PREFIX = re.compile(r"\[(message|propose)\]\s*", re.IGNORECASE)


def _offer(_view: View, text: str) -> TerminalInput:
    numbers = _OFFER.fullmatch(text)
    if numbers is None:
        return TerminalInput(UNCLEAR, "Say how many books, hats and balls you want: /offer 1 2 0")
    asked = ", ".join(f"{int(number)} {item}s" for number, item in zip(numbers.groups(), ITEMS, strict=True))
    return TerminalInput(MOVE, f"[propose] ({asked})")


def _compose(_view: View, text: str) -> TerminalInput:
    return TerminalInput(MOVE, text if _PREFIX.match(text) else f"[message] {text}")


def _negotiation_opening_lines(view: View) -> list[str]:
    counts, values = view.facts["counts"], view.secret["values"]
    lines = [f"  {item + 's':<6} {counts[item]} on the table, each worth {values[item]} to you" for item in ITEMS]
    return [*lines, _objective(view.facts["lambda"]), "Talk first; then both of you make one offer, unseen."]


def _objective(lam: float) -> str:
    match lam:
        case 0:
            return "Your score is your own points."
        case 1:
            return "Your score is your points and your partner’s together."
        case -1:
            return "Your score is your points less your partner’s."
    return f"Your score is your points and {lam:g} times your partner’s."


def _entry_in_words(entry: TranscriptEntry) -> str:
    body = _PREFIX.sub("", entry.text or "", count=1)
    return f"takes {body}" if entry.kind == "proposal" else body


NEGOTIATION_PHRASES = GamePhrases(
    game=NEGOTIATION.name,
    commands=(TerminalCommand("/offer 1 2 0", "offer to take 1 book, 2 hats and no ball, and leave the rest", _offer),),
    compose=_compose,
    opening=_negotiation_opening_lines,
    said=_entry_in_words,
    endings={
        DEAL: "It’s a deal.",
        NO_DEAL: "No deal: the two offers do not share out what is on the table.",
        MOVE_LIMIT: "That was the last move, and there is no deal.",
    },
)
