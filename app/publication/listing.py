"""Pushes in lists."""

from sqlalchemy import case

from app.core.errors import Phrase
from app.core.lists import Listing, attribute
from app.jobs import states
from app.jobs.listing import job_columns, job_items
from app.models import Publication
from app.publication.job import PUBLICATION

LIST: Listing[Publication] = Listing(
    name=PUBLICATION.plural,
    table=Publication,
    columns=job_columns(
        PUBLICATION,
        attribute(Publication.target, Phrase("Where to")),
        attribute(Publication.licence, Phrase("Licence")),
        attribute(Publication.sent_at, Phrase("Sent, UTC"), numeric=True, none=Phrase("not yet")),
        title=Phrase("What is published"),
        done=Phrase("Files"),
        sort_done=case((Publication.status == states.DONE, Publication.files), else_=0),
    ),
    items=lambda session, rows: job_items(session, PUBLICATION, rows),
)
