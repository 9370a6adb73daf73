"""The seats that this browser holds, in its signed session cookie, so that a refresh or second tab finds its match."""

from typing import cast

from flask import current_app, session

from app.core.config import Settings
from app.core.errors import NotAllowed, Phrase

_MOST = 20  # a cookie holds about 4 kB


def settings() -> Settings:
    """The settings of the running app."""
    return cast(Settings, current_app.config["SETTINGS"])


def held() -> dict[str, int]:
    """Match id → seat, the latest last."""
    return dict(session.get("seats", {}))


def hold(match_id: str, seat: int) -> None:
    """Remember a seat, and drop the oldest ones that no longer fit."""
    seats = held()
    seats.pop(match_id, None)
    seats[match_id] = seat
    session["seats"] = dict(list(seats.items())[-_MOST:])
    session.permanent = True


def seat_in(match_id: str) -> int:
    """This browser's seat in a match. Raises NotAllowed."""
    try:
        return held()[match_id]
    except KeyError:
        raise NotAllowed(Phrase("This game belongs to another browser. Open it where you began it.")) from None
