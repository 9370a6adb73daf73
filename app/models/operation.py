"""Named leases for loops of which only one may run, outages of the server, and accepted forms."""

from datetime import datetime
from typing import Any

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.types import Json, UtcDateTime


class Lease(Model):
    """The process that may run a named loop, and until when."""

    __tablename__ = "lease"

    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    owner: Mapped[str] = mapped_column(String(80))
    until: Mapped[datetime] = mapped_column(UtcDateTime)


class Outage(Model):
    """A time in which no web process served people."""

    __tablename__ = "outage"

    id: Mapped[int] = mapped_column(primary_key=True)
    began: Mapped[datetime] = mapped_column(UtcDateTime)  # the last heartbeat before it
    ended: Mapped[datetime] = mapped_column(UtcDateTime, index=True)


class FormRequest(Model):
    """An accepted form, by the hash of its key and content, and its result: sending it again has no effect."""

    __tablename__ = "form_request"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    result: Mapped[Any | None] = mapped_column(Json)
