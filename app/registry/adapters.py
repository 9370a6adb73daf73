"""Adapters (LoRA) as models: the model that they are over, and its server, which plays them beside it.

Nothing here commits.
"""

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import LanguageModel
from app.players.local.serving import SERVER, STOPPED, ServedModel, read_served


def adapter_name(row: LanguageModel) -> str:
    """The name that adapters get at a server. No others ever get it: a server may keep what it computed by a name."""
    return f"{row.name}@{row.options['sha256'][:12]}"


def engine_of(row: LanguageModel) -> ServedModel | None:
    """The engine that plays a local model for which workers do not: its own or, of adapters, their base's.

    One of its own that was stopped plays where the base's takes no adapters.
    """
    own, base = read_served(row.served), row.adapter_base
    of_base = None if base is None else read_served(base.served)
    if of_base is None or of_base.lora_rank is None or (own is not None and own.state != STOPPED):
        return own
    return of_base.model_copy(update={"model": adapter_name(row), "is_adapter": True})


def find_base(session: Session, sha256: str, trained_from: LanguageModel | None = None) -> LanguageModel | None:
    """The model of the checkpoint with that hash, over which adapters were trained; None where there is none.

    Of several it is the one that `trained_from` is or is over, else one that a server plays, else the first.
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
    """Have new adapters played as the model that they were trained from: by their base's server if that plays it and
    takes adapters of their rank, else by workers.
    """
    engine = engine_of(row)
    if engine is None or not engine.is_adapter or trained_from.play_with != SERVER or not engine.takes(rank):
        return
    if row.adapter_base is not None and row.adapter_base.archived_at is None:
        row.play_with = SERVER
