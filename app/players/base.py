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
from app.games.base import JSON, View

Refused = tuple[str, str]  # a bad attempt at this turn: its text, and the reason that was given


@dataclass(frozen=True, slots=True)
class PlayerSpec:
    """What a registry row says about a player: its kind, its name, and options for that kind."""

    kind: str  # scripted | api
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
    latency: float  # seconds, retries included
    retries: int
    error: str | None = None


class PlayerFailed(AppError):
    """A model gave no answer. `message` is for the log, never for a participant."""

    code = "player_failed"

    def __init__(self, message: str, generation: Generation) -> None:
        super().__init__(message)
        self.generation = generation


class Scripted(Protocol):
    """A player that answers at once and always the same for the same view and generator."""

    def choose(self, view: View, rng: random.Random) -> str:
        """The text of a move for the seat that sees `view`, whose turn it is."""
        ...


class Generator(Protocol):
    """A player that calls a model."""

    async def reply(self, view: View, prompt: JSON, refused: Sequence[Refused] = ()) -> Generation:
        """Ask for the move of the seat that sees `view`.

        `prompt` names style and template as the match's `started` event has them; `refused` are this turn's bad
        attempts, which enter this prompt only. Raises PlayerFailed.
        """
        ...
