"""Jobs that create other jobs and wait for them: stopping or resuming one also applies to the job it waits for."""

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy.orm import Session

from app.core.errors import AppError
from app.core.extensions import DATABASE_AWAY, writing
from app.jobs import states
from app.jobs.context import JobContext
from app.jobs.kind import LEASE, NO_BUDGET, JobKind, fail
from app.jobs.spec import JobBudget
from app.jobs.spending import BudgetReached, Spent, own_budget, reached, spent_by, stopped_by_budget

BETWEEN = timedelta(seconds=5)  # how long a process may take between ending a step and starting the next
_OVER = (states.FAILED, states.CANCELLED)

R = TypeVar("R", bound=Any)


class AwaitedJob(NamedTuple):
    """A job, by its number, that has to be over before another one continues."""

    kind: JobKind[Any]
    number: int

    def row(self, session: Session) -> Any:
        """The job's row."""
        return session.get_one(self.kind.table, self.number)


class ChainedKind(JobKind[R], Generic[R]):
    """A kind whose jobs wait for others most of the time, and hold their lease only while taking a step."""

    def awaited_jobs(self, session: Session, numbers: Collection[int]) -> dict[int, AwaitedJob]:
        """The job that each of these jobs has started and waits for, whatever became of it; jobs that wait for none are
        left out.
        """
        raise NotImplementedError

    def begun_jobs(self, session: Session, row: R) -> Sequence[AwaitedJob]:
        """All jobs that a job has begun."""
        raise NotImplementedError

    def take_steps(
        self, context: JobContext, number: int, steps: Callable[[JobContext, int], AwaitedJob | None]
    ) -> AwaitedJob | None:
        """Hold a job while `steps` takes all steps that are possible now.

        Returns the job to wait for before the next step, as `steps` does; None when the job is over or another worker
        has it. An AppError raised by `steps` is stored on the job's row.
        """
        with writing(context.database) as session:
            if not self.take(session, number, context.owner, LEASE):
                return None
        try:
            with self._renewed(context, number):
                return steps(context, number)
        except AppError as error:
            with writing(context.database) as session:
                if (row := self.running(session, number, context.owner)) is not None:
                    fail(row, error.message)
            return None
        finally:
            with writing(context.database) as session:
                self.release(session, number, context.owner)

    @contextmanager
    def _renewed(self, context: JobContext, number: int) -> Iterator[None]:
        """Renew a job's lease meanwhile: building a dataset from many matches takes longer than a lease lasts."""
        over = threading.Event()

        def renew() -> None:
            while not over.wait(LEASE / 3):
                with suppress(*DATABASE_AWAY), writing(context.database) as session:
                    if self.renew(session, number, context.owner, LEASE) is None:
                        return

        thread = threading.Thread(target=renew, name=f"lease of {self.name} {number}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def running(self, session: Session, number: int, owner: str) -> R | None:
        """The job, locked, if this owner still holds it and it is running."""
        row = self.locked(session, number, owner)
        return row if row is not None and row.status == states.RUNNING else None

    def budget_left(self, session: Session, row: R, but: AwaitedJob | None = None) -> JobBudget:
        """The budget of its next job, or of `but`, which it continues: its own budget minus what the others have spent.

        Raises BudgetReached if nothing is left.
        """
        own = own_budget(row)
        spent = self.spent_by_jobs(session, row, but) if own != NO_BUDGET else Spent()
        if (line := reached(own, spent)) is not None:
            raise BudgetReached(line)
        return JobBudget(usd=own.usd and own.usd - spent.usd, tokens=own.tokens and own.tokens - spent.tokens)

    def spent_by_jobs(self, session: Session, row: R, but: AwaitedJob | None = None) -> Spent:
        """The spending of all jobs that a job has started, except `but`."""
        begun = [(part.kind, part.row(session)) for part in self.begun_jobs(session, row) if part != but]
        return sum((spent_by(found) for kind, found in begun if kind.may_spend(found)), Spent())

    def is_done(self, session: Session, row: R, part: AwaitedJob) -> bool:
        """Whether the job that another one waits for is done; if it ended in another way, the waiting job fails.

        If the awaited job had been given the rest of the budget and reached it, the waiting job reports its own budget
        as reached.
        """
        found = part.row(session)
        if found.status in _OVER:
            why = found.error or f"its status is {found.status}"
            line = reached(own_budget(row), self.spent_by_jobs(session, row)) if stopped_by_budget(found) else None
            fail(row, line or f"{part.kind.name} {part.number}: {why}")
        return bool(found.status == states.DONE)

    def states_of(self, session: Session, rows: Sequence[R]) -> dict[int, str]:
        """The statuses; a job is interrupted if nobody works on it or on the job it waits for, and nobody will."""
        found = super().states_of(session, rows)
        alone = [row for row in rows if found[row.id] == states.INTERRUPTED]
        awaited = self.awaited_jobs(session, [row.id for row in alone]) if alone else {}
        worked_on = {
            AwaitedJob(kind, number)
            for kind in {part.kind for part in awaited.values()}
            for number in kind.with_worker(
                session, [part.row(session) for part in awaited.values() if part.kind is kind]
            )
        }
        now = datetime.now(UTC)
        for row in alone:
            part = awaited.get(row.id)
            just_left = row.lease_until is not None and row.lease_until > now - BETWEEN
            if just_left or part in worked_on:
                found[row.id] = row.status
        return found

    def cancel(self, session: Session, number: int) -> R:
        """Cancel a job, and the one that it waits for. Raises NotFound and Conflict."""
        row = super().cancel(session, number)
        part = self.awaited_jobs(session, [number]).get(number)
        if part is None:
            return row
        awaited = part.row(session)
        session.refresh(awaited, with_for_update=True)  # it may be ending right now, and then needs no cancelling
        if awaited.status in states.OPEN:
            part.kind.cancel(session, part.number)
        return row

    def resume(self, session: Session, number: int, *, queued: bool, budget: JobBudget = NO_BUDGET) -> R:
        """Resume a job, and the one that it waits for. Raises NotFound, Conflict and BudgetReached."""
        row = super().resume(session, number, queued=queued, budget=budget)
        part = self.awaited_jobs(session, [number]).get(number)
        if part is not None:
            spends = part.kind.may_spend(part.row(session))
            left = self.budget_left(session, row, part) if spends else NO_BUDGET
            part.kind.resume(session, part.number, queued=queued, budget=left)
        return row
