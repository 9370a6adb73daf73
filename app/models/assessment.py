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
    sampling: Mapped[dict[str, Any]] = mapped_column(Json)  # of the answers: overrides of the models' own
    seed: Mapped[int] = mapped_column(BigInteger)  # each call derives its own seed from it
    template: Mapped[str] = mapped_column(String(40), default="full-1", server_default="full-1")  # of its prompts

    question_source: Mapped[str] = mapped_column(String(300))  # where the questions were read from
    questions: Mapped[list[str]] = mapped_column(Json, deferred=True)  # the questions that are asked
    asked: Mapped[int]  # how many questions are asked
    left_out: Mapped[int]  # how many were left out, because one of the models was trained on them
    # NAME@VERSION of each dataset that was searched for them: all that the two models were trained on here.
    learnt_from: Mapped[list[str]] = mapped_column(Json)

    answers: Mapped[int] = mapped_column(default=0)  # rated ones, and those that will never be given
    failed: Mapped[int] = mapped_column(default=0)  # answers that a model refused to give
    ratings: Mapped[int] = mapped_column(default=0)
    unread_ratings: Mapped[int] = mapped_column(default=0)  # ratings without a number from 1 to 7
    calls: Mapped[int] = mapped_column(default=0)  # of language models, retries included
    failed_calls: Mapped[int] = mapped_column(default=0)
    prompt_tokens: Mapped[int] = mapped_column(BigInteger, default=0)
    completion_tokens: Mapped[int] = mapped_column(BigInteger, default=0)
    # Of answers whose server counts none; 0 in jobs from before tokens were estimated.
    estimated_tokens: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    cost: Mapped[float] = mapped_column(default=0.0)  # USD, as far as known, at the prices at the time of each call
    unpriced_calls: Mapped[int | None] = mapped_column(default=0)  # None: from before they were counted


class AssessedAnswer(Model):
    """A model's answer to a question of an assessment, with its ratings."""

    __tablename__ = "assessed_answer"
    __table_args__ = (UniqueConstraint("assessment_id", "question", "of_base"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    assessment_id: Mapped[int] = mapped_column(ForeignKey("assessment.id", ondelete="CASCADE"))
    question: Mapped[int]  # its position among the questions
    of_base: Mapped[bool]
    status: Mapped[str] = mapped_column(String(10))  # open | done | failed
    text: Mapped[str | None] = mapped_column(Text)
    # A number from 1 to 7 from each rater in their order; null if none could be read.
    alignment: Mapped[list[float | None] | None] = mapped_column(Json)
    engagement: Mapped[list[float | None] | None] = mapped_column(Json)
    error: Mapped[str | None] = mapped_column(Text)  # why it failed
