"""Training jobs as a kind of job: one worker runs one training."""

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Phrase, shown
from app.core.queues import TRAIN
from app.finetuning.backends import find_backend
from app.finetuning.config import LOCAL
from app.jobs import states
from app.jobs.kind import JobKind
from app.models import LanguageModel, TrainingJob
from app.registry import PERSON

SUCCEEDED, FAILED, CANCELLED = "succeeded", "failed", "cancelled"  # final statuses of a vendor's training, in its words
_UNMADE = (FAILED, CANCELLED)
OVER = (SUCCEEDED, *_UNMADE)


class TrainingKind(JobKind[TrainingJob]):
    """See the module."""

    def outside(self) -> ColumnElement[bool]:
        """Whether something was sent to a vendor that is not known to be over."""
        status = TrainingJob.remote_status
        over = and_(status.is_not(None), status.in_(OVER))
        return and_(TrainingJob.remote_token.is_not(None), ~over)

    def free(self, now: datetime) -> ColumnElement[bool]:
        """As for all kinds; a job at a vendor only when it is due for the next poll."""
        return and_(super().free(now), or_(TrainingJob.poll_at.is_(None), TrainingJob.poll_at <= now))

    def may_spend(self, row: TrainingJob) -> bool:
        """Whether a vendor trains."""
        return row.backend != LOCAL

    def queue_of(self, session: Session, number: int) -> str:
        """The queue of the job's backend."""
        return find_backend(self.get(session, number).backend).queue

    def cancel(self, session: Session, number: int) -> TrainingJob:
        """As for all kinds, and also a failed job; a training that runs at a vendor is cancelled there at once."""
        row = self.get(session, number)
        session.refresh(row, with_for_update=True)
        if row.status == states.FAILED and self.may_cancel(row):
            row.status, row.ended_at, row.error = states.CANCELLING, None, None
            row.enqueued_at, row.remote_failures = None, 0
            session.flush()
        row = super().cancel(session, number)
        row.poll_at = None
        session.flush()
        return row

    def may_cancel(self, row: TrainingJob) -> bool:
        """As for all kinds, and also a failed job that a vendor may still run, for example because it refused to
        cancel.
        """
        outside = row.remote_token is not None and row.remote_status not in OVER
        return super().may_cancel(row) or (row.status == states.FAILED and outside)

    def reset(self, session: Session, row: TrainingJob) -> None:
        """As for all kinds. A job that a vendor ended without a model is created there again, others continue."""
        super().reset(session, row)
        row.poll_at, row.remote_failures = None, 0
        if row.remote_status in _UNMADE:
            row.remote_token = row.remote_file_id = row.remote_job_id = row.remote_status = None
            row.trained_tokens = row.step = row.steps = row.loss = None

    def unnoticed(self, now: datetime) -> ColumnElement[bool]:
        """As for all kinds, and at once if a lease has ended since the last message."""
        return or_(super().unnoticed(now), TrainingJob.enqueued_at < TrainingJob.lease_until)

    def check_resumable(self, session: Session, row: TrainingJob) -> None:
        """Raises Conflict if the model's name was taken by another one meanwhile."""
        refuse_taken(session, row.name, but=row.id)


TRAINING = TrainingKind(
    name="training",
    plural="trainings",
    place=2,
    table=TrainingJob,
    queue=TRAIN,
    runner="app.finetuning.runner:run",
    spends=True,
    progress=lambda row: (row.step or 0, row.steps),
    facts=lambda row: {"name": row.name, "method": row.method, "backend": row.backend},
    numbered=lambda number: Phrase("job %(number)s", number=number),
    idle=Phrase("one that nobody runs"),
    listing="app.finetuning.listing:LIST",
    page="app.finetuning.page:PAGE",
    curves="app.finetuning.curves:curves",
    creation="app.finetuning.creation:CREATION",
    lease_seconds=lambda settings: settings.TRAIN_LEASE,
    patience=timedelta(seconds=30),  # a job may wait long behind another one
)


def refuse_taken(session: Session, name: str, but: int | None = None) -> None:
    """Raises Conflict for a name that a model has or another open job will use."""
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
            expected=Phrase("one that no other job uses"),
            got=Phrase("%(name)s, which job %(number)s uses", name=shown(name), number=number),
        )
