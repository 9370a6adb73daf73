"""Campaigns as a kind of jobs. Whoever stops or resumes one does so to the round or the training that it waits for."""

from datetime import UTC, datetime, timedelta

from sqlalchemy.orm import Session

from app.campaigns.awaited import awaited_job
from app.errors import Phrase
from app.jobs import leases, states
from app.jobs.kind import JobKind
from app.models import Campaign
from app.queues import BATCH

LEASE = 120.0  # seconds that one step may take, the writing of a dataset included
BETWEEN = timedelta(seconds=5)  # how long a process may take from one step to what it has to run for the next


class CampaignKind(JobKind[Campaign]):
    """See the module."""

    def state_of(self, session: Session, row: Campaign) -> str:
        """The status, or that it was interrupted: nobody is at it or at what it waits for, and nobody will come."""
        if row.status != states.RUNNING or row.queued or leases.is_held(row):
            return row.status
        part = awaited_job(session, row.id)
        if part is not None and part.kind.has_worker(session, part.row(session)):
            return row.status
        left = row.lease_until is not None and row.lease_until > datetime.now(UTC) - BETWEEN
        return row.status if left else states.INTERRUPTED

    def cancel(self, session: Session, number: int) -> Campaign:
        """Stop a campaign, and the round or the training that it waits for. Raises NotFound and Conflict."""
        row = super().cancel(session, number)
        part = awaited_job(session, number)
        if part is not None and part.row(session).status in states.OPEN:
            part.kind.cancel(session, part.number)
        return row

    def resume(self, session: Session, number: int, *, queued: bool) -> Campaign:
        """Let a campaign go on, with the round or the training that it waits for. Raises NotFound and Conflict."""
        row = super().resume(session, number, queued=queued)
        part = awaited_job(session, number)
        if part is not None:
            part.kind.resume(session, part.number, queued=queued)
        return row


CAMPAIGN = CampaignKind(
    name="campaign",
    plural="campaigns",
    table=Campaign,
    queue=BATCH,
    runner="app.campaigns.steps:run",
    numbered=lambda number: Phrase("campaign %(number)s", number=number),
    active=Phrase("one that is running"),
    idle=Phrase("one that nobody works on"),
    remedy=Phrase("`flask campaign list` shows them"),
    lease_seconds=lambda _settings: LEASE,
    patience=timedelta(seconds=3),
)
