"""What tells how similar two questions are: an embedder makes a vector of each text."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from app.core.errors import AppError, Invalid, Phrase
from app.players.base import Generation

Vectors: TypeAlias = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Makes vectors whose cosine distance says how little two texts have in common, from 0 to 2."""

    name: str  # as `find_embedder` takes it
    threshold: float  # cosine distance under which two questions count as similar
    calls: list[Generation]  # of a model behind an API, those without an answer included, the first one first

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row of length 1 for each text, (N, D). A row of zeros is near nothing.

        The same text always has the same row. It blocks: whoever is on an event loop calls it in a thread. Raises
        EmbedderFailed.
        """
        ...


class EmbedderFailed(AppError):
    """An embedder gave no vectors; the message is one line that says why."""

    code = "embedder_failed"
    status = 502


def unit_rows(rows: object, texts: int, name: str) -> Vectors:
    """Rows of length 1 of the same directions; those of zeros stay. Raises EmbedderFailed for anything else."""
    try:
        made = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError):
        made = np.empty(0, dtype=np.float32)
    if made.ndim != 2 or len(made) != texts or not np.isfinite(made).all():
        raise EmbedderFailed(
            f"{name}: expected a vector of finite numbers, all of one length, for each of {texts} texts"
        )
    lengths = np.linalg.norm(made, axis=1, keepdims=True)
    scaled: Vectors = np.divide(made, lengths, out=np.zeros_like(made), where=lengths > 0)
    return scaled


def check_texts(texts: Sequence[str]) -> None:
    """Raises Invalid for a list without a text, of which no embedder can learn."""
    if not texts:
        raise Invalid("questions", expected=Phrase("at least one question"), got=0)
