"""One worker on one rehearsal: it sends the bots that have not finished yet, and stores what each of them saw.

If anything is killed, the next worker sends the remaining bots; each is the same person as before, and continues.
"""

import asyncio
import contextlib
import time
from dataclasses import asdict
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import AppError
from app.core.extensions import DATABASE_AWAY, reading, transact_with_retry, writing
from app.core.internal_errors import internal_error
from app.jobs import states
from app.jobs.context import JobContext
from app.jobs.kind import finish
from app.jobs.spec import JobBudget
from app.jobs.spending import BudgetReached, budget_of, reached
from app.models import Enrolment, GenerationRow, RehearsedBot, SeatRow, StudyVersion, Wave
from app.registry.spending import limit_reader, spent_on_calls
from app.studies import store
from app.studies.bots.copies import link_of
from app.studies.bots.job import LEASE, REHEARSAL, close_wave
from app.studies.bots.notes import BotNotes
from app.studies.bots.sending import AT_ONCE, send_bots
from app.studies.bots.server import check_server

_LIMIT_EVERY = 5.0  # seconds between two looks at everybody's spending
TICK = 1.0  # seconds between two checks whether the job should stop
AWAY = 120.0  # seconds that results wait for an unavailable database


def run(context: JobContext, number: int, at_once: int = AT_ONCE) -> None:
    """Run a rehearsal until it is over, or it or the worker is stopped; does nothing if another worker holds it.

    `at_once`: the number of bots active at the same time.
    """
    with writing(context.database) as session:
        if not REHEARSAL.take(session, number, context.owner, LEASE):
            return
    error = None
    try:
        asyncio.run(_RehearsalRunner(context, number, at_once).work())
    except DATABASE_AWAY:  # upkeep calls a worker once the database is back
        raise
    except AppError as problem:
        error = problem.message
    except Exception as problem:
        error = internal_error("a worker at a rehearsal broke", problem, job=number)
    transact_with_retry(
        context.database, lambda session: REHEARSAL.release(session, number, context.owner, error), AWAY
    )


class _RehearsalRunner:
    """See `run`."""

    def __init__(self, context: JobContext, number: int, at_once: int) -> None:
        self._context = context
        self._number = number
        self._at_once = at_once
        self._server = context.settings.web_url
        self._finished: list[BotNotes] = []  # not stored yet
        self._meets_paid = False  # whether bots play against models behind an API
        self._limit_due = 0.0  # by the clock of `time.monotonic`

    async def work(self) -> None:
        """Send bots until none is left or a stop is requested. Raises AppError if there is no web process."""
        await check_server(self._server)
        with reading(self._context.database) as session:
            row = REHEARSAL.get(session, self._number)
            done = {*session.scalars(select(RehearsedBot.number).where(RehearsedBot.rehearsal_id == self._number))}
            left = [number for number in range(row.bots) if number not in done]
            wave = session.get_one(Wave, row.wave_id)
            link, seed = link_of(session, wave), row.seed
            models = store.models_of(session, session.get_one(StudyVersion, wave.study_version_id))
            self._meets_paid = any(model.kind == "api" for model in models.values())
        keep = self._finished.append
        sent = send_bots(self._context.database, self._server, link, left, seed, keep, at_once=self._at_once)
        sending = asyncio.create_task(sent)
        try:
            while await self._goes_on() and not sending.done():
                await asyncio.wait({sending}, timeout=TICK)
            if sending.done():
                sending.result()
                await asyncio.to_thread(transact_with_retry, self._context.database, self._finish_rehearsal, AWAY)
        finally:
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending

    async def _goes_on(self) -> bool:
        """Store the bots that have finished, and renew the lease. False if the job must stop or is no longer ours.

        Raises BudgetReached.
        """
        known = len(self._finished)
        status = await asyncio.to_thread(transact_with_retry, self._context.database, self._renew, AWAY)
        del self._finished[:known]
        await asyncio.to_thread(self._check_budget)
        return status == states.RUNNING and not self._context.stopping.is_set()

    def _check_budget(self) -> None:
        """Raises BudgetReached if a spending limit is reached.

        That is: the models that the bots met have spent as much as the job may, or all spending together as much as the
        installation may.
        """
        if self._meets_paid and time.monotonic() >= self._limit_due:
            line = limit_reader(self._context.database, self._context.settings)()
            if line is not None:
                raise BudgetReached(line)
            self._limit_due = time.monotonic() + _LIMIT_EVERY
        with reading(self._context.database) as session:
            row = REHEARSAL.get(session, self._number)
            budget = budget_of(row, self._context.settings)
            if budget == JobBudget():
                return
            met = select(SeatRow.match_id).join(Enrolment, Enrolment.id == SeatRow.enrolment_id)
            theirs = met.where(Enrolment.wave_id == row.wave_id)
            if (line := reached(budget, spent_on_calls(session, GenerationRow.match_id.in_(theirs)))) is not None:
                raise BudgetReached(line)

    def _renew(self, session: Session) -> str | None:
        status = REHEARSAL.renew(session, self._number, self._context.owner, LEASE)
        if status is not None:
            self._write_notes(session)
        return status

    def _write_notes(self, session: Session) -> None:
        """Write the notes of each bot once, however often it is sent."""
        for notes in [*self._finished]:  # it grows meanwhile
            session.merge(RehearsedBot(rehearsal_id=self._number, number=notes.number, notes=asdict(notes)))

    def _finish_rehearsal(self, session: Session) -> None:
        row = REHEARSAL.locked(session, self._number, self._context.owner)
        if row is None:
            return
        self._write_notes(session)
        close_wave(session, row)
        finish(row)
        row.lease_owner, row.lease_until = None, datetime.now(UTC)
