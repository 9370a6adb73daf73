"""Rehearsals in lists, each named after the version of the study that its bots go through."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.errors import Phrase
from app.core.lists import NOWHERE, ListColumn, Listing, of_other
from app.jobs.listing import JobListItem, job_columns, job_items
from app.models import Rehearsal, RehearsedBot, Study, StudyVersion
from app.studies.bots.job import REHEARSAL


@dataclass(frozen=True)
class RehearsalListItem(JobListItem):
    """A rehearsal in a list, with the version of its study: NAME@NUMBER."""

    reference: str


def list_items(session: Session, rows: Sequence[Rehearsal]) -> list[RehearsalListItem]:
    """Rehearsals as list items."""
    versions = select(StudyVersion.id, Study.name, StudyVersion.number).join(Study, Study.id == StudyVersion.study_id)
    found = session.execute(versions.where(StudyVersion.id.in_([row.study_version_id for row in rows])))
    called = {number: f"{name}@{version}" for number, name, version in found}
    return [
        RehearsalListItem(**vars(item), reference=called[item.row.study_version_id])
        for item in job_items(session, REHEARSAL, rows)
    ]


LIST: Listing[Rehearsal] = Listing(
    name=REHEARSAL.plural,
    table=Rehearsal,
    columns=job_columns(
        REHEARSAL,
        ListColumn("seed", Phrase("Seed"), lambda each: each.row.seed, sort=Rehearsal.seed, seen=NOWHERE),
        title=Phrase("Study"),
        done=Phrase("Done"),
        name=lambda each: each.reference,
        sort=of_other(
            Study.name, (StudyVersion.id == Rehearsal.study_version_id) & (Study.id == StudyVersion.study_id)
        ),
        sort_done=of_other(func.count(RehearsedBot.number), RehearsedBot.rehearsal_id == Rehearsal.id),
    ),
    items=list_items,
)
