"""Assessments as a kind of job: one worker runs each, with all of its calls in flight together."""

from app.core.errors import Phrase
from app.core.queues import BATCH
from app.jobs.kind import JobKind
from app.models import Assessment

ASSESSMENT: JobKind[Assessment] = JobKind(
    name="assessment",
    plural="assessments",
    place=6,
    table=Assessment,
    queue=BATCH,
    runner="app.assessments.runner:run",
    progress=lambda row: (row.answers, 2 * row.asked),
    numbered=lambda number: Phrase("assessment %(number)s", number=number),
    listing="app.assessments.listing:LIST",
    page="app.assessments.page:PAGE",
    creation="app.assessments.creation:CREATION",
    lease_seconds=lambda settings: settings.ROUND_LEASE,
    spends=True,
)
