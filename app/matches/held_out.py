"""Material that studies hold out: what people play on there no model is to have been trained on."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.games import find_game
from app.models import StudyVersion, Wave


def held_out_keys(session: Session, game: str) -> frozenset[str]:
    """The pieces of a game that a study holds out of which a wave was opened, by `piece_key`."""
    opened = select(Wave.study_version_id)
    found: set[str] = set()
    for stored in session.scalars(select(StudyVersion.design).where(StudyVersion.id.in_(opened))):
        written = json.loads(stored["design"])
        if written["game"] == game and written.get("material", {}).get("held_out", True):
            found.update(piece_key(game, piece) for piece in stored["material"])
    return frozenset(found)


def piece_key(game: str, piece: Any) -> str:
    """Text that is the same for pieces of which all or none are held out."""
    kind = find_game(game).material
    return json.dumps(piece if kind is None else kind.held_out_key(piece))


def is_on(game: str, config: Mapping[str, Any], keys: Collection[str]) -> bool:
    """Whether a match with that config was played on one of the pieces."""
    kind = find_game(game).material
    piece = None if kind is None or not keys else kind.piece_of(config)
    return piece is not None and piece_key(game, piece) in keys
