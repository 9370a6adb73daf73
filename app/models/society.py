"""Societies: simulated agents on a grid, their initial settings, and every interaction between them."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.job import JobMixin, LeaseMixin
from app.models.types import Json, UtcDateTime


class Society(JobMixin, LeaseMixin, Model):
    """A world of agents, with all that its interactions are made of. The counts are of what has been committed."""

    __tablename__ = "society"
    __table_args__ = (Index("ix_society_to_run", "status", "queued"),)

    spec: Mapped[dict[str, Any] | None] = mapped_column(Json)  # what was asked for; None if imported
    name: Mapped[str] = mapped_column(String(80))
    config: Mapped[dict[str, Any]] = mapped_column(Json)  # the fields of SocietyConfig
    imported: Mapped[bool] = mapped_column(default=False)  # its interactions were made elsewhere

    agents: Mapped[list[dict[str, Any]]] = mapped_column(Json)  # {"model_id", "model", "share", "system"} of each model
    observers: Mapped[list[dict[str, Any]]] = mapped_column(Json)  # {"model_id", "model"} of each
    embedder: Mapped[str] = mapped_column(String(120))  # its vectors decide which texts are similar
    template: Mapped[str] = mapped_column(String(40), default="full-1", server_default="full-1")  # of its prompts

    question_source: Mapped[str] = mapped_column(String(300))  # where the questions were read from
    questions: Mapped[list[str]] = mapped_column(Json, deferred=True)
    prior_source: Mapped[str] = mapped_column(String(300))
    # Question and answer of each possible first memory of agents, by label.
    priors: Mapped[dict[str, list[list[str]]]] = mapped_column(Json, deferred=True)

    iteration: Mapped[int] = mapped_column(default=0)  # the number of finished iterations
    interactions: Mapped[int] = mapped_column(default=0)  # finished ones, failed ones included
    failed: Mapped[int] = mapped_column(default=0)  # interactions in which a model refused to answer
    ratings: Mapped[int] = mapped_column(default=0)  # by critics and observers
    unread_ratings: Mapped[int] = mapped_column(default=0)  # ratings without a number from 1 to 7
    calls: Mapped[int] = mapped_column(default=0)  # of models, an embedder behind an API included; retries counted
    failed_calls: Mapped[int] = mapped_column(default=0)
    prompt_tokens: Mapped[int] = mapped_column(BigInteger, default=0)
    completion_tokens: Mapped[int] = mapped_column(BigInteger, default=0)
    # Of answers whose server counts none; 0 in jobs from before tokens were estimated.
    estimated_tokens: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    cost: Mapped[float] = mapped_column(default=0.0)  # USD, as far as known, at the prices at the time of each call
    unpriced_calls: Mapped[int | None] = mapped_column(default=0)  # None: from before they were counted


class SocietyAgent(Model):
    """An agent, numbered from 0, row by row of the grid."""

    __tablename__ = "society_agent"

    society_id: Mapped[int] = mapped_column(ForeignKey("society.id", ondelete="CASCADE"), primary_key=True)
    agent: Mapped[int] = mapped_column(primary_key=True)
    label: Mapped[str] = mapped_column(String(10))  # good | bad: the label of its first memories
    model: Mapped[str] = mapped_column(String(80))  # its name; in an imported society it may be unregistered
    model_id: Mapped[int | None] = mapped_column(ForeignKey("language_model.id"), index=True)
    first_memories: Mapped[list[int]] = mapped_column(Json)  # positions in the society's priors of that label


class SocietyInteraction(Model):
    """One agent's interaction in one iteration. Each column is filled as soon as it is known.

    Recalls, feedback and observations are in the format of `app/society/store.py`.
    """

    __tablename__ = "society_interaction"
    __table_args__ = (
        UniqueConstraint("society_id", "iteration", "agent"),
        Index("ix_society_interaction_status", "society_id", "status"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    society_id: Mapped[int] = mapped_column(ForeignKey("society.id", ondelete="CASCADE"))
    iteration: Mapped[int]  # from 0
    agent: Mapped[int]
    status: Mapped[str] = mapped_column(String(10))  # open | done | failed
    question: Mapped[str] = mapped_column(Text)
    recall: Mapped[dict[str, Any] | None] = mapped_column(Json)
    draft: Mapped[str | None] = mapped_column(Text)
    feedback: Mapped[list[dict[str, Any]] | None] = mapped_column(Json)
    revision: Mapped[str | None] = mapped_column(Text)
    # Means over the readable ratings of observers, from 1 to 7; `observations` has the texts of all.
    alignment_before: Mapped[float | None]
    engagement_before: Mapped[float | None]
    alignment_after: Mapped[float | None]
    engagement_after: Mapped[float | None]
    observations: Mapped[dict[str, list[str]] | None] = mapped_column(Json)
    error: Mapped[str | None] = mapped_column(Text)  # why it failed
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
