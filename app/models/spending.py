"""Stops of everything that spends, by whom, and what they have cancelled."""

from datetime import datetime

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.types import Json, UtcDateTime


class SpendingStop(Model):
    """A time in which no call of a paid model begins, people's matches aside; it lasts until `ended_at`."""

    __tablename__ = "spending_stop"

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    by: Mapped[str] = mapped_column(String(80))  # the name of an experimenter, or "the command line"
    jobs: Mapped[list[list[str | int]]] = mapped_column(Json)  # the kind and number of each job that it has cancelled
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)
    # None once it has ended: of those in force there can be one, of the others any number.
    in_force: Mapped[bool | None] = mapped_column(unique=True, index=True, default=True)
