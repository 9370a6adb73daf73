"""Questions are similar by the vectors of a model behind an OpenAI-compatible API, at its address `/embeddings`."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.players.api.answers import Usage, read_usage
from app.players.api.client import EMBEDDINGS, ChatFailure, ChatResponse
from app.players.api.options import ApiOptions
from app.players.api.sending import send
from app.players.base import Generation, priced
from app.society.embedders import BATCH
from app.society.embedders.base import EmbedderFailed, Vectors, unit_rows
from training.marks import FAMILIES

# Where questions of one meaning end: the published distance is that of the model that it was found for.
THRESHOLDS = {"text-embedding-ada-002": 0.3}
USUAL_THRESHOLD = 0.5


class ApiEmbedder:
    """A model that embeds, by the same options as one that answers chats."""

    def __init__(self, name: str, options: ApiOptions) -> None:
        self.name = name
        self.threshold = THRESHOLDS.get(options.model, USUAL_THRESHOLD)
        self.calls: list[Generation] = []
        self._options = options

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`. The requests of all texts are in flight together, as far as the model's limits let them."""
        if not texts:
            return np.zeros((0, 1), dtype=np.float32)
        return unit_rows(asyncio.run(self._embed(texts)), len(texts), self.name)

    async def _embed(self, texts: Sequence[str]) -> list[Any]:
        batches = [texts[at : at + BATCH] for at in range(0, len(texts), BATCH)]
        # All of them have ended before one fails, so that each is among the calls.
        found = await asyncio.gather(*map(self._batch, batches), return_exceptions=True)
        if failed := next((each for each in found if isinstance(each, BaseException)), None):
            raise failed
        return [row for rows in found if not isinstance(rows, BaseException) for row in rows]

    async def _batch(self, texts: Sequence[str]) -> list[Any]:
        texts = [FAMILIES.broken(text) for text in texts]  # an embedder's tokenizer knows control tokens, too
        # Servers refuse an empty text or embed it as they like.
        wanted = {"model": self._options.model, "input": [text if text.strip() else "." for text in texts]}
        found = await send(self._options, json.dumps({**wanted, **self._options.extra}).encode(), 0, EMBEDDINGS)
        self.calls.append(self._call(texts, found))
        if isinstance(found, ChatFailure):
            raise EmbedderFailed(found.what)
        data = found.body["data"]
        rows = {each.get("index"): each.get("embedding") for each in data if isinstance(each, dict)}
        if len(data) != len(texts) or set(rows) != set(range(len(texts))):
            raise EmbedderFailed(f"{self.name}: expected {len(texts)} embeddings, each with its index, got {len(data)}")
        return [rows[at] for at in range(len(texts))]

    def _call(self, texts: Sequence[str], found: ChatResponse | ChatFailure) -> Generation:
        """A request as calls of models are stored: its texts are the prompt, and there is no answer to show."""
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
