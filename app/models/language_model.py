"""The registry of language models: scripted baselines, API models, and local checkpoints."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String, Text
from sqlalchemy.orm import Mapped, foreign, mapped_column, relationship

from app.core.extensions import Model
from app.models.model_request import ModelRequest
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
    offered_to_people: Mapped[bool] = mapped_column(default=False)  # switched on by hand, after a passed test call
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    uses: Mapped[list[str]] = mapped_column(Json)  # games | chat
    notes: Mapped[str] = mapped_column(Text, default="", server_default="")  # by experimenters, for experimenters
    cloned_from_id: Mapped[int | None] = mapped_column(ForeignKey("language_model.id"), index=True)
    # For adapters (LoRA): the model of the checkpoint that they were trained over, if it is in the registry.
    adapter_base_id: Mapped[int | None] = mapped_column(ForeignKey("language_model.id"), index=True)
    archived_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # since when nothing new can use it
    removed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # when its checkpoint was removed; see Removal

    served: Mapped[dict[str, Any] | None] = mapped_column(Json)  # ServedModel: the engine of a local model
    play_with: Mapped[str] = mapped_column(String(10), default="worker", server_default="worker")  # worker | server

    adapter_base: Mapped["LanguageModel | None"] = relationship(
        foreign_keys="LanguageModel.adapter_base_id",
        remote_side="LanguageModel.id",
        viewonly=True,
        lazy="selectin",
        join_depth=1,
    )

    findings: Mapped[dict[str, Any] | None] = mapped_column(Json)  # ServerFindings: what test calls found out

    # The latest test call. No foreign key: requests have one to their model, and a backup restores table by table.
    test_request_id: Mapped[int | None]
    test_request: Mapped[ModelRequest | None] = relationship(
        primaryjoin=lambda: foreign(LanguageModel.test_request_id) == ModelRequest.id, viewonly=True
    )
