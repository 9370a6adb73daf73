"""Similarity of questions by vectors of a model behind an OpenAI-compatible API, at `/embeddings`."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.players.api.answers import Usage, count, mapping, read_usage
from app.players.api.client import EMBEDDINGS, ChatFailure, ChatResponse
from app.players.api.options import ApiOptions
from app.players.api.sending import send
from app.players.base import Generation, priced
from app.society.embedders import BATCH
from app.society.embedders.base import EmbedderFailed, Vectors, unit_rows
from training.marks import FAMILIES

# Up to here, questions mean the same: the published distance, for the model that it was found for.
THRESHOLDS = {"text-embedding-ada-002": 0.3}
USUAL_THRESHOLD = 0.5
MOST_NUMBERS = 65_536  # in a vector; the widest models have some ten thousand


class ApiEmbedder:
    """An embedding model, with the same options as a chat model."""

    def __init__(self, name: str, options: ApiOptions) -> None:
        self.name = name
        self.threshold = THRESHOLDS.get(options.model, USUAL_THRESHOLD)
        self.calls: list[Generation] = []
        self._options = options

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`. The requests for all texts are sent concurrently, within the model's limits."""
        if not texts:
            return np.zeros((0, 1), dtype=np.float32)
        return unit_rows(asyncio.run(self._embed(texts)), len(texts), self.name)

    async def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        batches = [texts[at : at + BATCH] for at in range(0, len(texts), BATCH)]
        # All of them end before one fails, so that each is among the calls.
        found = await asyncio.gather(*map(self._batch, batches), return_exceptions=True)
        if failed := next((each for each in found if isinstance(each, BaseException)), None):
            raise failed
        return [row for rows in found if not isinstance(rows, BaseException) for row in rows]

    async def _batch(self, texts: Sequence[str]) -> list[list[float]]:
        texts = [FAMILIES.broken(text) for text in texts]  # an embedder's tokenizer knows control tokens, too
        # Servers refuse an empty text or embed it as they like.
        wanted = {"model": self._options.model, "input": [text if text.strip() else "." for text in texts]}
        found = await send(self._options, json.dumps({**wanted, **self._options.extra}).encode(), 0, EMBEDDINGS)
        self.calls.append(self._request_as_generation(texts, found))
        if isinstance(found, ChatFailure):
            raise EmbedderFailed(found.what)
        try:
            return read_rows(found.body["data"], len(texts))
        except ValueError as error:
            raise EmbedderFailed(f"{self.name}: {error}") from None

    def _request_as_generation(self, texts: Sequence[str], found: ChatResponse | ChatFailure) -> Generation:
        """A request as model calls are stored: its texts are the prompt, and there is no answer to show."""
        usage = Usage() if isinstance(found, ChatFailure) else read_usage(found.body)
        call = Generation(
            prompt=[{"role": "user", "content": text} for text in texts],
            text=None,
            model=self._options.model,
            sampling={"extra": self._options.extra} if self._options.extra else {},
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=None,
            latency=found.latency,
            retries=found.retries,
            error=found.what if isinstance(found, ChatFailure) else None,
        )
        return priced(call, None, usage.cost)


def read_rows(data: Sequence[Any], texts: int) -> list[list[float]]:
    """The vectors in a response, one for each of `texts` texts in order; their numbers may be infinite.

    Raises ValueError, which says what was expected and what came, and quotes nothing: a server may repeat the key.
    """
    rows: dict[int, list[float]] = {}
    for each in map(mapping, data):
        index, vector = count(each.get("index")), each.get("embedding")
        if index is None or index >= texts or index in rows:
            got = "none" if index is None else f"{index} {'twice' if index in rows else ''}".strip()
            raise ValueError(f"expected each index from 0 to {texts - 1} once, got {got}")
        if not isinstance(vector, list) or any(type(number) not in (int, float) for number in vector):
            raise ValueError(f"expected a list of numbers as embedding {index}, got something else")
        if not 0 < len(vector) <= MOST_NUMBERS:
            raise ValueError(f"expected 1 to {MOST_NUMBERS} numbers in embedding {index}, got {len(vector)}")
        rows[index] = vector
    if len(rows) != texts:
        raise ValueError(f"expected {texts} embeddings, got {len(rows)}")
    return [rows[at] for at in range(texts)]
