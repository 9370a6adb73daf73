"""Material that studies hold out: no model may have been trained on the pieces that people play on there."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.games import find_game
from app.models import StudyVersion, Wave


def held_out_keys(session: Session, game: str) -> frozenset[str]:
    """The `piece_key` of each piece of a game that is held out by a study with at least one opened wave."""
    opened = select(Wave.study_version_id)
    found: set[str] = set()
    for stored in session.scalars(select(StudyVersion.design).where(StudyVersion.id.in_(opened))):
        written = json.loads(stored["design"])
        if written["game"] == game and written.get("material", {}).get("held_out", True):
            found.update(piece_key(game, piece) for piece in stored["material"])
    return frozenset(found)


def piece_key(game: str, piece: Any) -> str:
    """A text that is equal for pieces that are held out together."""
    kind = find_game(game).material
    return json.dumps(piece if kind is None else kind.held_out_key(piece))


def is_on(game: str, config: Mapping[str, Any], keys: Collection[str]) -> bool:
    """Whether a match with that config was played on one of the pieces."""
    kind = find_game(game).material
    piece = None if kind is None or not keys else kind.piece_of(config)
    return piece is not None and piece_key(game, piece) in keys
