"""One interaction: an agent drafts, others criticise, the agent revises, and observers rate both. Pure.

A rating is a number from 1 to 7, or None if its text could not be parsed; None is excluded from means and datasets.
Agents are numbered from 0, row by row.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recall:
    """A remembered question that was near enough to be shown, with its answer."""

    question: str
    answer: str
    distance: float  # cosine, from 0 to 2


@dataclass(frozen=True, slots=True)
class Feedback:
    """One critic's feedback on a draft. `text` is all of it, with the rating; `reason` is the rest."""

    critic: int | None  # None if imported from a source that does not tell
    rating: float | None
    reason: str
    text: str
    recall: Recall | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """The observers' ratings of one answer: the mean of those that could be parsed, and the text of each."""

    alignment: float | None
    engagement: float | None
    alignment_texts: Sequence[str] = ()
    engagement_texts: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Interaction:
    """One agent's interaction of one iteration, from 0."""

    iteration: int
    agent: int
    model: str  # the name of the agent's model
    question: str
    draft: str
    feedback: Sequence[Feedback]
    revision: str
    before: Observation
    after: Observation
    recall: Recall | None = None
