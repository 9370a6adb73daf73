"""The wording of a game in a terminal. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from app.games.base import TranscriptEntry, View

MOVE, RESIGN, SHOW, HELP, UNCLEAR = "move", "resign", "show", "help", "unclear"


@dataclass(frozen=True, slots=True)
class TerminalInput:
    """The request in a typed line; `text` is the move, or the reply to an unclear line."""

    kind: str  # move | resign | show | help | unclear
    text: str = ""


@dataclass(frozen=True, slots=True)
class TerminalCommand:
    """A game's own command, such as `/offer 1 2 0`: how it is used, what it does, and the move it stands for."""

    usage: str
    help: str
    read: Callable[[View, str], TerminalInput]


def said_plainly(_view: View, text: str) -> TerminalInput:
    """The typed text, as the move."""
    return TerminalInput(MOVE, text)


def facts_as_they_are(view: View) -> list[str]:
    """All that the seat knows, a line each."""
    return [f"  {name}: {value}" for name, value in {**view.facts, **view.secret}.items()]


def text_as_it_is(entry: TranscriptEntry) -> str:
    return entry.text or ""


@dataclass(frozen=True, slots=True)
class GamePhrases:
    """A game's own commands, its opening, the wording of its conversation, and its endings.

    With the defaults, a game is played in its own move language, with its facts shown unformatted.
    """

    game: str = ""
    commands: tuple[TerminalCommand, ...] = ()
    compose: Callable[[View, str], TerminalInput] = said_plainly
    opening: Callable[[View], list[str]] = facts_as_they_are
    said: Callable[[TranscriptEntry], str] = text_as_it_is
    endings: Mapping[str, str] = field(default_factory=dict)
