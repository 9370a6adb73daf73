"""Campaigns: rounds in a loop. Play, filter, train, register, evaluate, and again with what came of it."""

from typing import Any

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.job import JobMixin, LeaseMixin
from app.models.types import Json


class Campaign(JobMixin, LeaseMixin, Model):
    """A loop that somebody asked for. Whoever takes its next step holds the lease while that step lasts."""

    __tablename__ = "campaign"
    __table_args__ = (Index("ix_campaign_to_run", "status", "queued"),)

    name: Mapped[str] = mapped_column(String(80))
    game: Mapped[str] = mapped_column(String(40))
    base_id: Mapped[int] = mapped_column(ForeignKey("language_model.id"), index=True)
    spec: Mapped[dict[str, Any]] = mapped_column(Json)  # what was asked for, with nothing left open
    # Contexts or words to `play` and `held_out`: thousands, so they are read only where a round is made of them.
    material: Mapped[dict[str, list[Any]]] = mapped_column(Json, deferred=True)
    iterations: Mapped[int]


class CampaignIteration(Model):
    """The results of an iteration of a campaign so far. Number 0 is the base, which is only evaluated."""

    __tablename__ = "campaign_iteration"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    # With itself, or the teacher's; none where the iteration learns from a dataset that was there before.
    round_id: Mapped[int | None] = mapped_column(ForeignKey("round.id"), index=True)
    dataset_id: Mapped[int | None] = mapped_column(ForeignKey("dataset.id"), index=True)
    job_id: Mapped[int | None] = mapped_column(ForeignKey("training_job.id"), index=True)
    model_id: Mapped[int | None] = mapped_column(ForeignKey("language_model.id"), index=True)
    evaluation_id: Mapped[int | None] = mapped_column(ForeignKey("round.id"), index=True)
    figures: Mapped[dict[str, Any] | None] = mapped_column(Json)  # of the evaluation, once it is over


class CampaignRound(Model):
    """A round of an iteration's model with a partner that it learns in the matches with, beside the one with itself."""

    __tablename__ = "campaign_round"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), primary_key=True)
    iteration: Mapped[int] = mapped_column(primary_key=True)
    partner: Mapped[str] = mapped_column(String(80), primary_key=True)  # its name in the registry
    round_id: Mapped[int] = mapped_column(ForeignKey("round.id"), index=True)


class CampaignEvaluation(Model):
    """A further evaluation of an iteration's model: at another temperature, or against a fixed opponent.

    The one in the manner in which the campaign's rounds are played is the iteration's own.
    """

    __tablename__ = "campaign_evaluation"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), primary_key=True)
    iteration: Mapped[int] = mapped_column(primary_key=True)
    label: Mapped[str] = mapped_column(String(100), primary_key=True)  # greedy | temperature 0.5 | against scripted
    round_id: Mapped[int] = mapped_column(ForeignKey("round.id"), index=True)
    figures: Mapped[dict[str, Any] | None] = mapped_column(Json)  # once it is over
