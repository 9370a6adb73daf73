"""Publications of models and datasets, the people whose games they hold, and declared licences."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.job import JobMixin, LeaseMixin
from app.models.types import Json, UtcDateTime


class Publication(JobMixin, LeaseMixin, Model):
    """A push of a model or of a dataset. The row stays, so that a person can be told what held their games."""

    __tablename__ = "publication"
    __table_args__ = (Index("ix_publication_to_run", "status", "queued"),)

    spec: Mapped[dict[str, Any]] = mapped_column(Json)  # what was asked for: a PublicationSpec
    language_model_id: Mapped[int | None] = mapped_column(ForeignKey("language_model.id"), index=True)
    dataset_id: Mapped[int | None] = mapped_column(ForeignKey("dataset.id"), index=True)
    name: Mapped[str] = mapped_column(String(120))  # the name, at that time, of what is pushed
    target: Mapped[str] = mapped_column(String(400))  # OWNER/NAME at the hub, or a folder
    licence: Mapped[str] = mapped_column(String(60))
    size: Mapped[int] = mapped_column(BigInteger)  # bytes of all files
    files: Mapped[int]
    manifest: Mapped[str | None] = mapped_column(String(64))  # the hash of its manifest, once files are sent
    sent_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # since when parts of it may be out
    revision: Mapped[str | None] = mapped_column(String(100))  # the commit that it became at the hub


class PublishedPerson(Model):
    """A person whose games are in a push, or in what its weights learned from. Written before the first byte is
    sent.
    """

    __tablename__ = "published_person"

    publication_id: Mapped[int] = mapped_column(ForeignKey("publication.id", ondelete="CASCADE"), primary_key=True)
    participant_id: Mapped[int] = mapped_column(
        ForeignKey("participant.id", ondelete="CASCADE"), primary_key=True, index=True
    )


class ReleasePermission(Model):
    """An experimenter's declaration for a model or dataset from elsewhere: its licence, and why it may be passed on."""

    __tablename__ = "release_permission"

    id: Mapped[int] = mapped_column(primary_key=True)
    language_model_id: Mapped[int | None] = mapped_column(ForeignKey("language_model.id"), index=True)
    dataset_id: Mapped[int | None] = mapped_column(ForeignKey("dataset.id"), index=True)
    licence: Mapped[str] = mapped_column(String(60))
    reason: Mapped[str] = mapped_column(Text)
    by: Mapped[str | None] = mapped_column(String(80))  # None: at a command line
    at: Mapped[datetime] = mapped_column(UtcDateTime)
