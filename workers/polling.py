"""Workers that need no broker: they poll the database for due work, and do what tasks would do.

`python -m workers.polling turns|batch|train THREADS [--until-idle SECONDS]`. Due work is a row, and its lease decides
who works on it. So any number of these processes can run, also alongside a broker's workers, and nothing is lost if one
of them polls late. A process that ends when idle can be a cluster job.
"""

import argparse
import math
import os
import signal
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
from app.core.queues import BATCH, TRAIN, TURNS, sign_of_worker
from app.job_kinds import JOB_KINDS
from app.jobs import leases, states
from app.matches.sweep import take_or_renew_lease, turn_is_free
from app.matches.turns import WorkerContext, play_turn
from app.model_calls.request_runner import make_request
from app.models import MatchRow, ModelRequest
from workers import context

EVERY = {TURNS: 0.25}  # seconds between polls; people wait for turns
EVERY_OTHER = 1.0
SIGN_EVERY, SIGN_HOLDS = 5.0, 20.0  # seconds; a worker reports in the database that it is alive
MOST_AT_ONCE = 500

log = structlog.get_logger()

Due = tuple[Hashable, Callable[[], object], float]  # what it is, what to do, seconds before it is done once more


class Poller:
    """One worker process, with its running and recently finished work."""

    def __init__(
        self, queue: str, threads: int, database: Engine, stopping: threading.Event, until_idle: float = math.inf
    ) -> None:
        """The worker ends once nothing has been running or due for `until_idle` seconds."""
        self._queue = queue
        self._database = database
        self._stopping = stopping
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=queue)
        self._threads = threads
        self._running: set[Hashable] = set()
        self._not_before: dict[Hashable, float] = {}
        self._owner = uuid.uuid4().hex
        self._sign_at = 0.0
        self._until_idle = until_idle
        self._worked_at = time.monotonic()

    def run(self) -> None:
        """Poll and work until asked to stop; running work then ends on its own, as in any worker."""
        away = False
        while not self._stopping.is_set() and time.monotonic() - self._worked_at < self._until_idle:
            try:
                self._give_sign()
                if self._begin_what_is_due():
                    self._worked_at = time.monotonic()
                away = False
            except SQLAlchemyError as error:
                if not away:  # once, however long it takes
                    log.warning("the database did not answer, trying again", error=reason_of(error))
                away = True
                self._worked_at = time.monotonic()  # nobody knows what waits
            self._stopping.wait(EVERY.get(self._queue, EVERY_OTHER))
        self._pool.shutdown(cancel_futures=True)

    def _begin_what_is_due(self) -> bool:
        """Start due work; returns whether any work is due or running."""
        room = self._threads - len(self._running)
        if room <= 0:
            return True
        with reading(self._database) as session:
            found = list(self._due(session))
        now = time.monotonic()
        self._not_before = {each: at for each, at in self._not_before.items() if at > now}
        for what, work, pause in found:
            if room > 0 and what not in self._running and what not in self._not_before:
                room -= 1
                self._running.add(what)
                self._pool.submit(self._work, what, work, pause)
        return bool(found or self._running)

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
        """Record in the database that this queue has a worker, for `flask doctor`."""
        if time.monotonic() < self._sign_at:
            return
        self._sign_at = time.monotonic() + SIGN_EVERY
        until = datetime.now(UTC) + timedelta(seconds=SIGN_HOLDS)
        with writing(self._database) as session:
            take_or_renew_lease(session, sign_of_worker(self._queue), self._owner, until)


def _in_context(work: Callable[[WorkerContext, Any], object], what: Any) -> None:
    work(context.context_for_task(), what)


def open_poller(queue: str, threads: int, settings: Settings, until_idle: float = math.inf) -> Poller:
    """A poller, with the process's context opened for it."""
    opened = context.open_context(settings)
    return Poller(queue, threads, opened.database, opened.stopping, until_idle)


def main() -> None:
    """Work until told to stop, or until nothing waits."""
    parser = argparse.ArgumentParser(prog="python -m workers.polling", description=__doc__.partition("\n")[0])
    parser.add_argument("queue", choices=(TURNS, BATCH, TRAIN), help="models' turns, rounds and the like, or trainings")
    parser.add_argument("threads", type=int, help="of work at once")
    parser.add_argument(
        "--until-idle", type=float, default=math.inf, metavar="SECONDS", help="end when nothing has waited for so long"
    )
    asked = parser.parse_args()
    os.umask(0o077)
    logs.set_up()
    for kind in JOB_KINDS:
        if kind.queue == asked.queue:
            kind.load_runner()
    poller = open_poller(asked.queue, asked.threads, load_settings(), asked.until_idle)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: context.stop_jobs())
    poller.run()


if __name__ == "__main__":
    main()
