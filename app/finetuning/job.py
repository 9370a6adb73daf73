"""Training jobs as a kind of jobs: one worker runs one training."""

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.orm import Session

from app.errors import Conflict, Phrase, shown
from app.jobs import states
from app.jobs.kind import JobKind
from app.models import LanguageModel, TrainingJob
from app.queues import TRAIN
from app.registry import PERSON


class TrainingKind(JobKind[TrainingJob]):
    """See the module."""

    def unnoticed(self, now: datetime) -> ColumnElement[bool]:
        """As for all kinds, and at once where a lease has ended since the last message."""
        return or_(super().unnoticed(now), TrainingJob.enqueued_at < TrainingJob.lease_until)

    def check_resumable(self, session: Session, row: TrainingJob) -> None:
        """Raises Conflict where the model's name was given to another one meanwhile."""
        refuse_taken(session, row.name, but=row.id)


TRAINING = TrainingKind(
    name="training",
    plural="trainings",
    table=TrainingJob,
    queue=TRAIN,
    runner="app.finetuning.runner:run",
    progress=lambda row: (row.step or 0, row.steps),
    facts=lambda row: {"name": row.name, "method": row.method, "backend": row.backend},
    numbered=lambda number: Phrase("job %(number)s", number=number),
    idle=Phrase("one that nobody runs"),
    lease_seconds=lambda settings: settings.TRAIN_LEASE,
    patience=timedelta(seconds=30),  # a job may wait long behind another one
)


def refuse_taken(session: Session, name: str, but: int | None = None) -> None:
    """Raises Conflict for a name that a model has or another open job will give."""
    if name == PERSON or session.scalar(select(LanguageModel.id).where(LanguageModel.name == name)) is not None:
        raise Conflict(
            "name",
            expected=Phrase("one that is not taken"),
            got=name,
            remedy=Phrase("`flask model list` shows them all"),
        )
    other = select(TrainingJob.id).where(
        TrainingJob.name == name, TrainingJob.status.in_(states.LIVE), TrainingJob.id != (but or 0)
    )
    if (number := session.scalar(other.limit(1))) is not None:
        raise Conflict(
            "name",
            expected=Phrase("one that no other job makes"),
            got=Phrase("%(name)s, which job %(number)s does", name=shown(name), number=number),
        )
