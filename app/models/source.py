"""What the source of an imported match had that its event log cannot hold."""

from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.match import MATCH_ID
from app.models.types import Json


class MatchSource(Model):
    """The facts of an imported match that are needed to write it back unchanged. docs/formats.md says what they are."""

    __tablename__ = "match_source"

    match_id: Mapped[str] = mapped_column(MATCH_ID, ForeignKey("match.id", ondelete="CASCADE"), primary_key=True)
    facts: Mapped[dict[str, Any]] = mapped_column(Json)
