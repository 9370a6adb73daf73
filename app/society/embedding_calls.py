"""The embedder of a running society: its calls are stored like those of the other models."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.orm import Session

from app.jobs.call_costs import Prices, is_unpriced
from app.model_calls.job_calls import generation_row
from app.model_calls.job_writer import CallWriter
from app.models import Society
from app.players.base import priced
from app.society.embedders import find_embedder, registered
from app.society.embedders.base import Embedder

CALL = "embedding"  # the name of its calls' rows; other calls are named after the step of an interaction

T = TypeVar("T")


class SocietyEmbedder:
    """An embedder with the cost of its calls, and where they are stored."""

    def __init__(
        self, embedder: Embedder, society_id: int, model_id: int | None, prices: Prices | None, writer: CallWriter
    ) -> None:
        """Set up an embedder. `model_id` is that of the registered model that it is, if any."""
        self.embedder = embedder
        self._society_id = society_id
        self._model_id = model_id
        self._prices = prices
        self._writer = writer

    @classmethod
    def of(cls, session: Session, row: Society, writer: CallWriter) -> "SocietyEmbedder":
        """The embedder of a society. Raises Conflict and Invalid for one that cannot be used here."""
        corpus = [*row.questions, *(question for found in row.priors.values() for question, _ in found)]
        embedder = find_embedder(row.embedder, corpus, registered.options_of(session, row.embedder))
        model = registered.model_of(session, row.embedder)
        number = None if model is None else model.id
        return cls(embedder, row.id, number, registered.prices_of(session, row.embedder), writer)

    async def asked(self, work: Callable[[], T]) -> T:
        """The result of `work`, which calls the embedder in a thread. The calls are stored even if it fails.

        Raises BudgetReached.
        """
        try:
            async with self._writer.gate.call(self._prices):
                return await asyncio.to_thread(work)
        finally:
            calls, self.embedder.calls = self.embedder.calls, []
            for call in calls:
                call = priced(call, self._prices, call.cost)
                await self._writer.call(
                    generation_row({"society_id": self._society_id}, CALL, self._model_id, call),
                    calls=1 + call.retries,
                    failed_calls=int(call.error is not None),
                    prompt_tokens=call.prompt_tokens or 0,
                    estimated_tokens=call.estimated_tokens or 0,
                    cost=call.cost or 0.0,
                    unpriced_calls=int(is_unpriced(call.cost, call.error, self._prices)),
                )
