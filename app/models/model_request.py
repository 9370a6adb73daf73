"""Requests to language models that belong to no match: test calls and single questions."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.job import LeaseMixin
from app.models.types import Json, UtcDateTime


class ModelRequest(LeaseMixin, Model):
    """A chat for a model to answer. The answer is the generation that names this request."""

    __tablename__ = "model_request"
    __table_args__ = (Index("ix_model_request_to_make", "status", "created_at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    language_model_id: Mapped[int] = mapped_column(ForeignKey("language_model.id"), index=True)
    purpose: Mapped[str] = mapped_column(String(20))  # test | question | benchmark
    game: Mapped[str | None] = mapped_column(String(40))  # for a test: the game whose first move is asked for
    messages: Mapped[list[dict[str, str]]] = mapped_column(Json)
    sampling: Mapped[dict[str, Any]] = mapped_column(Json)  # overrides of the model's own
    status: Mapped[str] = mapped_column(String(10))  # waiting | running | done | failed
    result: Mapped[dict[str, Any] | None] = mapped_column(Json)  # what is shown of it
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    enqueued_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
