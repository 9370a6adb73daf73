"""Societies as a job kind: one worker runs one society, with all of its calls in flight together."""

from sqlalchemy.orm import Session

from app.core.errors import Conflict, Phrase
from app.core.queues import BATCH
from app.jobs.kind import JobKind
from app.models import Society


class SocietyKind(JobKind[Society]):
    """See the module."""

    def may_resume(self, row: Society, state: str) -> bool:
        """Whether the society is run here and has stopped."""
        return not row.imported and super().may_resume(row, state)

    def check_resumable(self, _session: Session, row: Society) -> None:
        """Raises Conflict for a society whose interactions were imported."""
        if row.imported:
            raise Conflict(
                self.name,
                expected=Phrase("one that is run here"),
                got=Phrase("one that was imported"),
                subject=self.subject(row.id),
            )


def interactions_of(row: Society) -> int:
    """The number of interactions that a society will have when it is done."""
    return int(row.config["iterations"]) * int(row.config["size"]) ** 2


SOCIETY = SocietyKind(
    name="society",
    plural="societies",
    place=5,
    table=Society,
    queue=BATCH,
    runner="app.society.runner:run",
    progress=lambda row: (row.interactions, interactions_of(row)),
    facts=lambda row: {"name": row.name, "seed": row.config.get("seed")},
    numbered=lambda number: Phrase("society %(number)s", number=number),
    listing="app.society.listing:LIST",
    page="app.society.page:PAGE",
    curves="app.society.curves:curves",
    creation="app.society.creation:CREATION",
    spends=True,
    lease_seconds=lambda settings: settings.ROUND_LEASE,
)
