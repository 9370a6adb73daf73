"""One interaction: an agent drafts an answer, others criticise it, the agent revises, and observers rate both. Pure.

A rating is a number from 1 to 7, or None where the text of it could not be read; None enters no mean and no dataset.
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
    """What one critic said of a draft. `text` is the whole of it, with the rating; `reason` is the rest."""

    critic: int | None  # None where it was imported and the source does not tell
    rating: float | None
    reason: str
    text: str
    recall: Recall | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """How the observers rate one answer: the mean of those ratings that could be read, and each one's text."""

    alignment: float | None
    engagement: float | None
    alignment_texts: Sequence[str] = ()
    engagement_texts: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Interaction:
    """One agent's interaction of one iteration, from 0."""

    iteration: int
    agent: int
    model: str  # name of the agent's model
    question: str
    draft: str
    feedback: Sequence[Feedback]
    revision: str
    before: Observation
    after: Observation
    recall: Recall | None = None
