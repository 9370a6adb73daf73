"""Campaigns as a kind of jobs. Whoever stops or resumes one does so to the round or the training that it waits for."""

from collections.abc import Collection, Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.campaigns.awaited import awaited_jobs, rounds_of
from app.core.errors import Phrase
from app.core.queues import BATCH
from app.jobs.chained import AwaitedJob, ChainedKind
from app.jobs.kind import Progress
from app.models import Campaign, CampaignIteration


class CampaignKind(ChainedKind[Campaign]):
    """See the module."""

    def begun_jobs(self, session: Session, row: Campaign) -> Sequence[AwaitedJob]:
        """Its rounds; trainings call no model."""
        return rounds_of(session, row.id)

    def awaited_jobs(self, session: Session, numbers: Collection[int]) -> dict[int, AwaitedJob]:
        """The round or the training that each waits for."""
        return awaited_jobs(session, numbers)

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


CAMPAIGN = CampaignKind(
    name="campaign",
    plural="campaigns",
    place=3,
    table=Campaign,
    queue=BATCH,
    runner="app.campaigns.steps:run",
    numbered=lambda number: Phrase("campaign %(number)s", number=number),
    active=Phrase("one that is running"),
    facts=lambda row: {"name": row.name, "game": row.game},
    spends=True,
    listing="app.campaigns.listing:LIST",
    page="app.campaigns.page:PAGE",
    creation="app.campaigns.creation:CREATION",
)
