"""System prompts and personas: named texts with versions that never change."""

from datetime import datetime

from sqlalchemy import String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.types import UtcDateTime


class PromptRow(Model):
    """One version of a prompt. A different text is a different version."""

    __tablename__ = "prompt"
    __table_args__ = (UniqueConstraint("name", "version"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(40))
    version: Mapped[int]  # from 1
    text: Mapped[str] = mapped_column(Text)
    sha256: Mapped[str] = mapped_column(String(64))  # of the text in UTF-8
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_by: Mapped[str] = mapped_column(String(80))  # the name of an experimenter, or "the command line"

    @property
    def reference(self) -> str:
        """NAME@VERSION."""
        return f"{self.name}@{self.version}"
