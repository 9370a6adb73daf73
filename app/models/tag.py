"""Tags and notes that experimenters give to jobs, models and datasets."""

from datetime import datetime

from sqlalchemy import Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.types import UtcDateTime


class Tag(Model):
    """A word for finding something: a job by its kind and number, or a model or dataset."""

    __tablename__ = "tag"
    __table_args__ = (UniqueConstraint("kind", "number", "name"), Index("ix_tag_kind_name", "kind", "name"))

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))  # the name of a kind of job; model; dataset
    number: Mapped[int]
    name: Mapped[str] = mapped_column(String(40))
    by: Mapped[str] = mapped_column(String(80))
    at: Mapped[datetime] = mapped_column(UtcDateTime)


class Note(Model):
    """What an experimenter noted about something."""

    __tablename__ = "note"
    __table_args__ = (Index("ix_note_kind_number", "kind", "number"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    number: Mapped[int]
    text: Mapped[str] = mapped_column(Text)
    by: Mapped[str] = mapped_column(String(80))
    at: Mapped[datetime] = mapped_column(UtcDateTime)
