"""What leaves the server towards one seat: the protocol's `view`, and the `change` between two of them. Pure.

docs/protocol.md describes both. Everything here is made from `Game.view`, which never holds what the seat may not
know, so nothing private can leak by a slip further out.
"""

from collections.abc import Sequence
from typing import Any

from app.games.base import JSON
from app.matches.engine import Match

_ALWAYS = ("match", "ply")


def seat_view(match_id: str, match: Match, times: Sequence[str], seat: int, clock: JSON | None = None) -> JSON:
    """The whole view of a seat. `times` are the moments of the accepted moves, ISO 8601 in UTC, by ply."""
    view = match.view(seat)
    return {
        "match": match_id,
        "game": view.game,
        "role": view.role,
        "status": "over" if match.over else "playing",
        "ply": view.ply,
        "to_move": view.to_move,
        "transcript": [
            {"ply": entry.ply, "by": entry.by, "kind": entry.kind, "text": entry.text, "at": times[entry.ply]}
            for entry in view.transcript
        ],
        "facts": view.facts,
        "secret": view.secret,
        "may": list(view.may),
        "clock": clock,
        "outcome": _outcome(match, seat),
    }


def change(before: JSON, after: JSON) -> JSON:
    """What a client that holds `before` needs to hold `after`: new or revealed entries, and the fields that differ."""
    known = before["transcript"]
    entries = [
        entry
        for number, entry in enumerate(after["transcript"])
        if number >= len(known) or entry["text"] != known[number]["text"]
    ]
    fields: dict[str, Any] = {name: value for name, value in after.items() if before[name] != value}
    return {**{name: after[name] for name in _ALWAYS}, **fields, "transcript": entries}


def _outcome(match: Match, seat: int) -> JSON | None:
    if match.ended is None:
        return None
    winner = match.ended.winner
    return {
        "reason": match.ended.reason,
        "winner": None if winner is None else "you" if winner == seat else "partner",
        "utility": match.ended.utilities[seat],
        "partner_utility": match.ended.utilities[1 - seat],
    }
