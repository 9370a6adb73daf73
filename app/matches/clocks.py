"""The clocks of a match: how long a person has for a turn, and how long the match may take. Pure.

Both are in the match's first event, and a deadline follows from them and from the times in the log. So nothing has to
be counted down: a restarted server computes the same deadline, and whoever checks first after it ends the match.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from app.core.errors import Invalid, Phrase

TURN, MATCH = "turn", "match"
IDLE = "idle"  # not a visible clock: how long a match may stay open untouched (OPEN_MATCH_HOURS)
LATE = timedelta(seconds=1)  # how long after its deadline a move that was sent in time may arrive


@dataclass(frozen=True, slots=True)
class Clocks:
    """Seconds for a person's turn and for the whole match; None: no such clock.

    Models have no turn clock: the setting TURN_SECONDS limits how long they may think.
    """

    turn: float | None = None
    match: float | None = None

    def __post_init__(self) -> None:
        for name, seconds in asdict(self).items():
            number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            if seconds is not None and not (number and seconds > 0):
                raise Invalid(
                    None, expected=Phrase("seconds above 0 or nothing"), got=seconds, subject=f"clocks.{name}"
                )

    @classmethod
    def of(cls, turn: float, match: float) -> "Clocks":
        """The clocks from two settings, in which 0 means no clock."""
        return cls(turn or None, match or None)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any] | None) -> "Clocks":
        """The clocks from `to_json`. Raises Invalid."""
        try:
            return cls(**(raw or {}))
        except TypeError:
            raise Invalid("clocks", expected=Phrase("turn and match"), got=raw) from None

    def to_json(self) -> dict[str, float] | None:
        """The clocks that are set, or None if there are none."""
        return {name: seconds for name, seconds in asdict(self).items() if seconds is not None} or None


NO_CLOCKS = Clocks()


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time at which a match ends on its own, and the clock that sets it."""

    at: datetime
    clock: str  # turn | match
    seconds: float  # the clock's full time

    def passed(self, now: datetime) -> bool:
        """Whether the match is to be ended: slightly later than the deadline shown to people."""
        return now >= self.at + LATE

    def to_json(self, now: datetime) -> dict[str, Any]:
        """The protocol's `clock`. `left` is for clients whose own clock is wrong, `total` for timing warnings."""
        at = self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        left = max(0.0, round((self.at - now).total_seconds(), 3))
        return {"deadline": at, "of": self.clock, "left": left, "total": self.seconds}


def next_deadline(clocks: Clocks, started: datetime, turn_began: datetime, person_to_move: bool) -> Deadline | None:
    """The first deadline of a match in progress, or None if no clock is running."""
    deadlines = []
    if clocks.turn is not None and person_to_move:
        deadlines.append(Deadline(turn_began + timedelta(seconds=clocks.turn), TURN, clocks.turn))
    if clocks.match is not None:
        deadlines.append(Deadline(started + timedelta(seconds=clocks.match), MATCH, clocks.match))
    return min(deadlines, key=lambda deadline: deadline.at, default=None)
