"""Campaigns as a kind of jobs. Whoever stops or resumes one does so to the round or the training that it waits for."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.campaigns.awaited import AwaitedJob, awaited_job, awaited_jobs
from app.errors import Phrase
from app.jobs import states
from app.jobs.kind import JobKind, Progress
from app.models import Campaign, CampaignIteration
from app.queues import BATCH

BETWEEN = timedelta(seconds=5)  # how long a process may take from one step to what it has to run for the next


class CampaignKind(JobKind[Campaign]):
    """See the module."""

    def states_of(self, session: Session, rows: Sequence[Campaign]) -> dict[int, str]:
        """The statuses; interrupted is one that nobody is at, nor at what it waits for, if nobody will come."""
        found = super().states_of(session, rows)
        alone = [row for row in rows if found[row.id] == states.INTERRUPTED]
        awaited = awaited_jobs(session, [row.id for row in alone]) if alone else {}
        worked_on = {
            AwaitedJob(kind, number)
            for kind in {part.kind for part in awaited.values()}
            for number in kind.with_worker(
                session, [part.row(session) for part in awaited.values() if part.kind is kind]
            )
        }
        now = datetime.now(UTC)
        for row in alone:
            part = awaited.get(row.id)
            just_left = row.lease_until is not None and row.lease_until > now - BETWEEN
            if just_left or part in worked_on:
                found[row.id] = row.status
        return found

    def progress_of(self, session: Session, rows: Sequence[Campaign]) -> dict[int, Progress]:
        """How many iterations have the figures of their first evaluation, by campaign; the base is none."""
        with_figures = (
            select(CampaignIteration.campaign_id, func.count())
            .where(CampaignIteration.campaign_id.in_([row.id for row in rows]))
            .where(CampaignIteration.number > 0, CampaignIteration.figures.is_not(None))
            .group_by(CampaignIteration.campaign_id)
        )
        done = dict(session.execute(with_figures).all())
        return {row.id: (done.get(row.id, 0), row.iterations) for row in rows}

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
    facts=lambda row: {"name": row.name, "game": row.game},
)
