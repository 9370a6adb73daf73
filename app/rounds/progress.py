"""The progress of a round as figures for its page and live updates, and its pace. Pure."""

from collections import deque
from datetime import datetime
from typing import Any

from app.games.base import JSON
from app.jobs import states
from app.jobs.call_costs import Prices, TokenCounts, cost_of

_WINDOW = 15.0  # seconds over which a pace is measured
_COUNTS = (
    "matches", "finished", "aborted", "moves", "violations", "lenient_moves", "calls", "failed_calls",
    "prompt_tokens", "completion_tokens", "estimated_tokens", "error",
)  # fmt: skip


class RecentPace:
    """The recent pace of a round: matches and moves a second over the last quarter of a minute."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int, int]] = deque()

    def see(self, now: float, finished: int, moves: int) -> tuple[float, float] | None:
        """Matches and moves a second at the moment `now`; None until there is an earlier moment to compare with."""
        while len(self._seen) > 1 and self._seen[1][0] <= now - _WINDOW:
            self._seen.popleft()
        self._seen.append((now, finished, moves))
        since, matches, plies = self._seen[0]
        if now - since < 1:
            return None
        return (finished - matches) / (now - since), (moves - plies) / (now - since)


def mean_pace(row: Any, now: datetime) -> tuple[float, float] | None:
    """Matches and moves a second from the start of a round until its end or now."""
    if row.started_at is None:
        return None
    seconds = ((row.ended_at or now) - row.started_at).total_seconds()
    return (row.finished / seconds, row.moves / seconds) if seconds > 0 else None


def figures(row: Any, state: str, pace: tuple[float, float] | None, prices: Prices | None) -> JSON:
    """A round as figures by name. `prices` are for a round that has calls whose cost was not stored.

    `left` is in seconds; it is None if the round is not progressing, and `cost` is None if it is unknown or no model is
    paid for.
    """
    found: JSON = {"status": state, **{name: getattr(row, name) for name in _COUNTS}}
    found["tokens"] = row.prompt_tokens + row.completion_tokens + row.estimated_tokens
    found["percent"] = 100 * row.finished // max(1, row.matches)
    going = state == states.RUNNING and pace is not None
    found["matches_a_second"] = round(pace[0], 2) if going and pace else None
    found["moves_a_second"] = round(pace[1], 1) if going and pace else None
    left = (row.matches - row.finished) / pace[0] if going and pace and pace[0] > 0 else None
    found["left"] = None if left is None else round(left)
    found["cost"] = None
    if row.unpriced_calls == 0 and (row.cost or prices is not None):
        found["cost"] = round(row.cost, 4)
    elif row.unpriced_calls != 0 and prices is not None:
        found["cost"] = round(cost_of(prices, TokenCounts(row.prompt_tokens, row.completion_tokens)), 4)
    return found
