"""Rounds as a job kind. Workers lease parts of a round, so that several play it at once."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, and_, exists, or_, select, update
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import Conflict, Phrase
from app.core.queues import BATCH
from app.jobs import leases, states
from app.jobs.kind import JobKind
from app.models import RoundRange, RoundRow
from app.rounds import ranges

SELFPLAY, IMPORT = "selfplay", "import"  # the sources of a round's matches


class RoundKind(JobKind[RoundRow]):
    """See the module."""

    def free(self, now: datetime) -> ColumnElement[bool]:
        """Whether a round has an unleased part, and is not waiting for its model."""
        undone = and_(RoundRange.round_id == RoundRow.id, RoundRange.done.is_(False), leases.free(RoundRange, now))
        return and_(exists().where(undone), or_(RoundRow.retry_at.is_(None), RoundRow.retry_at < now))

    def held(self, now: datetime) -> ColumnElement[bool]:
        """Whether a worker is playing a part of a round."""
        return exists().where(RoundRange.round_id == RoundRow.id, ranges.being_played(now))

    def with_worker(self, session: Session, rows: Sequence[RoundRow]) -> Collection[int]:
        """The numbers of those rounds of which a worker is currently playing a part."""
        numbers = [row.id for row in rows]
        held = select(RoundRow.id).where(RoundRow.id.in_(numbers), self.held(datetime.now(UTC)))
        return set(session.scalars(held))

    def may_resume(self, row: RoundRow, state: str) -> bool:
        """Whether the round is played here and has stopped."""
        return row.source == SELFPLAY and super().may_resume(row, state)

    def check_resumable(self, _session: Session, row: RoundRow) -> None:
        """Raises Conflict for a round whose matches were imported."""
        if row.source != SELFPLAY:
            raise Conflict(
                self.name,
                expected=Phrase("one that is played here"),
                got=Phrase("one that was imported"),
                subject=self.subject(row.id),
            )

    def may_be_joined(self, row: RoundRow, *, queued: bool) -> bool:
        """Whether the round is played by the same sort, workers or terminals, as the one that resumes it."""
        return row.queued == queued

    def reset(self, session: Session, row: RoundRow) -> None:
        """Clear which model did not answer, and how often workers died while playing a part of the round."""
        row.away_model_id = row.away_since = row.retry_at = None
        session.execute(update(RoundRange).where(RoundRange.round_id == row.id).values(lease_count=0))

    def end_distant_leases(self, session: Session, settings: Settings) -> None:
        """End leases on parts of rounds that a clock jump has put far into the future."""
        live = select(RoundRow.id).where(RoundRow.status.in_(states.LIVE))
        leases.end_distant(session, RoundRange, self.lease_seconds(settings), RoundRange.round_id.in_(live))


ROUND = RoundKind(
    name="round",
    plural="rounds",
    place=1,
    table=RoundRow,
    queue=BATCH,
    runner="app.rounds.runner:run",
    progress=lambda row: (row.finished, row.matches),
    facts=lambda row: {"name": row.name, "game": row.game, "seed": row.seed},
    numbered=lambda number: Phrase("round %(number)s", number=number),
    active=Phrase("one that is being played"),
    idle=Phrase("one that nobody plays"),
    lease_seconds=lambda settings: settings.ROUND_LEASE,
    listing="app.rounds.listing:LIST",
    page="app.rounds.page:PAGE",
    curves="app.analysis.running_mean:curves",
    creation="app.rounds.creation:CREATION",
    spends=True,
    messages=8,  # upkeep calls more workers while a part of the round is free
)
