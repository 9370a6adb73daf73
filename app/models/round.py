"""Self-play rounds: what is to be played, the progress, and which worker plays which part."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.job import JobMixin, LeaseMixin
from app.models.types import Json, UtcDateTime


class RoundRow(JobMixin, Model):
    """A batch of matches of one game, with the models of both seats. The counts are of what has been committed."""

    __tablename__ = "round"
    __table_args__ = (Index("ix_round_to_play", "status", "queued"),)

    name: Mapped[str] = mapped_column(String(120))
    game: Mapped[str] = mapped_column(String(40), index=True)
    source: Mapped[str] = mapped_column(String(20))  # selfplay | import
    matrix_id: Mapped[int | None] = mapped_column(index=True)  # the first round of the cross-play that it is part of

    config: Mapped[dict[str, Any]] = mapped_column(Json)  # what all matches have in common
    model_0_id: Mapped[int | None] = mapped_column(ForeignKey("language_model.id"), index=True)
    model_1_id: Mapped[int | None] = mapped_column(ForeignKey("language_model.id"), index=True)
    matches: Mapped[int]  # the planned number
    seed: Mapped[int] = mapped_column(BigInteger)
    swap_seats: Mapped[bool] = mapped_column(default=False)
    pick: Mapped[str] = mapped_column(String(10))  # in-order | shuffled | random: how matches get their material
    sampling: Mapped[dict[str, Any]] = mapped_column(Json)  # overrides of the models' own options
    prompts: Mapped[list[str | None] | None] = mapped_column(Json)  # NAME@VERSION of both models; None: neither has one
    talk_of: Mapped[int | None]  # the round whose messages models read instead of their partners'

    finished: Mapped[int] = mapped_column(default=0)
    aborted: Mapped[int] = mapped_column(default=0)
    moves: Mapped[int] = mapped_column(default=0)
    violations: Mapped[int] = mapped_column(default=0)
    lenient_moves: Mapped[int] = mapped_column(default=0, server_default="0")  # moves that were read leniently
    calls: Mapped[int] = mapped_column(default=0)  # of language models, retries included
    failed_calls: Mapped[int] = mapped_column(default=0)
    prompt_tokens: Mapped[int] = mapped_column(BigInteger, default=0)
    completion_tokens: Mapped[int] = mapped_column(BigInteger, default=0)
    # Of answers whose server counts none; 0 in jobs from before tokens were estimated.
    estimated_tokens: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    cost: Mapped[float] = mapped_column(default=0.0)  # USD, as far as known, at the prices when it began
    unpriced_calls: Mapped[int | None] = mapped_column(default=0)  # None: from before they were counted
    # USD per million tokens when it began, by the number of the API model: the fields of jobs.call_costs.Prices in
    # their order, of which an earlier release wrote the first two.
    prices: Mapped[dict[str, list[float | None]] | None] = mapped_column(Json)
    # The names that its models' servers gave for them, in order of appearance, by the number of the model.
    returned_models: Mapped[dict[str, list[str]] | None] = mapped_column(Json)
    # A model that gives no answer: which one, since when, and when workers are to try again. Until then nobody plays.
    away_model_id: Mapped[int | None]  # one of the two above
    away_since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    retry_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class RoundMaterial(Model):
    """The material of a round's matches: contexts or target words, stored so that every worker has the same."""

    __tablename__ = "round_material"

    round_id: Mapped[int] = mapped_column(ForeignKey("round.id", ondelete="CASCADE"), primary_key=True)
    source: Mapped[str] = mapped_column(String(300))  # where it was read from
    items: Mapped[list[Any]] = mapped_column(Json)


class RoundRange(LeaseMixin, Model):
    """The matches of a round from index `start` up to but excluding `stop`. The worker that plays them holds the
    lease.
    """

    __tablename__ = "round_range"

    round_id: Mapped[int] = mapped_column(ForeignKey("round.id", ondelete="CASCADE"), primary_key=True)
    start: Mapped[int] = mapped_column(primary_key=True)
    stop: Mapped[int]
    done: Mapped[bool] = mapped_column(default=False)
