"""A kind of job, and the lifecycle that all kinds share: taken by lease, renewed, released, cancelled, resumed.

`app/jobs/states.py` describes the transitions between states. A kind names its differences and overrides methods:
`app/rounds/job.py` leases parts of a round, `app/jobs/chained.py` passes cancelling on. Nothing here commits.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, and_, case, false, or_, select, update
from sqlalchemy.orm import Session

from app.core import queues
from app.core.config import Settings
from app.core.errors import Conflict, NotFound, Phrase
from app.jobs import leases, states
from app.jobs.holding import check_not_removed
from app.jobs.spec import JobBudget

LARGEST = 2**31 - 1  # the largest job number
NO_BUDGET = JobBudget()
LEASE = 120.0  # seconds, for a kind that sets none
ACTIVE, IDLE = Phrase("one that is waiting or running"), Phrase("one that no worker runs")

Progress = tuple[int, int | None]  # how much of a job is done, and of how much; None if unknown
R = TypeVar("R", bound=Any)  # a row of the kind's table


class Requester(NamedTuple):
    """The experimenter who requests a job. `user_id` is None once that account was removed; the name stays."""

    user_id: int | None
    name: str


def requester_of(row: Any) -> Requester | None:
    """The requester of a job, for further jobs that it creates; None for a command line, or if unknown."""
    return None if row.requested_by is None else Requester(row.requested_by_id, row.requested_by)


@dataclass(frozen=True, eq=False)
class JobKind(Generic[R]):
    """The distinguishing properties of a kind of job.

    `runner` is "module:function", loaded by the worker that calls it with its context and a job's number.
    """

    name: str  # in its commands, messages and errors: "round"
    plural: str  # in the addresses of pages, and in what pages watch: "rounds"
    table: type[R]  # with JobMixin's columns, and those of LeaseMixin unless the kind leases parts of its jobs
    queue: str  # the queue of the workers that run it
    runner: str
    numbered: Callable[[int], Phrase]  # "round 3"
    progress: Callable[[R], Progress] = lambda _row: (0, None)
    facts: Callable[[R], Mapping[str, Any]] = lambda _row: {}  # what lists and pages show of a job, by name
    active: Phrase = ACTIVE  # the jobs that can be cancelled
    idle: Phrase = IDLE  # the jobs that can be resumed
    lease_seconds: Callable[[Settings], float] = lambda _settings: LEASE
    patience: timedelta = timedelta(seconds=3)  # between two messages to workers about a job that none has taken
    messages: int = 1  # to workers when a job begins: more if several work on one
    listing: str = ""  # "module:name" of its list, loaded by pages and commands; empty: the list of `job_list`
    page: str = ""  # "module:name" of a job's page, loaded likewise; empty: that of `page_of`
    creation: str = ""  # "module:name" of what creates jobs from a spec, loaded likewise; empty: other code does
    curves: str = ""  # "module:function" that reads what changed while a job ran, loaded likewise; empty: nothing
    spends: bool = False  # whether its jobs have a budget (app/jobs/spending.py)
    place: int = 100  # its position among the kinds, in the navigation and wherever all of them are listed

    def subject(self, number: int) -> Phrase:
        """A job's name in errors: "round 3"."""
        return self.numbered(number)

    # ---- What a kind may override ------------------------------------------------

    def free(self, now: datetime) -> ColumnElement[bool]:
        """Whether a worker could take work of a job, for a WHERE."""
        return leases.free(self.table, now)

    def held(self, now: datetime) -> ColumnElement[bool]:
        """Whether some worker holds a lease on a job or a part of it, for a WHERE."""
        return and_(self.table.lease_until.is_not(None), self.table.lease_until >= now)

    def unnoticed(self, now: datetime) -> ColumnElement[bool]:
        """Whether the last message about a job is so old that it must have been lost, for a WHERE."""
        return or_(self.table.enqueued_at.is_(None), self.table.enqueued_at < now - self.patience)

    def outside(self) -> ColumnElement[bool]:
        """Whether a job may be running outside of Parlor, where only a worker can end it, for a WHERE.

        While it is being cancelled, only that worker sets it to cancelled.
        """
        return false()

    def queue_of(self, _session: Session, _number: int) -> str:
        """The queue of the workers that run a job."""
        return self.queue

    def with_worker(self, _session: Session, rows: Sequence[R]) -> Collection[int]:
        """The numbers of the jobs on which, or on a part of which, a worker currently holds a lease."""
        return {row.id for row in rows if leases.is_held(row)}

    def states_of(self, session: Session, rows: Sequence[R]) -> dict[int, str]:
        """The displayed status of each job, by number. INTERRUPTED: nobody works on it, and nobody will unless it is
        resumed; REMOVED: what it has made was removed.
        """
        inline = [row for row in rows if row.status == states.RUNNING and not row.queued]
        alive = self.with_worker(session, inline) if inline else ()
        alone = {row.id for row in inline} - {*alive}
        return {
            row.id: states.REMOVED
            if row.removed_at is not None
            else states.INTERRUPTED
            if row.id in alone
            else str(row.status)
            for row in rows
        }

    def progress_of(self, _session: Session, rows: Sequence[R]) -> Mapping[int, Progress]:
        """The progress of each job, by number."""
        return {row.id: self.progress(row) for row in rows}

    def may_spend(self, row: R) -> bool:  # noqa: ARG002 - a kind may look at it
        """Whether a job may cost money, and so has a budget."""
        return self.spends

    def may_cancel(self, row: R) -> bool:
        """Whether a job can be cancelled."""
        return row.status in states.OPEN

    def may_resume(self, _row: R, state: str) -> bool:
        """Whether a job in that state, one of `states_of`, can be resumed."""
        return state in states.STOPPED

    def check_resumable(self, session: Session, row: R) -> None:
        """Raises Conflict for a job that cannot continue for a reason specific to its kind."""

    def reset(self, session: Session, row: R) -> None:  # noqa: ARG002
        """Clear what earlier workers left on the row of a job that is resumed."""
        row.lease_owner, row.lease_until, row.lease_count = None, None, 0

    def end_distant_leases(self, session: Session, settings: Settings) -> None:
        """End leases that a clock jump has put far into the future."""
        leases.end_distant(session, self.table, self.lease_seconds(settings), self.table.status.in_(states.LIVE))

    # ---- Reading -----------------------------------------------------------------

    def state_of(self, session: Session, row: R) -> str:
        """The displayed status of one job."""
        return self.states_of(session, [row])[row.id]

    def has_worker(self, session: Session, row: R) -> bool:
        """Whether a worker currently holds a lease on the job or a part of it."""
        return row.id in self.with_worker(session, [row])

    def get(self, session: Session, number: int) -> R:
        """The job of that number. Raises NotFound."""
        row = session.get(self.table, number) if 0 < number <= LARGEST else None
        if row is None:
            raise NotFound(
                self.name,
                expected=Phrase("the number of one that exists"),
                got=number,
                remedy=Phrase("`flask %(kind)s list` shows them", kind=self.name),
            )
        return row

    def check_there(self, row: R) -> None:
        """Raises Conflict for a job whose content was removed."""
        check_not_removed(self.name, row, self.subject(row.id))

    # ---- The lease ---------------------------------------------------------------

    def take(self, session: Session, number: int, owner: str, seconds: float) -> bool:
        """Take the lease of a job that is due and free, for `seconds`. One conditional UPDATE decides."""
        now, table = datetime.now(UTC), self.table
        taken = session.scalar(
            update(table)
            .where(table.id == number, self._to_be_run(), leases.free(table, now))
            .values(
                status=case((table.status == states.CANCELLING, states.CANCELLING), else_=states.RUNNING),
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
        """Renew a lease, and set further values. The job's status; None if the lease belongs to another owner."""
        status: str | None = session.scalar(
            update(self.table)
            .where(self.table.id == number, self.table.lease_owner == owner)
            .values(lease_until=datetime.now(UTC) + timedelta(seconds=seconds), **values)
            .returning(self.table.status)
            .execution_options(synchronize_session=False)
        )
        return status

    def locked(self, session: Session, number: int, owner: str) -> R | None:
        """The job, locked until the transaction ends, if `owner` still holds the lease."""
        row = session.get(self.table, number, with_for_update=True, populate_existing=True)
        return row if row is not None and row.lease_owner == owner else None

    def release(self, session: Session, number: int, owner: str, error: str | None = None) -> None:
        """Release a job: it is cancelled if that was requested, failed if there is an `error`, else free for the next
        worker.
        """
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

    def new_row(self, *, queued: bool, requester: Requester | None = None, **values: Any) -> R:
        """A waiting job, for workers if it is `queued`, else for its creator; not yet in a session.

        `requester` is None for jobs of a command line.
        """
        if requester is not None:
            values |= {"requested_by_id": requester.user_id, "requested_by": requester.name}
        row: R = self.table(status=states.WAITING, queued=queued, created_at=datetime.now(UTC), **values)
        return row

    def cancel(self, session: Session, number: int) -> R:
        """Ask the worker of a job to stop; its results stay. Raises NotFound, and Conflict when it is over."""
        row = self.get(session, number)
        leases.request_stop(session, row, self.subject(number), self.active)
        self.settle_cancelled(session, number)
        session.refresh(row)
        return row

    def settle_cancelled(self, session: Session, number: int | None = None) -> None:
        """Set jobs that are being cancelled, or one of them, to cancelled if nobody works on them any more."""
        now, table = datetime.now(UTC), self.table
        which = and_(table.status == states.CANCELLING, ~self.outside())
        one = which if number is None else and_(which, table.id == number)
        self.update(session, one, ~self.held(now), status=states.CANCELLED, ended_at=now)

    def resume(self, session: Session, number: int, *, queued: bool, budget: JobBudget = NO_BUDGET) -> R:
        """Resume a job that failed, was cancelled or interrupted, from where it stopped.

        The given budget replaces the job's earlier one. Raises NotFound, and Conflict when nothing is left to do or
        somebody works on it.
        """
        row = self.get(session, number)
        session.refresh(row, with_for_update=True)
        subject = self.subject(number)
        self.check_there(row)
        if row.status == states.DONE:
            expected = Phrase("one with something left to do")
            raise Conflict(self.name, expected=expected, got=Phrase("one that is done"), subject=subject)
        if row.status == states.CANCELLING:
            got = Phrase("one that is just being cancelled")
            raise Conflict(self.name, expected=self.idle, got=got, subject=subject)
        if self.has_worker(session, row) and not self.may_be_joined(row, queued=queued):
            got = Phrase("one that is running")
            remedy = Phrase("cancel it first, or try again in half a minute if its process was killed")
            raise Conflict(self.name, expected=self.idle, got=got, remedy=remedy, subject=subject)
        self.check_resumable(session, row)
        row.status, row.queued, row.ended_at, row.error = states.WAITING, queued, None, None
        row.enqueued_at = None
        for column, most in budget.columns.items():
            setattr(row, column, most or getattr(row, column))
        self.reset(session, row)
        session.flush()
        return row

    def may_be_joined(self, _row: R, *, queued: bool) -> bool:  # noqa: ARG002 - a kind may need it
        """Whether a job that has a worker may also be resumed by another one."""
        return False

    def take_unattended(self, session: Session) -> Sequence[int]:
        """Numbers of queued jobs that nobody works on, of which workers should be told again. Marks them."""
        now, table = datetime.now(UTC), self.table
        return leases.mark_enqueued(session, table, and_(self._is_due(now), self.unnoticed(now)), now)

    def due(self, session: Session) -> Sequence[int]:
        """Numbers of queued jobs that nobody works on, for workers that get no messages."""
        return session.scalars(select(self.table.id).where(self._is_due(datetime.now(UTC)))).all()

    def _is_due(self, now: datetime) -> ColumnElement[bool]:
        queued = and_(self.table.queued, self.table.status.in_(states.OPEN))
        return and_(or_(queued, self._to_be_ended_outside()), self.free(now))

    def enqueue(self, broker_url: str, number: int, times: int | None = None, *, queue: str | None = None) -> None:
        """Send `times` messages about a job to workers, after the commit; by default as many as its kind starts with.

        `queue` is the result of `queue_of`, if that may differ from the kind's.
        """
        queues.enqueue_job(broker_url, queue or self.queue, self.name, number, times or self.messages)

    def _to_be_run(self) -> ColumnElement[bool]:
        return or_(self.table.status.in_(states.OPEN), self._to_be_ended_outside())

    def _to_be_ended_outside(self) -> ColumnElement[bool]:
        return and_(self.table.status == states.CANCELLING, self.outside())

    def load_runner(self) -> Callable[[Any, int], None]:
        """Load the function that a worker calls with its context and a job's number."""
        module, _, function = self.runner.partition(":")
        found: Callable[[Any, int], None] = getattr(import_module(module), function)
        return found

    def update(self, session: Session, *which: ColumnElement[bool], **values: Any) -> None:
        """Set values of the rows that meet all conditions, only in the database."""
        statement = update(self.table).where(*which).values(**values)
        session.execute(statement, execution_options={"synchronize_session": False})


def finish(row: Any) -> None:
    """Set a job to done."""
    row.status, row.ended_at, row.error = states.DONE, datetime.now(UTC), None


def fail(row: Any, error: str) -> None:
    """Set a job to failed until the problem in `error` is fixed."""
    row.status, row.ended_at, row.error = states.FAILED, datetime.now(UTC), error
