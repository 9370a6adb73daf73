"""What the server sends to one seat: the protocol's `view`, and the `change` between two of them. Pure.

docs/protocol.md describes both. Everything here is made from `Game.view`, which never holds what the seat may not know,
so no later mistake can leak anything private.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

from app.games.base import JSON, TranscriptEntry, View
from app.matches.engine import BROKEN_OFF, Match
from app.matches.options import BOTH, NOTHING

_ALWAYS = ("match", "ply")


def seat_view(
    match_id: str,
    match: Match,
    times: Sequence[str],
    seat: int,
    clock: JSON | None = None,
    known: Sequence[JSON] = (),
    partner: str | None = None,
    feedback: str = BOTH,
) -> JSON:
    """The whole view of a seat. `times` are the moments of the accepted moves, ISO 8601 in UTC, by ply.

    `partner` is what the seat is told of its partner, one of `players.description.KINDS`; None: nothing. `known` are
    the entries of an earlier view of the same seat: those that have not changed are reused. `feedback` is what the seat
    sees of the points, as named in `matches.options`.
    """
    view = match.view(seat)
    if match.over and feedback == NOTHING:
        view = _as_played(match, view)
    transcript = [
        old if old["text"] == entry.text else _entry(entry, times)
        for old, entry in zip(known, view.transcript, strict=False)
    ]
    transcript += [_entry(entry, times) for entry in view.transcript[len(transcript) :]]
    of_partner = {} if partner is None else {"partner": partner}
    return {
        "match": match_id,
        "game": view.game,
        "role": view.role,
        **of_partner,
        "status": "over" if match.over else "playing",
        "ply": view.ply,
        "to_move": view.to_move,
        "transcript": transcript,
        "facts": view.facts,
        "secret": view.secret,
        "may": list(view.may),
        "clock": clock,
        "outcome": _outcome_for_seat(match, seat, feedback),
    }


def change(before: JSON, after: JSON) -> JSON:
    """The difference that takes a client from `before` to `after`: new or revealed entries, and the fields that
    differ.
    """
    known, entries = before["transcript"], after["transcript"]
    fresh = [new for old, new in zip(known, entries, strict=False) if new is not old and new["text"] != old["text"]]
    fresh += entries[len(known) :]
    fields = {name: value for name, value in after.items() if name in _ALWAYS or before[name] != value}
    fields["transcript"] = fresh
    return fields


def _entry(entry: TranscriptEntry, times: Sequence[str]) -> JSON:
    return {"ply": entry.ply, "by": entry.by, "kind": entry.kind, "text": entry.text, "at": times[entry.ply]}


def _as_played(match: Match, view: View) -> View:
    """The view of a finished match, without what its seat was not told during play."""
    told = match.game.view(match.game.initial(match.state.config, random.Random(0)), view.seat).facts
    transcript = tuple(
        entry._replace(text=None) if entry.by == "partner" and entry.kind != "message" else entry
        for entry in view.transcript
    )
    return replace(view, transcript=transcript, facts={name: view.facts[name] for name in told})


def _outcome_for_seat(match: Match, seat: int, feedback: str) -> JSON | None:
    if match.ended is None:
        return None
    if feedback == NOTHING:
        reason = match.ended.reason
        return {"reason": reason, "winner": None} if reason in BROKEN_OFF else None
    winner = match.ended.winner
    return {
        "reason": match.ended.reason,
        "winner": None if winner is None else "you" if winner == seat else "partner",
        "utility": match.ended.utilities[seat],
        "partner_utility": match.ended.utilities[1 - seat] if feedback == BOTH else None,
    }
