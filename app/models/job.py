"""Columns shared by the tables of all jobs. `app/jobs` is the one lifecycle that changes them."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.types import UtcDateTime


class JobMixin:
    """A long task of a worker that can be watched, cancelled and resumed."""

    id: Mapped[int] = mapped_column(primary_key=True)
    status: Mapped[str] = mapped_column(String(10))  # one of app/jobs/states.py
    queued: Mapped[bool] = mapped_column(default=False)  # whether workers run it; otherwise whoever started it does
    # The experimenter who requested it on a page; the name outlives the user. None: a command line, or unknown.
    requested_by_id: Mapped[int | None] = mapped_column(ForeignKey("user.id", ondelete="SET NULL"), index=True)
    requested_by: Mapped[str | None] = mapped_column(String(80))
    error: Mapped[str | None] = mapped_column(Text)  # why it failed, or what it waits for
    # Limits on the cost and the tokens of its model calls, as requested, or as given when it was resumed.
    budget_usd: Mapped[float | None]
    budget_tokens: Mapped[int | None] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    enqueued_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # when workers were last sent a message about it
    removed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # when what it made was removed; see Removal


class LeaseMixin:
    """A row that one worker at a time works on: the holder of its lease."""

    lease_owner: Mapped[str | None] = mapped_column(String(80))
    lease_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    lease_count: Mapped[int] = mapped_column(default=0)  # leases that ran out since the last progress
