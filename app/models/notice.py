"""Notices to experimenters, waiting to be sent or sent."""

from datetime import datetime

from sqlalchemy import ForeignKey, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.types import UtcDateTime


class Notice(Model):
    """One notice to one recipient by one channel, in an outbox. It holds no words of people and nothing secret."""

    __tablename__ = "notice"
    __table_args__ = (UniqueConstraint("cause", "recipient", "channel"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    cause: Mapped[str] = mapped_column(String(200))  # what is reported once, such as one failure of one job
    recipient: Mapped[str] = mapped_column(String(90))  # an experimenter's name; empty: the whole installation's
    user_id: Mapped[int | None] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"), index=True)
    channel: Mapped[str] = mapped_column(String(10))  # mail | webhook
    kind: Mapped[str] = mapped_column(String(10))  # one of app/notices/causes.py
    text: Mapped[str] = mapped_column(Text)  # one line, in English
    path: Mapped[str] = mapped_column(String(200))  # of the page that it links to
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    status: Mapped[str] = mapped_column(String(10), index=True)  # waiting | sent | failed | dismissed
    batch: Mapped[str | None] = mapped_column(String(32), index=True)  # notices that are sent together, on each try
    tries: Mapped[int] = mapped_column(default=0)
    due_at: Mapped[datetime] = mapped_column(UtcDateTime)  # the next try
    sent_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    error: Mapped[str | None] = mapped_column(Text)  # why the last try failed
