"""Campaigns: rounds in a loop. Play, filter, train, register, evaluate, and again with the resulting model.

Their steps are in `app/models/recipe.py`.
"""

from typing import Any

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.job import JobMixin, LeaseMixin
from app.models.types import Json


class Campaign(JobMixin, LeaseMixin, Model):
    """A requested loop. The worker that takes its next step holds the lease while that step lasts."""

    __tablename__ = "campaign"
    __table_args__ = (Index("ix_campaign_to_run", "status", "queued"),)

    name: Mapped[str] = mapped_column(String(80))
    game: Mapped[str] = mapped_column(String(40))
    base_id: Mapped[int] = mapped_column(ForeignKey("language_model.id"), index=True)
    spec: Mapped[dict[str, Any]] = mapped_column(Json)  # what was asked for, fully resolved
    # Contexts or words to `play` and `held_out`: thousands, so they are read only when a round is made of them.
    material: Mapped[dict[str, list[Any]]] = mapped_column(Json, deferred=True)
    iterations: Mapped[int]
