"""What changes of campaigns while they run."""

from app.campaigns.job import CAMPAIGN
from app.campaigns.listing import figures_of
from app.jobs.page import JobPage
from app.models import Campaign

PAGE: JobPage[Campaign] = JobPage(
    kind=CAMPAIGN,
    sections=[],
    figures=lambda session, rows: {row.id: figures_of(session, row) for row in rows},
)
