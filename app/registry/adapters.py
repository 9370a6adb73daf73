"""Adapters (LoRA) as models: their base model, and its server, which plays them beside it.

Nothing here commits.
"""

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import LanguageModel
from app.players.local.serving import SERVER, STOPPED, ServedModel, read_served


def adapter_name(row: LanguageModel) -> str:
    """The name of adapters at a server. It is never reused for others, as a server may cache results by name."""
    return f"{row.name}@{row.options['sha256'][:12]}"


def engine_of(row: LanguageModel) -> ServedModel | None:
    """The engine that plays a local model in place of workers: its own or, for adapters, that of their base.

    If its own has been stopped, it is used only where the base's takes no adapters.
    """
    own, base = read_served(row.served), row.adapter_base
    of_base = None if base is None else read_served(base.served)
    if of_base is None or of_base.lora_rank is None or (own is not None and own.state != STOPPED):
        return own
    return of_base.model_copy(update={"model": adapter_name(row), "is_adapter": True})


def find_base(session: Session, sha256: str, trained_from: LanguageModel | None = None) -> LanguageModel | None:
    """The model of the checkpoint with that hash, for which adapters were trained; None if there is none.

    Of several, it is `trained_from` or its base, else one that a server plays, else the first.
    """
    for near in filter(None, (trained_from, trained_from and trained_from.adapter_base)):
        if near.options.get("sha256") == sha256:
            return near
    local = (
        select(LanguageModel)
        .where(LanguageModel.kind == "local", LanguageModel.removed_at.is_(None))
        .order_by(LanguageModel.id)
    )
    rows = [row for row in session.scalars(local) if row.options.get("sha256") == sha256]
    return min(rows, key=lambda row: (row.archived_at is not None, row.play_with != SERVER), default=None)


def play_as_base(row: LanguageModel, trained_from: LanguageModel, rank: int) -> None:
    """Play new adapters as the model that they were trained from is played: by their base's server if it plays that
    model and takes adapters of their rank, else by workers.
    """
    engine = engine_of(row)
    if engine is None or not engine.is_adapter or trained_from.play_with != SERVER or not engine.takes(rank):
        return
    if row.adapter_base is not None and row.adapter_base.archived_at is None:
        row.play_with = SERVER
