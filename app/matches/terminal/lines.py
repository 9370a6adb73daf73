"""A match as terminal text: what its person types, and what they read. Pure.

Everything is made from a seat's view, like the pages. A game that is not in `PHRASES` is played in its own move
language, with its facts shown unformatted.
"""

from app.games import find_game
from app.games.base import JSON, TranscriptEntry, View
from app.matches.events import Ended
from app.matches.terminal.negotiation import NEGOTIATION_PHRASES
from app.matches.terminal.phrases import HELP, RESIGN, SHOW, UNCLEAR, GamePhrases, TerminalInput
from app.matches.terminal.taboo import TABOO_PHRASES

PHRASES: dict[str, GamePhrases] = {each.game: each for each in (NEGOTIATION_PHRASES, TABOO_PHRASES)}
_PLAIN = GamePhrases()

_COMMANDS = (("/show", "the table and the conversation again"), ("/quit", "leave the game"), ("/help", "this"))
_ENDINGS = {
    "resigned": "The game was left before its end, so nobody scores.",
    "aborted": "The model could not go on, so nobody scores.",
    "timeout": "Time ran out, so nobody scores.",
    "abandoned": "The game was left open for too long, so nobody scores.",
}


def read_line(view: View, line: str) -> TerminalInput:
    """The meaning of a typed line in a match. `//…` stands for a text that begins with a slash."""
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
        return _phrases_of(view).compose(view, text[1:])
    return _read_slash_command(view, text) if text.startswith("/") else _phrases_of(view).compose(view, text)


def help_lines(view: View) -> list[str]:
    """The lines that explain what may be typed."""
    commands = (*((each.usage, each.help) for each in _phrases_of(view).commands), *_COMMANDS)
    width = max(len(command) for command, _ in commands)
    return ["Anything you type is said to your partner.", *(f"  {name:<{width}}  {what}" for name, what in commands)]


def opening_lines(view: View) -> list[str]:
    """The game as this seat sees it at the start: its role, what lies on the table, and its secret."""
    return [f"{find_game(view.game).title}. You are the {view.role}.", *_phrases_of(view).opening(view)]


def entry_line(view: View, entry: TranscriptEntry) -> str:
    """One entry of the conversation; further lines of a text are indented below its first."""
    who = "     you" if entry.by == "you" else " partner"
    said = "made an offer; you will see it when yours is made" if entry.text is None else _phrases_of(view).said(entry)
    # A carriage return would let one text overwrite another.
    return f"{who}: " + "\n          ".join(said.replace("\r", "\n").splitlines())


def ending_lines(view: View, ended: Ended, detail: str | None = None) -> list[str]:
    """How the match ended, and both seats' scores. `detail` is why a match was aborted."""
    words = {**_phrases_of(view).endings, **_ENDINGS}
    lines = [words.get(ended.reason, f"It is over: {ended.reason}.").format(**_facts(view))]
    if detail:
        lines.append(f"What went wrong: {detail}")
    mine, theirs = ended.utilities[view.seat], ended.utilities[1 - view.seat]
    return [*lines, f"Your score: {_number_words(mine)}. Your partner’s: {_number_words(theirs)}."]


def _facts(view: View) -> JSON:
    return {"word": view.facts.get("word", ""), **{key: str(value) for key, value in view.facts.items()}}


def _number_words(number: float) -> str:
    return f"{number:g}"


def _phrases_of(view: View) -> GamePhrases:
    return PHRASES.get(view.game, _PLAIN)


def _read_slash_command(view: View, text: str) -> TerminalInput:
    """The move that a slash command stands for, or what is wrong with it."""
    name = text.split(maxsplit=1)[0].lower()
    own = {command.usage.split()[0]: command for command in _phrases_of(view).commands}
    if name in own:
        return own[name].read(view, text)
    known = ", ".join([*own, *(command for command, _ in _COMMANDS)])
    return TerminalInput(
        UNCLEAR, f"There is no {name} here, only {known}. To say a text with a slash, begin it with //."
    )
