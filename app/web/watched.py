"""What pages may watch: rounds, training jobs and campaigns, each read as figures by name."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.campaigns import listing as campaigns
from app.finetuning.listing import figures_of
from app.games.base import JSON
from app.models import Campaign, RoundRow, TrainingJob
from app.rounds.job import ROUND
from app.rounds.prices import Prices, prices_of_round
from app.rounds.progress import RecentPace, figures, mean_pace

_PRICED = 15.0  # seconds for which prices are good


class WatchedKind(Protocol):
    """One kind of rows. A page asks for numbers of `many`, and hears of each under the name `one`."""

    one: str
    many: str

    def read(self, session: Session, numbers: Collection[int], now: float) -> dict[int, JSON]:
        """The figures of those rows that there are, at the moment `now` of a clock that only goes on."""


@dataclass(slots=True)
class _Known:
    """What is remembered of a round: its pace, and what its tokens cost."""

    pace: RecentPace = field(default_factory=RecentPace)
    prices: Prices | None = None
    priced_at: float = float("-inf")


class WatchedRounds:
    """Self-play rounds."""

    one, many = "round", "rounds"

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}

    def read(self, session: Session, numbers: Collection[int], now: float) -> dict[int, JSON]:
        """See Watched."""
        self._known = {number: self._known.get(number) or _Known() for number in numbers}
        found = {}
        for row in session.scalars(select(RoundRow).where(RoundRow.id.in_(numbers))):
            known = self._known[row.id]
            if now - known.priced_at > _PRICED:
                known.prices, known.priced_at = prices_of_round(session, row), now
            pace = known.pace.see(now, row.finished, row.moves) or mean_pace(row, datetime.now(UTC))
            found[row.id] = figures(row, ROUND.state_of(session, row), pace, known.prices)
        return found


class WatchedJobs:
    """Training jobs."""

    one, many = "job", "jobs"

    def read(self, session: Session, numbers: Collection[int], now: float) -> dict[int, JSON]:  # noqa: ARG002 - has no pace
        """See Watched."""
        rows = session.scalars(select(TrainingJob).where(TrainingJob.id.in_(numbers)))
        return {row.id: figures_of(session, row) for row in rows}


class WatchedCampaigns:
    """Campaigns."""

    one, many = "campaign", "campaigns"

    def read(self, session: Session, numbers: Collection[int], now: float) -> dict[int, JSON]:  # noqa: ARG002 - has no pace
        """See Watched."""
        rows = session.scalars(select(Campaign).where(Campaign.id.in_(numbers)))
        return {row.id: campaigns.figures_of(session, row) for row in rows}
