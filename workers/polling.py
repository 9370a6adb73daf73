"""The workers of a Parlor without a broker: they look into the database for what is due, and do what tasks would do.

`python -m workers.polling turns|batch|train THREADS`. What is due is a row, and its lease decides who works on it, so
that there may be any number of these processes, and nothing is lost where one of them looks late.
"""

import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import structlog
from sqlalchemy import Engine, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.core import logs
from app.core.config import Settings, load_settings
from app.core.extensions import reading, reason_of, writing
from app.core.queues import TURNS, sign_of_worker
from app.job_kinds import JOB_KINDS
from app.jobs import leases, states
from app.matches.sweep import take_or_renew_lease, turn_is_free
from app.matches.turns import WorkerContext, play_turn
from app.model_calls.request_runner import make_request
from app.models import MatchRow, ModelRequest
from workers import context

EVERY = {TURNS: 0.25}  # seconds between two looks, for people wait for turns
EVERY_OTHER = 1.0
SIGN_EVERY, SIGN_HOLDS = 5.0, 20.0  # seconds; a worker says in the database that it is there
MOST_AT_ONCE = 500

log = structlog.get_logger()

Due = tuple[Hashable, Callable[[], object], float]  # what it is, what to do, seconds before it is done once more


class Poller:
    """One worker process: what it is at, and what it has lately been at."""

    def __init__(self, queue: str, threads: int, database: Engine, stopping: threading.Event) -> None:
        self._queue = queue
        self._database = database
        self._stopping = stopping
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=queue)
        self._threads = threads
        self._running: set[Hashable] = set()
        self._not_before: dict[Hashable, float] = {}
        self._owner = uuid.uuid4().hex
        self._sign_at = 0.0

    def run(self) -> None:
        """Look and work until asked to stop; what is under way then ends by itself, as at any worker."""
        away = False
        while not self._stopping.is_set():
            try:
                self._give_sign()
                self._begin_what_is_due()
                away = False
            except SQLAlchemyError as error:
                if not away:  # once, however long it takes
                    log.warning("the database did not answer, trying again", error=reason_of(error))
                away = True
            self._stopping.wait(EVERY.get(self._queue, EVERY_OTHER))
        self._pool.shutdown(cancel_futures=True)

    def _begin_what_is_due(self) -> None:
        room = self._threads - len(self._running)
        if room <= 0:
            return
        with reading(self._database) as session:
            found = list(self._due(session))
        now = time.monotonic()
        self._not_before = {each: at for each, at in self._not_before.items() if at > now}
        for what, work, pause in found:
            if room > 0 and what not in self._running and what not in self._not_before:
                room -= 1
                self._running.add(what)
                self._pool.submit(self._work, what, work, pause)

    def _due(self, session: Session) -> Iterator[Due]:
        now = datetime.now(UTC)
        if self._queue == TURNS:
            turns = select(MatchRow.id).where(turn_is_free(now)).order_by(MatchRow.moved_at).limit(MOST_AT_ONCE)
            for match_id in session.scalars(turns):
                yield match_id, partial(_in_context, play_turn, match_id), 0.5
            waits = ModelRequest.status.in_(states.OPEN) & leases.free(ModelRequest, now)
            for number in session.scalars(select(ModelRequest.id).where(waits).limit(MOST_AT_ONCE)):
                yield number, partial(_in_context, make_request, number), 0.5
        for kind in JOB_KINDS:
            for number in kind.due(session):
                if kind.queue_of(session, number) == self._queue:
                    yield (kind.name, number), partial(_in_context, kind.load_runner(), number), 2.0

    def _work(self, what: Hashable, work: Callable[[], object], pause: float) -> None:
        try:
            work()
        except Exception:
            log.exception("a worker broke", at=what)
        finally:
            self._not_before = {**self._not_before, what: time.monotonic() + pause}
            self._running.discard(what)

    def _give_sign(self) -> None:
        """Say in the database that this queue has a worker, for `flask doctor`."""
        if time.monotonic() < self._sign_at:
            return
        self._sign_at = time.monotonic() + SIGN_EVERY
        until = datetime.now(UTC) + timedelta(seconds=SIGN_HOLDS)
        with writing(self._database) as session:
            take_or_renew_lease(session, sign_of_worker(self._queue), self._owner, until)


def _in_context(work: Callable[[WorkerContext, Any], object], what: Any) -> None:
    work(context.context_for_task(), what)


def open_poller(queue: str, threads: int, settings: Settings) -> Poller:
    """A poller with the process's context, which is opened for it."""
    opened = context.open_context(settings)
    return Poller(queue, threads, opened.database, opened.stopping)


def main() -> None:
    """Work until told to stop."""
    os.umask(0o077)
    logs.set_up()
    queue, threads = sys.argv[1], int(sys.argv[2])
    for kind in JOB_KINDS:
        if kind.queue == queue:
            kind.load_runner()
    poller = open_poller(queue, threads, load_settings())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: context.stop_jobs())
    poller.run()


if __name__ == "__main__":
    main()
