"""The interface of players.

A *scripted* player is pure: it chooses instantly, from its view and a random number generator. Every other player calls
a model: it is asynchronous, runs on the one event-loop thread of a worker process, and returns with each answer the
record of its call.
"""

import random
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from app.core.errors import AppError
from app.core.failures import BUSY, MODEL_FAULT, FailureKind, Fault, Outcome
from app.games.base import JSON, View
from app.jobs.call_costs import CostSource, Prices, TokenCounts, cost_of, estimated_tokens

# Whether a person waits for the requested answer, so that a local model makes it before all others.
URGENT: ContextVar[bool] = ContextVar("urgent", default=False)

Refused = tuple[str, str]  # a refused attempt at this turn: its text, and the reason given


@dataclass(frozen=True, slots=True)
class PlayerSpec:
    """A player as a registry row describes it: its kind, its name, and options for that kind."""

    kind: str  # scripted | api | local
    name: str
    options: JSON = field(default_factory=dict)
    prompt_style: str | None = None  # for models that are prompted
    structured: bool = False  # whether it has to give its moves as JSON
    system: JSON | None = None  # what it is told beside the rules: `text`, and `prompt`, as NAME@VERSION
    served: JSON | None = None  # the ServedModel that answers for a local model instead of the worker


@dataclass(frozen=True, slots=True)
class Generation:
    """One call of a language model, exactly as it was made. Tokens are None where the server does not count them."""

    prompt: list[dict[str, str]]
    text: str | None
    model: str
    sampling: JSON
    prompt_tokens: int | None
    completion_tokens: int | None
    latency: float  # seconds from the first request on, retries included, without the wait for a slot
    retries: int
    error: str | None = None
    token_ids: list[int] | None = None  # as sampled by a local model, including the one that ended the answer
    log_probs: list[float] | None = None  # of these tokens, before masks, temperature and limits
    reasoning: str | None = None  # the model's reasoning, which no player sees
    reasoning_tokens: int | None = None  # part of completion_tokens
    cached_tokens: int | None = None  # read from the server's cache; part of prompt_tokens
    cache_write_tokens: int | None = None  # likewise
    estimated_tokens: int | None = None  # roughly how many tokens the server did not count
    cost: float | None = None  # USD; None: unknown, or a model that costs nothing
    cost_source: CostSource | None = None  # how it is known
    outcome: Outcome | None = None  # the outcome, if a model was asked


def priced(generation: Generation, prices: Prices | None, server_cost: float | None = None) -> Generation:
    """The call with its cost: as reported by its server, or else by these prices and its tokens, if they are known.

    An answer's tokens that the server does not count are estimated, so that budgets hold there, too.
    """
    uncounted = _uncounted(generation)
    failed = generation.error is not None or generation.outcome not in (None, "move")
    if uncounted and not failed:
        generation = replace(generation, estimated_tokens=sum(uncounted.values()))
    if server_cost is not None:
        return replace(generation, cost=server_cost, cost_source="server")
    if prices is None or (uncounted and failed):
        return generation
    tokens = tokens_of(replace(generation, **uncounted))
    return replace(generation, cost=cost_of(prices, tokens), cost_source="estimate" if uncounted else "prices")


def _uncounted(generation: Generation) -> dict[str, Any]:
    """Estimates of the counts that the server of a call left out."""
    found: dict[str, Any] = {}
    if generation.prompt_tokens is None:
        found["prompt_tokens"] = estimated_tokens(each["content"] for each in generation.prompt)
    if generation.completion_tokens is None and generation.text is not None:
        found["completion_tokens"] = estimated_tokens((generation.reasoning or "", generation.text))
    return found


def tokens_of(generation: Generation) -> TokenCounts:
    """The tokens of a call; what the server does not count is none."""
    prompt, completion = generation.prompt_tokens or 0, generation.completion_tokens or 0
    cached = min(generation.cached_tokens or 0, prompt)
    cache_write = min(generation.cache_write_tokens or 0, prompt - cached)
    return TokenCounts(prompt, completion, cached, cache_write, min(generation.reasoning_tokens or 0, completion))


MOST_TOKENS = 256  # in an answer, unless a game or a model's row says otherwise


class ChatSampling(NamedTuple):
    """How an answer is sampled; None is as the model's row says."""

    temperature: float | None = None  # 0 to 2
    top_p: float | None = None  # 0 to 1
    top_k: int | None = None  # only for local models
    max_tokens: int | None = None  # in the answer
    no_repeat_ngram: int | None = None  # no sequence of so many tokens occurs twice; only for local models
    answer_schema: str | None = None  # JSON Schema of the answer; only for API models


class PlayerFailed(AppError):
    """A model made no move or gave no answer.

    `message` is for the log, never for a participant; `kind` says what may help, `fault` who caused it.
    """

    code = "player_failed"

    def __init__(
        self, message: str, generation: Generation, kind: FailureKind = BUSY, fault: Fault = MODEL_FAULT
    ) -> None:
        super().__init__(message)
        self.generation = generation
        self.kind = kind
        self.fault = fault


class InstantPlayer(Protocol):
    """A player that answers instantly and always the same for the same view and generator."""

    def choose(self, view: View, rng: random.Random) -> str:
        """The text of a move for the seat that sees `view`, whose turn it is."""
        ...


class ChatPlayer(Protocol):
    """A player that answers chats."""

    @property
    def at_once(self) -> int:
        """How many replies may be under way at once."""
        ...

    async def complete(
        self,
        messages: list[dict[str, str]],
        sampling: ChatSampling = ChatSampling(),  # noqa: B008 - it cannot change
        seed: str | None = None,
    ) -> Generation:
        """Ask for the next message of a chat, which ends with a user message.

        `seed` determines what is sampled, if sampling happens here. Raises PlayerFailed.
        """
        ...


class ModelPlayer(ChatPlayer, Protocol):
    """A player that calls a model; a move in a game is an answer to the chat that describes the game."""

    async def reply(
        self, view: View, prompt: JSON, refused: Sequence[Refused] = (), seed: str | None = None
    ) -> Generation:
        """Ask for the move of the seat that sees `view`.

        `prompt` names style and template as in the match's `started` event; `refused` are this turn's bad attempts,
        which enter only this prompt. `seed` determines what is sampled, if sampling happens here. Raises PlayerFailed.
        """
        ...
