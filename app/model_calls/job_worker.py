"""A worker for one job that calls models from a single event loop: it holds the lease, waits, stops and cleans up.

It runs societies, and other jobs whose tables count calls as the table of societies does.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import structlog
from sqlalchemy import update
from sqlalchemy.orm import Session

from app.core.errors import AppError, Phrase
from app.core.extensions import DATABASE_AWAY, MOST_SECONDS_AWAY, reading, transact_with_retry, writing
from app.core.internal_errors import internal_error
from app.inference import engines
from app.jobs import states
from app.jobs.context import JobContext
from app.jobs.kind import JobKind
from app.jobs.kind import finish as finish_job
from app.jobs.leases import MOST_DEATHS
from app.jobs.spending import SpendingGate, budget_of, spent_by
from app.model_calls.job_calls import ChatBlocked, ChatModel
from app.model_calls.job_writer import CallWriter, JobLeaseLost
from app.models import LanguageModel
from app.registry.spending import limit_reader

GLANCE = 0.4  # seconds between two checks whether the job should stop

log = structlog.get_logger()


class CallingWorker:
    """Runs a job whose lease it holds. A subclass defines what to make, and with which models."""

    def __init__(
        self, context: JobContext, kind: JobKind[Any], parts: type[Any], row: Any, models: Mapping[int, ChatModel]
    ) -> None:
        """`models` are all that may be called, by id; `parts` is the table of the job's parts."""
        self.context = context
        gate = SpendingGate(
            budget_of(row, context.settings), spent_by(row), limit=limit_reader(context.database, context.settings)
        )
        lease = context.settings.ROUND_LEASE
        self.writer = CallWriter(context.database, kind, parts, row.id, context.owner, lease, gate)
        self._kind = kind
        self._number: int = row.id
        self._called = models
        self._waits_for: str | None = row.error  # as stored in the job's row
        self._done = False

    # ---- What a subclass says ----------------------------------------------------

    async def make(self) -> None:
        """Make everything that is left. Raises ChatBlocked."""
        raise NotImplementedError

    # ---- What all have -----------------------------------------------------------

    async def work(self) -> None:
        """Run until everything is made or the job is stopped, and clean up. Raises JobLeaseLost."""
        writer = asyncio.create_task(self.writer.write_forever())
        making, watch = asyncio.create_task(self._make()), asyncio.create_task(self._renew_lease_until_stop())
        await asyncio.wait({writer, making, watch}, return_when=asyncio.FIRST_COMPLETED)
        for task in (making, watch):
            task.cancel()
        problems = await asyncio.gather(making, watch, return_exceptions=True)
        error = next(filter(None, (self._error_of(problem) for problem in problems)), None)
        try:
            await self.writer.close(writer, lambda session: self._finish_if_done_and_release(session, error))
        except Exception as problem:
            reason = self._error_of(problem)
            if reason is None:
                raise
            await asyncio.to_thread(release, self.context, self._kind, self._number, reason)

    async def _make(self) -> None:
        await self.make()
        await self.writer.flush()
        self._done = True

    def _finish_if_done_and_release(self, session: Session, error: str | None) -> None:
        row = self._kind.locked(session, self._number, self.context.owner)
        if self._done and row is not None and row.status != states.CANCELLING:
            finish_job(row)
            error = None
        self._kind.release(session, self._number, self.context.owner, error)

    async def _renew_lease_until_stop(self) -> None:
        """Renew the lease, and return when the job should stop running. Raises JobLeaseLost."""
        loop = asyncio.get_running_loop()
        renew_at = loop.time() + self.context.settings.ROUND_LEASE / 3
        while self.writer.status in states.OPEN and not self.context.stopping.is_set():
            await asyncio.sleep(GLANCE)
            if loop.time() >= renew_at or await asyncio.to_thread(self._is_to_stop):
                await self.writer.flush()
                renew_at = loop.time() + self.context.settings.ROUND_LEASE / 3

    def _is_to_stop(self) -> bool:
        """Whether the job is being cancelled or was lost. Also writes to its row which model it waits for."""
        try:
            with reading(self.context.database) as session:
                row = self._kind.get(session, self._number)
                stopped = row.status not in states.OPEN or row.lease_owner != self.context.owner
            waiting = (each.patience.waits_for for each in self._called.values())
            waits_for = next((each for each in waiting if each), None)
            if not stopped and waits_for != self._waits_for:
                with writing(self.context.database) as session:
                    self._store_waiting_reason(session, waits_for)
                self._waits_for = waits_for
        except DATABASE_AWAY:
            return False  # the writer decides how long the database may be away
        return stopped

    def _store_waiting_reason(self, session: Session, what: str | None) -> None:
        table = self._kind.table
        own = update(table).where(table.id == self._number, table.lease_owner == self.context.owner)
        session.execute(own.values(error=what), execution_options={"synchronize_session": False})

    def _error_of(self, problem: Any) -> str | None:
        """The error message for the job's row; None without an error, and for errors that its writer meets as well."""
        if isinstance(problem, (JobLeaseLost, *DATABASE_AWAY)):
            return None
        if isinstance(problem, ChatBlocked):
            return str(problem)
        if isinstance(problem, AppError):
            return problem.message
        if isinstance(problem, Exception):
            return internal_error("a worker at a job broke", problem, kind=self._kind.name, job=self._number)
        return None


async def run_job(context: JobContext, kind: JobKind[Any], number: int, worker: type[Any]) -> None:
    """Take a job and run it with `worker(context, session, row)`; do nothing if another worker has it.

    Any error is stored on the job's row.
    """
    try:
        found = await asyncio.to_thread(_prepared, context, kind, number, worker)
    except AppError as error:
        await asyncio.to_thread(release, context, kind, number, error.message)
        return
    if found is None:
        return
    try:
        await found.work()
    except JobLeaseLost:
        log.warning("a job went to somebody else", kind=kind.name, job=number)
    # The next job in this process may need the memory.
    await engines.release_caches()


def _prepared(context: JobContext, kind: JobKind[Any], number: int, worker: type[Any]) -> Any:
    """The worker that runs the job, once its lease is taken; None if another worker has it. Raises AppError."""
    with writing(context.database) as session:
        if not kind.take(session, number, context.owner, context.settings.ROUND_LEASE):
            return None
    with reading(context.database) as session:
        row = kind.get(session, number)
        if row.lease_count >= MOST_DEATHS:
            again = Phrase("`flask %(kind)s resume %(number)s` tries again", kind=kind.name, number=number)
            raise AppError(
                f"{row.lease_count} workers died while running it, and no call was answered in between; {again}"
            )
        return worker(context, session, row)


def release(context: JobContext, kind: JobKind[Any], number: int, error: str) -> None:
    """Release a job that failed."""
    transact_with_retry(
        context.database, lambda session: kind.release(session, number, context.owner, error), MOST_SECONDS_AWAY
    )


def called_models(session: Session, numbers: Iterable[int], context: JobContext) -> dict[int, ChatModel]:
    """The models of these ids, each once, so that all of its calls share its limits. Raises Invalid."""
    patience, home = context.settings.ROUND_PATIENCE, context.settings.home
    return {
        number: ChatModel.of(session.get_one(LanguageModel, number), patience, home)
        for number in dict.fromkeys(numbers)
    }
