"""How long a move took: for a person by the browser's clock, for a model relative to when its reply was due. Pure.

Stored with the moves of study matches. docs/protocol.md says what each of a person's figures means.
"""

from datetime import datetime
from typing import Any

from app.core.errors import Invalid, Verbatim, shown
from app.matches.options import ReplyTarget

LONGEST = 7 * 24 * 3600 * 1000  # milliseconds
MOST = 1_000_000  # characters, keys
MILLISECONDS = ("first_input", "typing", "sent", "hidden")
COUNTS = (
    "ahead", "keys", "typed", "deleted", "pastes", "pasted", "dropped", "dictated", "replaced", "hides", "restored",
)  # fmt: skip
_MOST_OF = {**dict.fromkeys(MILLISECONDS, LONGEST), **dict.fromkeys(COUNTS, MOST)}


def read_timing(raw: Any) -> dict[str, float] | None:
    """The measurements that a page sent with a move, without unknown fields. Raises Invalid for a bad measurement."""
    if raw is None:
        return None
    if not isinstance(raw, dict):
        raise Invalid("timing", expected="an object", got=Verbatim(shown(raw)))
    return {name: _read_seconds(name, raw[name]) for name in _MOST_OF if raw.get(name) is not None}


def reply_timing(target: ReplyTarget, text: str, asked_at: datetime, now: datetime) -> dict[str, float]:
    """When a reply was due, in seconds after the move that it answers, and how many seconds later than that it came."""
    due = target.seconds(text)
    return {"target": round(due, 3), "late": round(max(0.0, (now - asked_at).total_seconds() - due), 3)}


def _read_seconds(name: str, value: Any) -> float:
    most = _MOST_OF[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise Invalid(f"timing.{name}", expected=f"a number from 0 to {most}", got=Verbatim(shown(value)))
    return value if isinstance(value, int) else round(value, 1)
