"""Recipes: runs of experiments that consist of many jobs, and each of their steps that has begun."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.job import JobMixin, LeaseMixin
from app.models.types import Json, UtcDateTime


class RecipeRun(JobMixin, LeaseMixin, Model):
    """A run of a recipe with its inputs. The worker that takes its next step holds the lease while that step lasts."""

    __tablename__ = "recipe_run"
    __table_args__ = (Index("ix_recipe_run_to_run", "status", "queued"),)

    name: Mapped[str] = mapped_column(String(40))  # its models are called NAME-STEP
    recipe: Mapped[str] = mapped_column(String(40))  # the recipe's name in its file
    spec: Mapped[dict[str, Any]] = mapped_column(Json)  # what was asked for, with all inputs
    steps: Mapped[int]  # the number of steps, loop iterations counted
    models: Mapped[list[str]] = mapped_column(Json)  # registered models that its steps name
    # The recipe as JSON in the order of the file, which PostgreSQL would not keep; then its text, and other files'
    # texts.
    document: Mapped[str] = mapped_column(Text, deferred=True)
    text: Mapped[str] = mapped_column(Text, deferred=True)
    files: Mapped[dict[str, str]] = mapped_column(Json, deferred=True)


class RecipeStep(Model):
    """A step of a run, a campaign or an alignment, in one turn of its loops.

    It names the job that was created with this row, or the step's result.
    """

    __tablename__ = "recipe_step"
    __table_args__ = (
        UniqueConstraint("run_id", "key"),
        UniqueConstraint("campaign_id", "key"),
        UniqueConstraint("alignment_id", "key"),
        Index("ix_recipe_step_job", "kind", "number"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    # What the step belongs to: one of these.
    run_id: Mapped[int | None] = mapped_column(ForeignKey("recipe_run.id", ondelete="CASCADE"))
    campaign_id: Mapped[int | None] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"))
    alignment_id: Mapped[int | None] = mapped_column(ForeignKey("alignment.id", ondelete="CASCADE"))
    key: Mapped[str] = mapped_column(String(500))  # its name and the values of its loops
    place: Mapped[int]  # position among the steps of the run
    name: Mapped[str] = mapped_column(String(40))
    values: Mapped[dict[str, Any]] = mapped_column(Json)  # the values of its loops' variables
    spec: Mapped[dict[str, Any]] = mapped_column(Json)  # the spec that it ran with
    kind: Mapped[str | None] = mapped_column(String(20))  # kind and number of its job; None if it has none
    number: Mapped[int | None]
    dataset_id: Mapped[int | None] = mapped_column(ForeignKey("dataset.id"), index=True)
    realignment_id: Mapped[int | None] = mapped_column(ForeignKey("dataset.id"), index=True)
    figures: Mapped[dict[str, Any] | None] = mapped_column(Json)  # by name; for a table its columns and rows
    begun_at: Mapped[datetime] = mapped_column(UtcDateTime)
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # when all its results were there
