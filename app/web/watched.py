"""What pages may watch: jobs of every kind, each read as figures by name."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.games.base import JSON
from app.job_kinds import JOB_KINDS
from app.jobs.call_costs import Prices
from app.jobs.kind import JobKind
from app.jobs.page import page_of
from app.models import RoundRow
from app.rounds.job import ROUND
from app.rounds.prices import prices_of_round
from app.rounds.progress import RecentPace, figures, mean_pace

_PRICED = 15.0  # seconds for which prices are valid


class WatchedKind:
    """How jobs of a kind are watched. A kind with figures of its own has a subclass."""

    def __init__(self, kind: JobKind[Any]) -> None:
        self.kind = kind

    def read(self, session: Session, numbers: Collection[int], now: float) -> Mapping[int, JSON]:
        """The figures of those of these jobs that exist, at the moment `now` of a monotonic clock."""
        table = self.kind.table
        return self.figures(session, session.scalars(select(table).where(table.id.in_(numbers))).all(), now)

    def figures(self, session: Session, rows: Sequence[Any], now: float) -> Mapping[int, JSON]:  # noqa: ARG002 - a kind may have a pace
        """The figures of these jobs, by number."""
        return page_of(self.kind).figures_of(session, rows)


@dataclass(slots=True)
class _Known:
    """What is remembered about a round: its pace, and the prices of its tokens."""

    pace: RecentPace = field(default_factory=RecentPace)
    prices: Prices | None = None
    priced_at: float = float("-inf")


class _WatchedRounds(WatchedKind):
    """Self-play rounds."""

    def __init__(self, kind: JobKind[Any]) -> None:
        super().__init__(kind)
        self._known: dict[int, _Known] = {}

    def figures(self, session: Session, rows: Sequence[RoundRow], now: float) -> Mapping[int, JSON]:
        """See WatchedKind."""
        self._known = {row.id: self._known.get(row.id) or _Known() for row in rows}
        found, states = {}, ROUND.states_of(session, rows)
        for row in rows:
            known = self._known[row.id]
            if now - known.priced_at > _PRICED:
                known.prices, known.priced_at = prices_of_round(session, row), now
            pace = known.pace.see(now, row.finished, row.moves) or mean_pace(row, datetime.now(UTC))
            found[row.id] = figures(row, states[row.id], pace, known.prices)
        return found


def watched_kinds() -> list[WatchedKind]:
    """All kinds of job, each as it is watched."""
    return [_WatchedRounds(kind) if kind is ROUND else WatchedKind(kind) for kind in JOB_KINDS]
