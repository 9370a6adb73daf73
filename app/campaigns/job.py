"""Campaigns as a kind of job: each has the steps of its recipe."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.campaigns.step_names import EVALUATE
from app.core.errors import Phrase
from app.core.queues import BATCH
from app.jobs.kind import Progress
from app.models import Campaign, RecipeStep
from app.recipes.stepped import SteppedKind


class CampaignKind(SteppedKind[Campaign]):
    """See the module."""

    owner = "campaign_id"

    def progress_of(self, session: Session, rows: Sequence[Campaign]) -> dict[int, Progress]:
        """How many iterations have the figures of their first evaluation, by campaign; the base does not count."""
        done = self.count_steps(session, rows, RecipeStep.name == EVALUATE, RecipeStep.figures.is_not(None))
        return {row.id: (done[row.id], row.iterations) for row in rows}


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
    curves="app.campaigns.curves:curves",
    creation="app.campaigns.creation:CREATION",
)
