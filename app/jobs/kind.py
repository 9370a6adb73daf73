"""A kind of jobs, and the one lifecycle that all kinds share: taken by lease, renewed, released, cancelled, resumed.

`app/jobs/states.py` says how the states follow each other. A kind names what differs and overrides what is its own:
`app/rounds/job.py` leases parts of a round, `app/campaigns/job.py` passes cancelling on. Nothing here commits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, and_, case, or_, update
from sqlalchemy.orm import Session

from app import queues
from app.config import Settings
from app.errors import Conflict, NotFound, Phrase
from app.jobs import leases, states

LARGEST = 2**31 - 1  # of a job's number

R = TypeVar("R", bound=Any)  # a row of the kind's table


@dataclass(frozen=True, eq=False)
class JobKind(Generic[R]):
    """What distinguishes a kind of jobs.

    `runner` is "module:function", loaded by the worker that calls it with its context and a job's number.
    """

    name: str  # as messages, commands and pages call one: "round"
    plural: str
    table: type[R]  # with the columns of JobMixin, and those of LeaseMixin unless the kind leases parts of its jobs
    queue: str  # of the workers that run it
    runner: str
    numbered: Callable[[int], Phrase]  # "round 3"
    active: Phrase  # what can be cancelled: "one that is being played"
    idle: Phrase  # what can be resumed: "one that nobody plays"
    remedy: Phrase  # where somebody who named none that exists finds the right number
    lease_seconds: Callable[[Settings], float]
    patience: timedelta  # between two messages to workers about a job that none has taken

    # ---- What a kind may override ------------------------------------------------

    def free(self, now: datetime) -> ColumnElement[bool]:
        """Whether there is work at a job that a worker could take, for a WHERE."""
        return leases.free(self.table, now)

    def held(self, now: datetime) -> ColumnElement[bool]:
        """Whether some worker holds a lease on a job or a part of it, for a WHERE."""
        return and_(self.table.lease_until.is_not(None), self.table.lease_until >= now)

    def unnoticed(self, now: datetime) -> ColumnElement[bool]:
        """Whether the last message about a job is so old that it must have been lost, for a WHERE."""
        return or_(self.table.enqueued_at.is_(None), self.table.enqueued_at < now - self.patience)

    def has_worker(self, _session: Session, row: R) -> bool:
        """Whether some worker holds a lease on the job or a part of it just now."""
        return leases.is_held(row)

    def state_of(self, session: Session, row: R) -> str:
        """The status, or that it was interrupted: nobody works on it, and upkeep will call nobody."""
        stands_still = row.status == states.RUNNING and not row.queued and not self.has_worker(session, row)
        return states.INTERRUPTED if stands_still else str(row.status)

    def check_resumable(self, session: Session, row: R) -> None:
        """Raises Conflict for a job that cannot go on for a reason of its kind's own."""

    def reset(self, session: Session, row: R) -> None:  # noqa: ARG002
        """Forget what earlier workers left on the row of a job that is resumed."""
        row.lease_owner, row.lease_until, row.lease_count = None, None, 0

    def end_distant_leases(self, session: Session, settings: Settings) -> None:
        """End leases that a clock which jumped has put far into the future."""
        leases.end_distant(session, self.table, self.lease_seconds(settings), self.table.status.in_(states.LIVE))

    # ---- The lease ---------------------------------------------------------------

    def get(self, session: Session, number: int) -> R:
        """The job of that number. Raises NotFound."""
        row = session.get(self.table, number) if 0 < number <= LARGEST else None
        if row is None:
            raise NotFound(
                self.name,
                expected=Phrase("the number of one that exists"),
                got=number,
                remedy=self.remedy,
            )
        return row

    def take(self, session: Session, number: int, owner: str, seconds: float) -> bool:
        """Take a job that is to be run and that nobody runs, for that long. One conditional UPDATE decides."""
        now, table = datetime.now(UTC), self.table
        taken = session.scalar(
            update(table)
            .where(table.id == number, table.status.in_(states.OPEN), leases.free(table, now))
            .values(
                status=states.RUNNING,
                lease_owner=owner,
                lease_until=now + timedelta(seconds=seconds),
                lease_count=case((table.lease_owner.is_(None), table.lease_count), else_=table.lease_count + 1),
            )
            .returning(table.id)
            .execution_options(synchronize_session=False)
        )
        if taken is not None:
            self.update(session, table.id == taken, table.started_at.is_(None), started_at=now)
        return taken is not None

    def renew(self, session: Session, number: int, owner: str, seconds: float, **values: Any) -> str | None:
        """Renew a lease, and set further values. The job's status; None if the lease is somebody else's."""
        status: str | None = session.scalar(
            update(self.table)
            .where(self.table.id == number, self.table.lease_owner == owner)
            .values(lease_until=datetime.now(UTC) + timedelta(seconds=seconds), **values)
            .returning(self.table.status)
            .execution_options(synchronize_session=False)
        )
        return status

    def locked(self, session: Session, number: int, owner: str) -> R | None:
        """The job, locked until the transaction ends, if the lease is still its owner's."""
        row = session.get(self.table, number, with_for_update=True, populate_existing=True)
        return row if row is not None and row.lease_owner == owner else None

    def release(self, session: Session, number: int, owner: str, error: str | None = None) -> None:
        """Let go of a job: it is cancelled if that was asked for, failed for `error`, else free for the next worker."""
        row = self.locked(session, number, owner)
        if row is None:
            return
        if row.status == states.CANCELLING:
            row.status, row.ended_at = states.CANCELLED, datetime.now(UTC)
        elif error is not None:
            fail(row, error)
        row.lease_owner, row.lease_until = None, datetime.now(UTC)  # since when nobody has worked on it
        session.flush()

    # ---- From state to state -----------------------------------------------------

    def cancel(self, session: Session, number: int) -> R:
        """Ask whoever works on a job to stop; what was made stays. Raises NotFound, and Conflict when it is over."""
        row = self.get(session, number)
        if leases.request_stop(session, row, self.numbered(number), self.active):
            self.settle_cancelled(session, number)
            session.refresh(row)
        return row

    def settle_cancelled(self, session: Session, number: int | None = None) -> None:
        """Call jobs that are being cancelled, or one of them, cancelled where nobody works on them any more."""
        now, table = datetime.now(UTC), self.table
        which = table.status == states.CANCELLING
        one = which if number is None else and_(which, table.id == number)
        self.update(session, one, ~self.held(now), status=states.CANCELLED, ended_at=now)

    def resume(self, session: Session, number: int, *, queued: bool) -> R:
        """Let a job that failed, was cancelled or interrupted go on from where it stopped.

        Raises NotFound, and Conflict when nothing is left to do or somebody works on it.
        """
        row = self.get(session, number)
        session.refresh(row, with_for_update=True)
        subject = self.numbered(number)
        if row.status == states.DONE:
            expected = Phrase("one with something left to do")
            raise Conflict(self.name, expected=expected, got=Phrase("one that is done"), subject=subject)
        if row.status == states.CANCELLING:
            got = Phrase("one that is just being cancelled")
            raise Conflict(self.name, expected=self.idle, got=got, subject=subject)
        if self.has_worker(session, row) and not self.may_be_joined(row, queued=queued):
            got, remedy = Phrase("one that is running"), Phrase("cancel it first")
            raise Conflict(self.name, expected=self.idle, got=got, remedy=remedy, subject=subject)
        self.check_resumable(session, row)
        row.status, row.queued, row.ended_at, row.error = states.WAITING, queued, None, None
        row.enqueued_at = None
        self.reset(session, row)
        session.flush()
        return row

    def may_be_joined(self, _row: R, *, queued: bool) -> bool:  # noqa: ARG002 - a kind may need it
        """Whether a job that somebody works on may be resumed by somebody else as well."""
        return False

    def take_unattended(self, session: Session) -> Sequence[int]:
        """Numbers of queued jobs that workers should be told of again, because nobody works on them. Marks them."""
        now, table = datetime.now(UTC), self.table
        waits = and_(table.queued, table.status.in_(states.OPEN), self.unnoticed(now), self.free(now))
        return leases.mark_enqueued(session, table, waits, now)

    def enqueue(self, broker_url: str, number: int, times: int = 1) -> None:
        """Tell so many workers of a job, after the commit."""
        queues.enqueue_job(broker_url, self.queue, self.name, number, times)

    def update(self, session: Session, *which: ColumnElement[bool], **values: Any) -> None:
        """Set values of the rows that fulfil all conditions, in the database alone."""
        statement = update(self.table).where(*which).values(**values)
        session.execute(statement, execution_options={"synchronize_session": False})


def finish(row: Any) -> None:
    """Nothing is left to do."""
    row.status, row.ended_at, row.error = states.DONE, datetime.now(UTC), None


def fail(row: Any, error: str) -> None:
    """Stop a job that cannot go on until somebody has mended what `error` says."""
    row.status, row.ended_at, row.error = states.FAILED, datetime.now(UTC), error
