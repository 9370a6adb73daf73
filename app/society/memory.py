"""The memory of a society's agents, and which part of it a question recalls.

Vectors belong to questions and not to agents: all agents that remember a question share its row. What is remembered in
an iteration can be recalled from the next one on, so that neither the order in which interactions end nor an
interruption changes anything.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from app.society.embedders.base import Embedder, EmbedderFailed, Vectors
from app.society.interaction import Recall

FIRST = -1  # the iteration of what agents remember at the start
_DECIMALS = 5  # of a distance; another order of summing changes only later ones
_DISTANCES_KEPT = 4_000_000  # four-byte numbers; all critics of a draft recall by the same question


class QuestionVectors:
    """The vectors of all questions that were asked or are remembered, each embedded once."""

    def __init__(self, embedder: Embedder) -> None:
        self.threshold = embedder.threshold
        self._embedder = embedder
        self._rows: dict[str, int] = {}
        self._vectors: Vectors = np.zeros((0, 0), dtype=np.float32)
        self._is_zero: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._distances: OrderedDict[str, npt.NDArray[np.float32]] = OrderedDict()

    def add(self, questions: Iterable[str]) -> None:
        """Embed the new ones of these questions together. Blocks as the embedder does.

        Raises EmbedderFailed, also if vectors differ in length from earlier ones.
        """
        new = [question for question in dict.fromkeys(questions) if question not in self._rows]
        if not new:
            return
        vectors = self._embedder.embed(new)
        if self._rows and vectors.shape[1] != self._vectors.shape[1]:
            width = self._vectors.shape[1]
            raise EmbedderFailed(
                f"{self._embedder.name}: expected vectors of {width} numbers as before, got some of {vectors.shape[1]}"
            )
        self._vectors = np.concatenate([self._vectors, vectors]) if self._rows else vectors
        self._is_zero = np.concatenate([self._is_zero, ~vectors.any(axis=1)])
        self._rows.update({question: len(self._rows) + at for at, question in enumerate(new)})
        self._distances.clear()

    def rows_of(self, questions: Sequence[str]) -> npt.NDArray[np.intp]:
        """The positions of these questions in `distances`. Embeds new ones."""
        self.add(questions)
        return np.array([self._rows[question] for question in questions], dtype=np.intp)

    def distances(self, question: str) -> npt.NDArray[np.float32]:
        """The cosine distance of a question from every other, by `rows_of`; the maximum for a row of zeros."""
        self.add([question])
        found = self._distances.get(question)
        if found is None:
            row = self._rows[question]
            found = np.round(np.clip(1 - self._vectors @ self._vectors[row], 0, 2), _DECIMALS)
            found[self._is_zero | self._is_zero[row]] = 2
            while self._distances and (len(self._distances) + 1) * len(found) > _DISTANCES_KEPT:
                self._distances.popitem(last=False)
            self._distances[question] = found
        return found


class AgentMemory:
    """The questions that one agent remembers, each with its first answer.

    `threshold` is the cosine distance under which a question is recalled; None: the embedder's own. `pairs` are the
    questions and answers that the agent remembers at the start.
    """

    def __init__(
        self, vectors: QuestionVectors, threshold: float | None = None, pairs: Iterable[tuple[str, str]] = ()
    ) -> None:
        self._vectors = vectors
        self._threshold = vectors.threshold if threshold is None else threshold
        self._answers: dict[str, tuple[int, str]] = {}  # the iteration and the answer
        self._arrays: tuple[list[str], npt.NDArray[np.intp], npt.NDArray[np.intp]] | None = None
        first = list(pairs)
        vectors.add(question for question, _ in first)
        for question, answer in first:
            self.remember(question, answer, FIRST)

    def remember(self, question: str, answer: str, iteration: int) -> None:
        """Store an answer, unless the question already has one from the same or an earlier iteration."""
        known = self._answers.get(question)
        if known is None or iteration < known[0]:
            self._answers[question] = iteration, answer
            self._arrays = None

    def recall(self, question: str, iteration: int) -> Recall | None:
        """The nearest question that was remembered before this iteration; None if none is near enough.

        Of several at the same distance the one that was remembered first.
        """
        questions, rows, since = self._arrays or self._remembered()
        here = np.flatnonzero(since < iteration)
        if not here.size:
            return None
        distances = self._vectors.distances(question)[rows[here]]
        nearest = int(np.argmin(distances))
        if distances[nearest] >= self._threshold:
            return None
        found = questions[here[nearest]]
        return Recall(found, self._answers[found][1], round(float(distances[nearest]), _DECIMALS))

    def answers(self) -> Mapping[str, str]:
        """Every remembered question with its answer, oldest first."""
        return {question: answer for question, (_, answer) in self._in_order()}

    def _in_order(self) -> Sequence[tuple[str, tuple[int, str]]]:
        return sorted(self._answers.items(), key=lambda item: item[1][0])

    def _remembered(self) -> tuple[list[str], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        ordered = self._in_order()
        questions = [question for question, _ in ordered]
        since = np.array([iteration for _, (iteration, _) in ordered], dtype=np.intp)
        self._arrays = questions, self._vectors.rows_of(questions), since
        return self._arrays
