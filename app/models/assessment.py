"""Assessments: two models answer the same held-out questions, and raters rate every answer."""

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.job import JobMixin, LeaseMixin
from app.models.types import Json


class Assessment(JobMixin, LeaseMixin, Model):
    """A model and the one that it is compared with. The counts are of what has been committed."""

    __tablename__ = "assessment"
    __table_args__ = (Index("ix_assessment_to_run", "status", "queued"),)

    spec: Mapped[dict[str, Any] | None] = mapped_column(Json)  # what was asked for, as the spec of its kind
    model_id: Mapped[int] = mapped_column(ForeignKey("language_model.id"), index=True)
    base_id: Mapped[int] = mapped_column(ForeignKey("language_model.id"), index=True)
    raters: Mapped[list[dict[str, Any]]] = mapped_column(Json)  # {"model_id", "model"} of each
    sampling: Mapped[dict[str, Any]] = mapped_column(Json)  # of the answers: what differs from the models' own
    seed: Mapped[int] = mapped_column(BigInteger)  # each call has its own by it
    template: Mapped[str] = mapped_column(String(40), default="full-1", server_default="full-1")  # of its prompts

    question_source: Mapped[str] = mapped_column(String(300))  # where the questions were read from
    questions: Mapped[list[str]] = mapped_column(Json, deferred=True)  # those that are asked
    asked: Mapped[int]  # how many these are
    left_out: Mapped[int]  # how many were left out, because one of the models was trained on them
    # NAME@VERSION of each dataset in which they were looked for: all that the two models were trained on here.
    learnt_from: Mapped[list[str]] = mapped_column(Json)

    answers: Mapped[int] = mapped_column(default=0)  # that are rated, or will never be given
    failed: Mapped[int] = mapped_column(default=0)  # those of them that a model refused to give
    ratings: Mapped[int] = mapped_column(default=0)
    unread_ratings: Mapped[int] = mapped_column(default=0)  # those of them that held no number from 1 to 7
    calls: Mapped[int] = mapped_column(default=0)  # of language models, retries counted
    failed_calls: Mapped[int] = mapped_column(default=0)
    prompt_tokens: Mapped[int] = mapped_column(BigInteger, default=0)
    completion_tokens: Mapped[int] = mapped_column(BigInteger, default=0)
    # Of answers whose server counts none; 0 in jobs of before they were estimated.
    estimated_tokens: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    cost: Mapped[float] = mapped_column(default=0.0)  # USD, as far as known, by the prices of when each call was made
    unpriced_calls: Mapped[int | None] = mapped_column(default=0)  # None: of before they were counted


class AssessedAnswer(Model):
    """A model's answer to a question of an assessment, with its ratings."""

    __tablename__ = "assessed_answer"
    __table_args__ = (UniqueConstraint("assessment_id", "question", "of_base"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    assessment_id: Mapped[int] = mapped_column(ForeignKey("assessment.id", ondelete="CASCADE"))
    question: Mapped[int]  # its place among the questions
    of_base: Mapped[bool]
    status: Mapped[str] = mapped_column(String(10))  # open | done | failed
    text: Mapped[str | None] = mapped_column(Text)
    # A number of 1 to 7 from each rater in their order, or null where none could be read.
    alignment: Mapped[list[float | None] | None] = mapped_column(Json)
    engagement: Mapped[list[float | None] | None] = mapped_column(Json)
    error: Mapped[str | None] = mapped_column(Text)  # why it failed
