"""The contract between a game and everything that plays, stores, shows or judges it.

A game is pure, immutable and seeded. Its state is a frozen dataclass that carries the *resolved* config, in which
nothing is left to chance, so that `game.initial(game.config(state.config.to_json()), any_rng)` gives the same starting
state again. That is how a match is rebuilt from its event log.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from app.core.validation import Schema, fields_of
from app.games.config import GameConfig
from app.games.material import MaterialKind
from app.games.metrics import COMMON, GameMetrics
from app.games.permutations import Permutations
from app.games.rewards import RewardFormula
from app.games.talk import Talk, words_of

JSON = dict[str, Any]
# Measures, by seat, of whether a proposal asks for what the talk last arrived at, in games that can tell.
GROUNDED = "grounded_0", "grounded_1"


@dataclass(frozen=True, slots=True)
class Event:
    """An accepted move: its kind, who made it, its text, and the judge's verdicts.

    `data` is JSON and holds every verdict, so that `apply` never judges and a log can always be replayed. `original` is
    what a model wrote if its move was read leniently or asked for as JSON; games leave it None.
    """

    kind: str
    seat: int
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)
    original: str | None = None


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
    """All that one seat may see. `secret` is its own; nothing of the partner's is included."""

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


class State(Protocol):
    """The attributes of every game's state: its resolved config and its number of accepted moves."""

    @property
    def config(self) -> Any: ...

    @property
    def ply(self) -> int: ...


class TypicalCalls(NamedTuple):
    """What a model is expected to do in one seat of one match: calls, total tokens, seconds per call."""

    calls: float
    prompt_tokens: float
    completion_tokens: float
    latency: float


S = TypeVar("S")


class Game(ABC, Generic[S]):
    """A kind of game: its rules, and everything needed to play, store and show it.

    See docs/adding-a-game.md for a worked example.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    version: ClassVar[int]  # of the rules; raised by every change
    roles: ClassVar[tuple[str, str]]
    settings: ClassVar[type[GameConfig]]
    outcomes: ClassVar[tuple[str, ...]]  # the reasons of outcomes, in the order in which they are read
    unfinished: ClassVar[JSON] = {}  # facts of a match that was aborted
    material: ClassVar[MaterialKind | None] = None
    metrics: ClassVar[GameMetrics] = COMMON
    rewards: ClassVar[RewardFormula | None] = None  # of moves, for methods that learn from them
    permutations: ClassVar[Permutations | None] = None  # of its item types under which the game stays the same
    first_field: ClassVar[str | None] = None  # of the config: which seat begins, if its role does not decide
    # Of the config: what bounds a match, and how many moves of both seats one unit of it means.
    limit_field: ClassVar[tuple[str, int] | None] = None
    list_field: ClassVar[str | None] = None  # of the config, shown in lists of matches in place of the joint score
    most_tokens: ClassVar[int] = 256  # per move, unless a model's row says otherwise
    typical: ClassVar[TypicalCalls] = TypicalCalls(4, 3400, 150, 1.0)
    sampling: ClassVar[Mapping[str, float]] = {}  # as in its paper, for rounds to train on

    @property
    def fields(self) -> Mapping[str, Schema]:
        """The JSON Schema of each field of the config."""
        return fields_of(self.settings)

    @property
    def drawn(self) -> tuple[str, ...]:
        """The fields of the config that each match draws for itself; guests may not fix them."""
        return tuple(name for name, schema in self.fields.items() if schema.get("drawn"))

    @property
    def options(self) -> Mapping[str, Schema]:
        """The JSON Schema of each field shown in forms."""
        return {
            name: schema for name, schema in self.fields.items() if not schema.get("drawn") and schema.get("form", True)
        }

    def prepare(self) -> None:
        """Load what is slow to load, so that no move waits for it. Called before a process's first match of the
        game.
        """

    def config(self, raw: Mapping[str, Any]) -> GameConfig:
        """Validate a raw config. Raises Invalid, which names the field, what was expected and what came."""
        return self.settings.read(raw, self.name)

    def typical_calls(self, config: Mapping[str, Any]) -> TypicalCalls:  # noqa: ARG002  in most games any config is alike
        """The expected calls of a model without history in a match with that config."""
        return self.typical

    def partner_weight(self, config: Mapping[str, Any]) -> Fraction | None:  # noqa: ARG002  most games have none
        """The exact weight of a partner's point in a seat's utility under a config; None in a game without one.

        Raises Invalid for an invalid config.
        """
        return None

    def joint_share(
        self,
        config: Mapping[str, Any],  # noqa: ARG002  most games have no best joint score
        utilities: tuple[float, float],  # noqa: ARG002
        facts: JSON | None,  # noqa: ARG002
    ) -> float | None:
        """The joint score as a share of the best possible joint score: from 0 to 1.

        `facts` are those of the outcome, or None if they have not been read. None in a game without a best joint score,
        and if the missing facts are needed to tell.
        """
        return None

    def measures(self, config: Mapping[str, Any], moves: Sequence[Event]) -> Mapping[str, float]:  # noqa: ARG002
        """The game's own measures of a finished match with that resolved config and these accepted moves, beside its
        result.

        The keys are the names that its metrics look up (`MatchTable.measure`); measures that a match lacks are left
        out. They are stored with the match when it ends.
        """
        return {}

    def talk(self, config: Mapping[str, Any], moves: Sequence[Event], seat: int) -> Talk:  # noqa: ARG002
        """What a seat said in a match with that resolved config and these accepted moves, as measured by its game."""
        return Talk([words_of(move.text) for move in moves if move.seat == seat])

    def prompt_words(self, facts: JSON, sections: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002
        """Further placeholders for the rules in a prompt, beside the view's facts; `sections` are those of the
        template.
        """
        return {}

    def answer_forms(self, view: View) -> Mapping[str, Schema]:  # noqa: ARG002  most games take moves as text alone
        """The forms of answer open to the seat that sees `view` when moves are asked for as JSON: a schema for each."""
        return {}

    def written_move(self, view: View, form: str, content: Any) -> str | None:  # noqa: ARG002  likewise
        """The text of the move in such an answer; None for a form or content that the seat is never asked for.

        A move that only the rules forbid is still written: `parse` says what is wrong with it.
        """
        return None

    @abstractmethod
    def utility_range(self, config: Mapping[str, Any]) -> tuple[Decimal, Decimal]:
        """The minimum and maximum of a seat's utility under a config, exact, because studies pay by it.

        Raises Invalid for an invalid config.
        """

    @abstractmethod
    def initial(self, config: Any, rng: random.Random) -> S:
        """The starting state; whatever the config leaves open is drawn from `rng`."""

    @abstractmethod
    def to_move(self, state: S) -> int | None:
        """The seat whose turn it is, or None when the game is over."""

    @abstractmethod
    def parse(self, state: S, seat: int, text: str) -> Event | Violation:
        """Read a move by the seat whose turn it is: the structured event, or why it is refused."""

    @abstractmethod
    def apply(self, state: S, event: Event) -> S:
        """The state after an event that `parse` made."""

    @abstractmethod
    def view(self, state: S, seat: int, *, over: bool = False) -> View:
        """All that `seat` may see; never what it may not know.

        With `over` the match was aborted: nobody is to move, and what was hidden until the end is shown.
        """

    @abstractmethod
    def outcome(self, state: S) -> Outcome | None:
        """How the game ended by its own rules, or None while it goes on."""


def transcript(events: Sequence[Event], seat: int, hidden: frozenset[str] = frozenset()) -> tuple[TranscriptEntry, ...]:
    """The accepted moves as `seat` sees them; the partner's moves of a `hidden` kind have no text."""
    new = tuple.__new__  # each move rebuilds all entries, and a NamedTuple's constructor takes twice as long
    return tuple(
        [
            new(TranscriptEntry, (ply, "you", event.kind, event.text))
            if event.seat == seat
            else new(TranscriptEntry, (ply, "partner", event.kind, None if event.kind in hidden else event.text))
            for ply, event in enumerate(events)
        ]
    )
