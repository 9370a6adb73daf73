"""The engine of a local model, in its registry row: who watches it, its state, and who plays with it.

Nothing here commits. A command that watches an engine holds the row until `watched_until`, and renews that.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Invalid, Phrase, either, shown
from app.models import LanguageModel
from app.players.local.serving import PLAY_WITH, SERVER, STOPPED, WATCHED_FOR, ServedModel, read_served
from app.registry import check_not_archived, get_model
from app.registry.adapters import engine_of


def check_can_be_served(row: LanguageModel, now: datetime) -> None:
    """Raises Invalid for a model that is not local, Conflict for one that is archived or served already."""
    if row.kind != "local":
        raise Invalid(
            "model",
            expected=Phrase("a local model"),
            got=Phrase("%(name)s, which is %(kind)s", name=shown(row.name), kind=row.kind),
        )
    check_not_archived(row)
    served = read_served(row.served)
    if served is not None and served.is_watched(now):
        raise Conflict(
            "model",
            expected=Phrase("one that is not served yet"),
            got=Phrase("%(name)s, which is at %(address)s", name=shown(row.name), address=served.base_url),
            remedy=Phrase("stop the command that serves it"),
        )


def begin(session: Session, name: str, served: ServedModel) -> None:
    """Record that a command begins to watch a model's engine. Raises as `check_can_be_served`, and NotFound."""
    row = _locked_model_row(session, get_model(session, name).id)
    check_can_be_served(row, datetime.now(UTC))
    before = read_served(row.served)
    row.served = _served_as_json(served.model_copy(update={"seen_at": before.seen_at if before else None}))


def update(session: Session, number: int, watcher: str, **changes: Any) -> bool:
    """Update what the command that watches an engine knows about it; False if another command watches it now."""
    row = _locked_model_row(session, number)
    served = read_served(row.served)
    if served is None or served.watcher != watcher:
        return False
    now = datetime.now(UTC)
    if changes.get("state", served.state) != served.state:
        changes["since"] = now
    row.served = _served_as_json(served.model_copy(update={**changes, "watched_until": now + WATCHED_FOR}))
    return True


def end(session: Session, number: int, watcher: str, error: str | None = None) -> None:
    """Record that the command ends. For an engine that has never answered, nothing is kept."""
    if update(session, number, watcher, state=STOPPED, **({} if error is None else {"error": error})):
        row = _locked_model_row(session, number)
        served = read_served(row.served)
        if served is not None and served.seen_at is None:
            row.served = None


def set_play_with(session: Session, name: str, play_with: str) -> None:
    """Switch new calls of a local model to workers or to its server.

    Raises NotFound, Invalid for a model that is not local, and Conflict for one for which no server has ever answered,
    or whose base, the server of which would play it, is archived.
    """
    row = get_model(session, name)
    if play_with not in PLAY_WITH:
        raise Invalid("play_with", expected=either(PLAY_WITH), got=play_with)
    if row.kind != "local":
        raise Invalid(
            "play_with",
            expected=Phrase("it for a local model only"),
            got=Phrase("%(name)s, which is %(kind)s", name=shown(row.name), kind=row.kind),
        )
    if play_with == SERVER and not may_play_with_server(row):
        raise Conflict(
            "play_with",
            expected=Phrase("a model that was served"),
            got=Phrase("%(name)s, which never was", name=shown(row.name)),
            remedy=Phrase("`flask model serve %(name)s` serves it", name=row.name),
        )
    engine = engine_of(row)
    if play_with == SERVER and engine is not None and engine.is_adapter and row.adapter_base is not None:
        check_not_archived(row.adapter_base)
    row.play_with = play_with


def may_play_with_server(row: LanguageModel) -> bool:
    """Whether an engine has ever answered for the model or, for adapters, for their base, and takes adapters."""
    served = engine_of(row)
    return served is not None and served.seen_at is not None


def _locked_model_row(session: Session, number: int) -> LanguageModel:
    """The row, locked against changes by others until the transaction ends."""
    every = select(LanguageModel).where(LanguageModel.id == number)
    return session.scalars(every.with_for_update(key_share=True).execution_options(populate_existing=True)).one()


def _served_as_json(served: ServedModel) -> dict[str, Any]:
    return served.model_dump(mode="json")
