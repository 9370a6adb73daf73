"""Chat calls of models: each waits for its turn and for a model that is away, and is stored."""

import asyncio
import random
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import structlog

from app.core.failures import BUSY, MOST_BREAKS
from app.jobs.call_costs import Prices, is_unpriced
from app.jobs.spending import BudgetReached
from app.matches.engine import readable
from app.matches.selfplay import OutageTimer, RoundBlocked
from app.matches.store import generation_columns, moment
from app.model_calls.job_writer import CallWriter
from app.models import LanguageModel
from app.players import make_player
from app.players.api.structured import OFF
from app.players.base import ChatSampling, Generation, ModelPlayer, PlayerFailed
from app.registry import player_spec
from app.registry.prices import prices_of_model

log = structlog.get_logger()

SCRIPTED_AT_ONCE = 64  # simultaneous calls of a model that answers at once
MOST_EMPTY = 3  # empty answers after which a call has failed
EMPTY = "expected an answer, got an empty one"

Chat = list[dict[str, str]]


class ChatBlocked(Exception):
    """The job cannot continue until the problem that the message names is fixed."""


class AnswerRefused(Exception):
    """The model will never answer this call, for example because the prompt is too long for it."""


@dataclass(eq=False)
class ChatModel:
    """A model that answers chats: how it is called, how long calls wait for it, and what its tokens cost."""

    id: int
    name: str
    player: ModelPlayer
    slots: asyncio.Semaphore  # one for each call that may be in flight
    patience: OutageTimer
    prices: Prices | None
    structured: bool = False  # whether its answers must follow a schema if a call has one
    unread: int = 0  # its ratings as an observer since the last readable one

    @classmethod
    def of(cls, row: LanguageModel, patience: float, home: Path) -> "ChatModel":
        """The model of a registry row, with `patience` in seconds. Raises Invalid for one that cannot be called."""
        player = cast(ModelPlayer, make_player(player_spec(row), home))
        at_once = SCRIPTED_AT_ONCE if row.kind == "scripted" else player.at_once
        timer = OutageTimer(patience, random.Random(f"waits {row.id}"))
        structured = row.options.get("structured_output", OFF) != OFF
        return cls(row.id, row.name, player, asyncio.Semaphore(at_once), timer, prices_of_model(row), structured)


@dataclass(frozen=True, slots=True)
class ChatCalls:
    """Makes calls that belong together, each once: a call that was answered before is not made again."""

    belong_to: Mapping[str, int]  # the column and number of what their rows belong to
    seed: str  # each call derives its own seed from it
    sampling: ChatSampling
    writer: CallWriter
    answers: Mapping[str, str] = field(default_factory=dict)  # earlier answers, by call

    async def ask(self, call: str, model: ChatModel, chat: Chat, schema: str | None = None) -> str:
        """The answer to a chat, without blanks around it; for a `structured` model it has to follow a JSON Schema.

        Waits for a model that is away or overloaded, and repeats a call with an empty answer, with another seed. Raises
        AnswerRefused if the model will never answer this chat, ChatBlocked if it answers none until something is fixed,
        or was away for too long, and BudgetReached.
        """
        if before := self.answers.get(call, "").strip():
            return before
        for number in range(MOST_EMPTY):
            again = f" again {number}" if number else ""
            try:
                generation = await self._ask_once(call, model, chat, f"{self.seed} {call}{again}", schema)
            except RoundBlocked as blocked:
                raise ChatBlocked(str(blocked)) from None
            if answer := answer_text(generation):
                await self._store_generation(call, model, generation)
                return answer
            await self._store_generation(call, model, replace(generation, error=EMPTY))
        raise AnswerRefused(f"{EMPTY} {MOST_EMPTY} times from {model.name}")

    async def _ask_once(self, call: str, model: ChatModel, chat: Chat, seed: str, schema: str | None) -> Generation:
        """A model's answer, which may be empty; failed calls are stored.

        Raises AnswerRefused and BudgetReached as `ask` does, and RoundBlocked.
        """
        sampling = self.sampling._replace(answer_schema=schema) if model.structured else self.sampling
        tries = breaks = 0
        while True:
            try:
                async with model.slots, self.writer.gate.call(model.prices):
                    model.patience.check_open()
                    generation = await model.player.complete(chat, sampling, seed=seed)
            except (BudgetReached, RoundBlocked):
                raise
            except PlayerFailed as failure:
                blocks = model.patience.blocks(failure)  # before waiting calls get the slot
                await self._store_generation(call, model, failure.generation)
                if blocks:
                    raise RoundBlocked(failure.message) from None
                if failure.kind != BUSY:
                    raise AnswerRefused(failure.message) from None
                await model.patience.wait(failure, tries)
                tries += 1
                continue
            except Exception:
                breaks += 1
                if breaks == MOST_BREAKS:
                    raise
                log.exception("a call of a model broke, it is made again", model=model.name)
                await model.patience.rest(breaks)
                continue
            model.patience.answered()
            return generation

    async def _store_generation(self, call: str, model: ChatModel, generation: Generation) -> None:
        await self.writer.call(
            generation_row(self.belong_to, call, model.id, generation),
            calls=1 + generation.retries,
            failed_calls=int(generation.error is not None),
            prompt_tokens=generation.prompt_tokens or 0,
            completion_tokens=generation.completion_tokens or 0,
            estimated_tokens=generation.estimated_tokens or 0,
            cost=generation.cost or 0.0,
            unpriced_calls=int(is_unpriced(generation.cost, generation.error, model.prices)),
        )
        await asyncio.sleep(0)  # a model that answers at once must not block the loop


async def together(*work: Coroutine[Any, Any, Any]) -> Any:
    """The results of all coroutines, in order. If one raises, the others are cancelled and have ended."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


# ---- A call as a row ---------------------------------------------------------------


def generation_row(
    belongs_to: Mapping[str, int], call: str, model_id: int | None, generation: Generation
) -> dict[str, Any]:
    """A call as `CallWriter` takes it; `belongs_to` is the column of its owner, with the owner's number."""
    return {
        **belongs_to,
        "call": call,
        "attempt": 0,
        "language_model_id": model_id,
        **generation_columns(generation),
        "at": moment(datetime.now(UTC)),
    }


def answer_text(generation: Generation) -> str:
    """A model's answer as the database stores it, so that a resumed society sees the same."""
    return readable(generation.text or "").strip()
