"""The interface that measures the similarity of questions: an embedder makes a vector of each text."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from app.core.errors import AppError, Invalid, Phrase
from app.players.base import Generation

Vectors: TypeAlias = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Makes vectors whose cosine distance, from 0 to 2, measures how little two texts have in common."""

    name: str  # as `find_embedder` takes it
    threshold: float  # cosine distance under which two questions count as similar
    calls: list[Generation]  # of a model behind an API, including those without an answer, oldest first

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row of length 1 for each text, (N, D). A row of zeros is near nothing.

        The same text always has the same row. The call blocks, so code on an event loop calls it in a thread. Raises
        EmbedderFailed.
        """
        ...


class EmbedderFailed(AppError):
    """An embedder returned no vectors; the message gives the reason in one line."""

    code = "embedder_failed"
    status = 502


def unit_rows(rows: Sequence[Sequence[float]] | npt.NDArray[Any], texts: int, name: str) -> Vectors:
    """The rows scaled to length 1; rows of zeros stay. Raises EmbedderFailed for anything else."""
    widths = sorted({len(row) for row in rows})
    if len(rows) != texts or len(widths) > 1:
        raise EmbedderFailed(
            f"{name}: expected a vector for each of {texts} texts, all of one length, got {len(rows)} of"
            f" {' and '.join(map(str, widths[:2]))} numbers"
        )
    try:
        with np.errstate(over="ignore"):
            made = np.asarray(rows, dtype=np.float32)
    except OverflowError:  # a whole number with hundreds of digits
        made = np.full((texts, 1), np.inf, dtype=np.float32)
    if not np.isfinite(made).all():
        raise EmbedderFailed(f"{name}: expected finite numbers of at most 3e38, got another one")
    lengths = np.sqrt(np.einsum("nd,nd->n", made, made, dtype=np.float64))[:, None]  # as squares may exceed float32
    scaled: Vectors = np.divide(made, lengths, out=np.zeros_like(made), where=lengths > 0, casting="same_kind")
    return scaled


def check_texts(texts: Sequence[str]) -> None:
    """Raises Invalid for an empty list, from which no embedder can learn."""
    if not texts:
        raise Invalid("questions", expected=Phrase("at least one question"), got=0)
