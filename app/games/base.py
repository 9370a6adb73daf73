"""The contract between the rules of a game and everything that plays, stores, shows or judges it.

A game is pure, immutable and seeded. Its state is a frozen dataclass that carries the *resolved* config, the one
in which nothing is left to chance, so that `game.initial(game.config(state.config.to_json()), any_rng)` is the
same starting state again. That is how a match is rebuilt from its event log.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from app.errors import Invalid, Phrase, Verbatim, shown

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """An accepted move: its kind, who made it, its text, and what the judge made of it.

    `data` is JSON and holds every verdict, so that `apply` never judges and a log replays for ever.
    """

    kind: str
    seat: int
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Violation:
    """A refused move, with a reason that a person and a model can both act on. It consumes no ply."""

    seat: int
    text: str
    code: str
    reason: str


class TranscriptEntry(NamedTuple):
    """One line of the transcript as one seat sees it; `text` is None while it is hidden from that seat."""

    ply: int
    by: str  # you | partner
    kind: str
    text: str | None


@dataclass(frozen=True, slots=True)
class View:
    """All that one seat may see. `secret` is its own; nothing of the partner's is in here."""

    game: str
    role: str
    seat: int
    ply: int
    to_move: str | None  # you | partner | None when over
    transcript: tuple[TranscriptEntry, ...]
    facts: JSON
    secret: JSON
    may: tuple[JSON, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a match ended: utilities by seat, the reason in the game's words, the winner's seat if there is one."""

    reason: str
    winner: int | None
    utilities: tuple[float, float]
    facts: JSON = field(default_factory=dict)


class Config(Protocol):
    """A validated config of a game; `to_json` gives the mapping that `Game.config` takes."""

    def to_json(self) -> JSON: ...


class State(Protocol):
    """What every game's state has: its resolved config and its number of accepted moves."""

    @property
    def config(self) -> Any: ...

    @property
    def ply(self) -> int: ...


S = TypeVar("S")


class Game(Protocol[S]):
    """The rules of a kind of game. See docs/adding-a-game.md for a worked example."""

    name: str
    title: str
    version: int
    roles: tuple[str, str]
    material: tuple[str, ...]  # fields of the config that each match draws by itself; guests may not fix them
    unfinished: JSON  # facts of a match that was broken off

    def prepare(self) -> None:
        """Load what takes long to load, so that no move waits for it. Called before a process's first match of it."""
        ...

    def config(self, raw: Mapping[str, Any]) -> Config:
        """Validate a raw config. Raises Invalid, which names the field, what was expected and what came."""
        ...

    def initial(self, config: Any, rng: random.Random) -> S:
        """Draw what the config leaves open from `rng`, and set the game up."""
        ...

    def to_move(self, state: S) -> int | None:
        """The seat whose turn it is, or None when the game is over."""
        ...

    def parse(self, state: S, seat: int, text: str) -> Event | Violation:
        """Read a move of the seat to move: the structured event, or why it is refused."""
        ...

    def apply(self, state: S, event: Event) -> S:
        """The state after an event that `parse` made."""
        ...

    def view(self, state: S, seat: int, *, over: bool = False) -> View:
        """All that `seat` may see; never what it may not know.

        With `over` the match was broken off: nobody is to move, and what was hidden until the end is shown.
        """
        ...

    def outcome(self, state: S) -> Outcome | None:
        """How the game ended by its own rules, or None while it goes on."""
        ...


def transcript(events: Sequence[Event], seat: int, hidden: frozenset[str] = frozenset()) -> tuple[TranscriptEntry, ...]:
    """The accepted moves as `seat` sees them; the partner's moves of a `hidden` kind have no text."""
    new = tuple.__new__  # each move makes all of them anew, and the constructor of a NamedTuple takes twice as long
    return tuple(
        [
            new(TranscriptEntry, (ply, "you", event.kind, event.text))
            if event.seat == seat
            else new(TranscriptEntry, (ply, "partner", event.kind, None if event.kind in hidden else event.text))
            for ply, event in enumerate(events)
        ]
    )


def known_fields(raw: Mapping[str, Any], known: Sequence[str], game: str) -> None:
    """Refuse a config that names a field the game does not have."""
    unknown = sorted(set(raw) - set(known))
    if unknown:
        raise Invalid(
            "config",
            expected=Phrase("only %(names)s", names=", ".join(known)),
            got=Verbatim(", ".join(map(shown, unknown))),
            subject=Phrase("config of %(game)s", game=game),
        )
