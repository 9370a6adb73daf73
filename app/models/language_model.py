"""The registry of language models: scripted baselines, API models, and local checkpoints."""

from datetime import datetime
from typing import Any

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from app.extensions import Model
from app.models.types import Json, UtcDateTime


class LanguageModel(Model):
    """A language model that can fill a seat. `options` never holds a key, only the name of its variable."""

    __tablename__ = "language_model"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(80), unique=True)  # for experimenters
    label: Mapped[str] = mapped_column(String(80), unique=True)  # the only name that a participant may see
    kind: Mapped[str] = mapped_column(String(20))  # scripted | api | local
    games: Mapped[list[str]] = mapped_column(Json)
    options: Mapped[dict[str, Any]] = mapped_column(Json)
    prompt_style: Mapped[str | None] = mapped_column(String(20))
    usable_in_rounds: Mapped[bool] = mapped_column(default=True)
    offered_to_people: Mapped[bool] = mapped_column(default=False)  # switched on by somebody, after a passed test call
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    # The latest test call: when it was asked for, when a worker made it, and what came of it (`matches.trial`).
    test_asked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    tested_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    test_result: Mapped[dict[str, Any] | None] = mapped_column(Json)
