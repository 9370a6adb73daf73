"""Sums of calls, and stops of all spending: by whom, and what they cancelled."""

from datetime import date, datetime

from sqlalchemy import BigInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.types import Json, UtcDateTime


class SpendingStop(Model):
    """A period in which no call of a paid model begins, except in people's matches; it lasts until `ended_at`."""

    __tablename__ = "spending_stop"

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    by: Mapped[str] = mapped_column(String(80))  # the name of an experimenter, or "the command line"
    jobs: Mapped[list[list[str | int]]] = mapped_column(Json)  # the kind and number of each job that it cancelled
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)
    # None once it has ended: at most one stop is in force, and any number have ended.
    in_force: Mapped[bool | None] = mapped_column(unique=True, index=True, default=True)


class CallSum(Model):
    """The sums of a model's calls on one day for one purpose: app/spend/call_sums.py.

    Several rows may agree and are added up. No foreign keys: the sums stay when what the calls were made for is
    deleted.
    """

    __tablename__ = "call_sum"

    id: Mapped[int] = mapped_column(primary_key=True)
    last_call: Mapped[int] = mapped_column(index=True)  # the last call that was summed in the same transaction
    day: Mapped[date] = mapped_column(index=True)  # in UTC
    model_id: Mapped[int | None] = mapped_column(index=True)
    kind: Mapped[str] = mapped_column(String(20))  # the kind of what they were made for
    number: Mapped[int | None]

    calls: Mapped[int]
    failed: Mapped[int]  # calls without an answer
    costless: Mapped[int]  # answered calls without a stored cost
    cost: Mapped[float]  # US dollars, of all calls that have one
    prompt_tokens: Mapped[int] = mapped_column(BigInteger)
    completion_tokens: Mapped[int] = mapped_column(BigInteger)
    estimated_tokens: Mapped[int] = mapped_column(BigInteger)
    # For calls without a stored cost only:
    unpriced_estimate: Mapped[int] = mapped_column(BigInteger)
    unpriced_prompt: Mapped[int] = mapped_column(BigInteger)
    unpriced_completion: Mapped[int] = mapped_column(BigInteger)
    unpriced_cached: Mapped[int] = mapped_column(BigInteger)
    unpriced_cache_write: Mapped[int] = mapped_column(BigInteger)
    unpriced_reasoning: Mapped[int] = mapped_column(BigInteger)
