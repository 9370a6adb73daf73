"""Pushes as a kind of job: one worker sends the files of one model or dataset."""

from app.core.errors import Phrase
from app.core.queues import BATCH
from app.jobs import states
from app.jobs.kind import JobKind
from app.models import Publication

LEASE = 60.0  # seconds

PUBLICATION = JobKind(
    name="publication",
    plural="publications",
    numbered=lambda number: Phrase("publication %(number)s", number=number),
    place=9,
    table=Publication,
    queue=BATCH,
    runner="app.publication.runner:run",
    progress=lambda row: (row.files if row.status == states.DONE else 0, row.files),
    facts=lambda row: {"name": row.name},
    listing="app.publication.listing:LIST",
    page="app.publication.page:PAGE",
    creation="app.publication.creation:CREATION",
    lease_seconds=lambda _settings: LEASE,
)
