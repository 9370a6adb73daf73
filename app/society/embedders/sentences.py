"""Similarity by vectors of a sentence model on this machine, with the library sentence-transformers.

The library is no dependency: to use it, install it where the workers run. It loads torch.
"""

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.core.errors import Invalid, Phrase, Verbatim
from app.players.base import Generation
from app.society.embedders.base import EmbedderFailed, Vectors, unit_rows

LIBRARY = "sentence_transformers"
THRESHOLD = 0.4  # for common sentence models, whose unrelated questions are about 0.9 apart


class SentenceEmbedder:
    """A sentence model, loaded when first used."""

    threshold = THRESHOLD

    def __init__(self, name: str, model: str) -> None:
        self.name = name
        self.calls: list[Generation] = []
        self._path = model
        self._model: Any = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        if not texts:
            return np.zeros((0, 1), dtype=np.float32)
        if self._model is None:
            self._model = self._load_sentence_model()
        rows = self._model.encode(list(texts), convert_to_numpy=True, show_progress_bar=False)
        return unit_rows(rows, len(texts), self.name)

    def _load_sentence_model(self) -> Any:
        library = importlib.import_module(LIBRARY)
        try:
            return library.SentenceTransformer(self._path, device="cpu")
        except (OSError, ValueError) as error:
            raise EmbedderFailed(
                f"{self.name}: expected a sentence model, got {' '.join(str(error).split())[:200]}"
            ) from None


def make(name: str, model: str) -> SentenceEmbedder:
    """The embedder of a model's folder or name. Raises Invalid where the library is not installed."""
    if importlib.util.find_spec(LIBRARY) is None:
        raise Invalid(
            "embedder",
            expected=Phrase("the library sentence-transformers, where the workers run"),
            got=Verbatim("none"),
            remedy=Phrase("install it there (pip install sentence-transformers) or choose tfidf"),
        )
    return SentenceEmbedder(name, model)
