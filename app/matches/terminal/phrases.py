"""How a game is spoken of in a terminal. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from app.games.base import TranscriptEntry, View

MOVE, RESIGN, SHOW, HELP, UNCLEAR = "move", "resign", "show", "help", "unclear"


@dataclass(frozen=True, slots=True)
class TerminalInput:
    """What a typed line asks for; `text` is the move, or what to tell whoever typed something unclear."""

    kind: str  # move | resign | show | help | unclear
    text: str = ""


@dataclass(frozen=True, slots=True)
class TerminalCommand:
    """A command that a game adds, such as `/offer 1 2 0`: how it is used, what it does, and the move it stands for."""

    usage: str
    help: str
    read: Callable[[View, str], TerminalInput]


def said_plainly(_view: View, text: str) -> TerminalInput:
    """What was typed, as the move."""
    return TerminalInput(MOVE, text)


def facts_as_they_are(view: View) -> list[str]:
    """All that the seat knows, a line each."""
    return [f"  {name}: {value}" for name, value in {**view.facts, **view.secret}.items()]


def text_as_it_is(entry: TranscriptEntry) -> str:
    return entry.text or ""


@dataclass(frozen=True, slots=True)
class GamePhrases:
    """The commands that a game adds, its opening, an entry of its conversation, and how it ends.

    Without any of them, it is played in its own move language, with its facts as they are.
    """

    game: str = ""
    commands: tuple[TerminalCommand, ...] = ()
    compose: Callable[[View, str], TerminalInput] = said_plainly
    opening: Callable[[View], list[str]] = facts_as_they_are
    said: Callable[[TranscriptEntry], str] = text_as_it_is
    endings: Mapping[str, str] = field(default_factory=dict)
