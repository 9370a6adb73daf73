"""Datasets: rows made from matches for training, and which seat of which match each row came from."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, String, UniqueConstraint, true
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.match import MATCH_ID
from app.models.types import Json, UtcDateTime


class Dataset(Model):
    """A version of a dataset. Its rows are in a file that is named after the hash of its bytes and never changes."""

    __tablename__ = "dataset"
    __table_args__ = (UniqueConstraint("name", "version"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(80))
    version: Mapped[int]  # from 1
    kind: Mapped[str] = mapped_column(String(20), server_default="conversations")  # | comparisons
    spec: Mapped[dict[str, Any]] = mapped_column(Json)  # what was asked for, fully resolved
    sha256: Mapped[str] = mapped_column(String(64), index=True)
    size: Mapped[int] = mapped_column(BigInteger)  # bytes
    rows: Mapped[int]
    words: Mapped[int] = mapped_column(BigInteger)  # in all messages
    own_words: Mapped[int] = mapped_column(BigInteger)  # in the moves to be learned
    # Counts for its page, made while it was built: long, so nothing else reads them.
    figures: Mapped[dict[str, Any]] = mapped_column(Json, deferred=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    complete: Mapped[bool] = mapped_column(server_default=true())  # whether all its rows are stored; else it is hidden
    # Since when no training may use it, because a person in it withdrew their consent; its file is deleted.
    unusable_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    removed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # when its file was removed; see Removal

    @property
    def reference(self) -> str:
        """NAME@VERSION."""
        return f"{self.name}@{self.version}"


class DatasetRow(Model):
    """The origin of a dataset's row. `place` is its line in the file, from 0; the match is None for a row without
    one.
    """

    __tablename__ = "dataset_row"

    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.id", ondelete="CASCADE"), primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True)
    match_id: Mapped[str | None] = mapped_column(MATCH_ID, ForeignKey("match.id"), index=True)
    seat: Mapped[int | None]
