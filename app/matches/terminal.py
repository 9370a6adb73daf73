"""A match in words for a terminal: what its person types, and what they read. Pure.

Everything is made from a seat's view, like the pages. A game without an entry here is played in its own move
language, with its facts as they stand.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from app.games import find_game
from app.games.base import JSON, TranscriptEntry, View
from app.games.negotiation.contexts import ITEMS
from app.games.negotiation.rules import NEGOTIATION
from app.games.taboo.rules import TABOO
from app.matches.events import Ended

MOVE, RESIGN, SHOW, HELP, UNCLEAR = "move", "resign", "show", "help", "unclear"
_OFFER = re.compile(r"/offer\s+(\d+)[\s,]+(\d+)[\s,]+(\d+)", re.IGNORECASE)
_GUESS = re.compile(r"/guess\s+(\S.*)", re.IGNORECASE)
_PREFIX = re.compile(r"\[(message|propose)\]\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TerminalInput:
    """What a typed line asks for; `text` is the move, or what to tell whoever typed something unclear."""

    kind: str  # move | resign | show | help | unclear
    text: str = ""


@dataclass(frozen=True, slots=True)
class _GamePhrases:
    """How a game is spoken of: the commands it adds, its opening, an entry, and how it ends."""

    commands: tuple[tuple[str, str], ...]
    compose: Callable[[View, str], TerminalInput]
    opening: Callable[[View], list[str]]
    said: Callable[[TranscriptEntry], str]
    endings: dict[str, str]


# ---- For every game ---------------------------------------------------------

_COMMANDS = (("/show", "the table and the conversation again"), ("/quit", "leave the game"), ("/help", "this"))
_ENDINGS = {
    "resigned": "The game was left before its end, so nobody scores.",
    "aborted": "The model could not go on, so nobody scores.",
    "timeout": "Time ran out, so nobody scores.",
    "abandoned": "The game was left open for too long, so nobody scores.",
}


def read_line(view: View, line: str) -> TerminalInput:
    """What a typed line means in a match. `//…` says a text that begins with a slash."""
    text = line.strip()
    match text.lower():
        case "":
            return TerminalInput(UNCLEAR, "Write something, or /help.")
        case "/quit":
            return TerminalInput(RESIGN)
        case "/show":
            return TerminalInput(SHOW)
        case "/help":
            return TerminalInput(HELP)
    if text.startswith("//"):
        return _words(view).compose(view, text[1:])
    composed = _command(view, text) if text.startswith("/") else None
    return composed or _words(view).compose(view, text)


def help_lines(view: View) -> list[str]:
    """What may be typed."""
    commands = (*_words(view).commands, *_COMMANDS)
    width = max(len(command) for command, _ in commands)
    return ["Anything you type is said to your partner.", *(f"  {name:<{width}}  {what}" for name, what in commands)]


def opening_lines(view: View) -> list[str]:
    """What the game is about for this seat: its role, what lies on the table, and its secret."""
    return [f"{find_game(view.game).title}. You are the {view.role}.", *_words(view).opening(view)]


def entry_line(view: View, entry: TranscriptEntry) -> str:
    """One line of the conversation; later lines of a text are set in below its first."""
    who = "     you" if entry.by == "you" else " partner"
    said = "made an offer; you will see it when yours is made" if entry.text is None else _words(view).said(entry)
    # A carriage return would let one text write over another.
    return f"{who}: " + "\n          ".join(said.replace("\r", "\n").splitlines())


def ending_lines(view: View, ended: Ended, detail: str | None = None) -> list[str]:
    """How the match ended, and what both seats got. `detail` is why a match was broken off."""
    words = _words(view).endings | _ENDINGS
    lines = [words.get(ended.reason, f"It is over: {ended.reason}.").format(**_facts(view))]
    if detail:
        lines.append(f"What went wrong: {detail}")
    mine, theirs = ended.utilities[view.seat], ended.utilities[1 - view.seat]
    return [*lines, f"Your score: {_figure(mine)}. Your partner’s: {_figure(theirs)}."]


def _facts(view: View) -> JSON:
    return {"word": view.facts.get("word", ""), **{key: str(value) for key, value in view.facts.items()}}


def _figure(number: float) -> str:
    return f"{number:g}"


def _words(view: View) -> _GamePhrases:
    return _GAMES.get(view.game, _PLAIN)


# ---- Commands of the games --------------------------------------------------


def _command(view: View, text: str) -> TerminalInput | None:
    """The move that a slash command stands for, or what is wrong with it."""
    name = text.split(maxsplit=1)[0].lower()
    own = {command.split()[0]: command for command, _ in _words(view).commands}
    if name not in own:
        known = ", ".join([*own, *(command for command, _ in _COMMANDS)])
        return TerminalInput(
            UNCLEAR, f"There is no {name} here, only {known}. To say a text with a slash, begin it with //."
        )
    if name == "/offer":
        numbers = _OFFER.fullmatch(text)
        if numbers is None:
            return TerminalInput(UNCLEAR, "Say how many books, hats and balls you want: /offer 1 2 0")
        asked = ", ".join(f"{int(number)} {item}s" for number, item in zip(numbers.groups(), ITEMS, strict=True))
        return TerminalInput(MOVE, f"[propose] ({asked})")
    guess = _GUESS.fullmatch(text)
    if guess is None:
        return TerminalInput(UNCLEAR, "Say which word you think it is: /guess WORD")
    if not any(may["kind"] == "declaration" for may in view.may):
        return TerminalInput(UNCLEAR, "You know the word already: guessing is your partner’s part.")
    return TerminalInput(MOVE, f"I know the word! It is `{guess[1].strip()}`!")


# ---- Negotiation ------------------------------------------------------------


def _compose_negotiation(_view: View, text: str) -> TerminalInput:
    return TerminalInput(MOVE, text if _PREFIX.match(text) else f"[message] {text}")


def _open_negotiation(view: View) -> list[str]:
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


def _said_in_negotiation(entry: TranscriptEntry) -> str:
    body = _PREFIX.sub("", entry.text or "", count=1)
    return f"takes {body}" if entry.kind == "proposal" else body


# ---- Taboo ------------------------------------------------------------------


def _compose_plainly(_view: View, text: str) -> TerminalInput:
    return TerminalInput(MOVE, text)


def _open_taboo(view: View) -> list[str]:
    turns = f"Each of you has {view.facts['max_turns']} turns."
    if "word" in view.secret:
        return [f"The word is: {view.secret['word']}", f"Get your partner to say it; do not say it yourself. {turns}"]
    return [
        "Your partner knows a word and wants you to say it unawares.",
        f"Find out which it is, and say so once with /guess WORD. {turns}",
    ]


# ---- All of them ------------------------------------------------------------

_PLAIN = _GamePhrases(
    commands=(),
    compose=_compose_plainly,
    opening=lambda view: [f"  {name}: {value}" for name, value in {**view.facts, **view.secret}.items()],
    said=lambda entry: entry.text or "",
    endings={},
)
_GAMES = {
    NEGOTIATION.name: _GamePhrases(
        commands=(("/offer 1 2 0", "offer to take 1 book, 2 hats and no ball, and leave the rest"),),
        compose=_compose_negotiation,
        opening=_open_negotiation,
        said=_said_in_negotiation,
        endings={
            "deal": "It’s a deal.",
            "no deal": "No deal: the two offers do not share out what is on the table.",
            "move limit": "That was the last move, and there is no deal.",
        },
    ),
    TABOO.name: _GamePhrases(
        commands=(("/guess WORD", "say that you know the word; the defender can do so once"),),
        compose=_compose_plainly,
        opening=_open_taboo,
        said=lambda entry: entry.text or "",
        endings={
            "attacker wins": "The attacker wins. The word was “{word}”.",
            "defender wins": "The defender wins. The word was “{word}”.",
            "attacker breaks the rules": "The attacker said what must not be said. The word was “{word}”.",
            "tied game": "A tie: the turns are used up. The word was “{word}”.",
        },
    ),
}
