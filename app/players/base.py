"""What a player is to the rest of Parlor.

A *scripted* player is pure: it chooses from its view and a generator of random numbers, at once. Every other
player calls a model: it is asynchronous, runs on the one event-loop thread of a worker process, and says with each
answer how it came about.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from app.errors import AppError
from app.failures import BUSY, FailureKind
from app.games.base import JSON, View

Refused = tuple[str, str]  # a bad attempt at this turn: its text, and the reason that was given


@dataclass(frozen=True, slots=True)
class PlayerSpec:
    """What a registry row says about a player: its kind, its name, and options for that kind."""

    kind: str  # scripted | api | local
    name: str
    options: JSON = field(default_factory=dict)
    prompt_style: str | None = None  # of a model that is prompted


@dataclass(frozen=True, slots=True)
class Generation:
    """One call of a language model, exactly as it was made. Tokens are None where the server does not count them."""

    prompt: list[dict[str, str]]
    text: str | None
    model: str
    sampling: JSON
    prompt_tokens: int | None
    completion_tokens: int | None
    latency: float  # seconds from the first request on, retries included, the wait for one's turn to send it not
    retries: int
    error: str | None = None
    token_ids: list[int] | None = None  # as a local model drew them, the one that ended the answer last


# The papers' limits of one move; Source: docs/papers.md
_MOST_TOKENS = {"negotiation": 200, "taboo": 256}
_MOST_TOKENS_ELSEWHERE = 256


def most_tokens(game: str) -> int:
    """How many tokens a move may have where a model's row does not say."""
    return _MOST_TOKENS.get(game, _MOST_TOKENS_ELSEWHERE)


class PlayerFailed(AppError):
    """A model gave no answer. `message` is for the log, never for a participant; `kind` says what may help."""

    code = "player_failed"

    def __init__(self, message: str, generation: Generation, kind: FailureKind = BUSY) -> None:
        super().__init__(message)
        self.generation = generation
        self.kind = kind


class InstantPlayer(Protocol):
    """A player that answers at once and always the same for the same view and generator."""

    def choose(self, view: View, rng: random.Random) -> str:
        """The text of a move for the seat that sees `view`, whose turn it is."""
        ...


class ModelPlayer(Protocol):
    """A player that calls a model."""

    @property
    def at_once(self) -> int:
        """How many replies may be under way at once."""
        ...

    async def reply(
        self, view: View, prompt: JSON, refused: Sequence[Refused] = (), seed: str | None = None
    ) -> Generation:
        """Ask for the move of the seat that sees `view`.

        `prompt` names style and template as the match's `started` event has them; `refused` are this turn's bad
        attempts, which enter this prompt only. `seed` decides what is drawn, where that is done here. Raises
        PlayerFailed.
        """
        ...
