"""The writer of the web process: commits moves together that arrive together.

One greenlet collects the waiting moves and hands them to one real thread, so that neither a commit nor a busy database
ever stalls the event loop. They are acknowledged after the common commit; if another process has meanwhile moved in one
of their matches, they are committed one by one instead. While the database is locked or away, they wait.
"""

import time
from collections import OrderedDict
from typing import cast

import structlog
from gevent import spawn
from gevent.event import AsyncResult
from gevent.queue import Queue
from gevent.threadpool import ThreadPool
from sqlalchemy import Engine
from sqlalchemy.pool import StaticPool

from app.core.errors import Unavailable
from app.core.extensions import is_away, is_full, lost_race, open_engine, reason_of, writing
from app.matches import live
from app.matches.stored import StoredMatch

_TOGETHER = 200  # most submissions in one transaction
_REMEMBERED = 5000  # matches whose state the writer keeps
MOST_SECONDS_AWAY = 60.0  # how long moves wait for a locked or unavailable database
_BETWEEN = 0.5  # seconds between two tries

log = structlog.get_logger()


class MoveWriter:
    """`submit` blocks its greenlet until the move is committed, then returns the receipt or raises."""

    def __init__(self, database_url: str, *, instant: bool) -> None:
        self._url = database_url
        self._instant = instant
        self._queue: Queue = Queue()
        self._thread = ThreadPool(1)
        self._engine: Engine | None = None  # created in the thread that uses it
        self._remembered: OrderedDict[str, StoredMatch] = OrderedDict()
        spawn(self._write_batches)

    def submit(self, submission: live.MoveSubmission) -> live.Receipt:
        """Commit a submission, together with others. Raises AppError as `live.submit` does."""
        result: AsyncResult = AsyncResult()
        self._queue.put((submission, result))
        receipt: live.Receipt = result.get()
        return receipt

    def remember(self, record: StoredMatch) -> None:
        """Keep a match that was just read. A version that the writer already has is newer."""
        if not record.match.over:
            self._remembered.setdefault(record.id, record)

    def _write_batches(self) -> None:
        while True:
            waiting = [self._queue.get()]
            while len(waiting) < _TOGETHER and not self._queue.empty():
                waiting.append(self._queue.get())
            submissions = [submission for submission, _ in waiting]
            receipts = self._thread.apply(self._commit, (submissions,))
            for (_, result), receipt in zip(waiting, receipts, strict=True):
                if isinstance(receipt, Exception):
                    result.set_exception(receipt)
                else:
                    result.set(receipt)

    def _commit(self, submissions: list[live.MoveSubmission]) -> list[live.Receipt | Exception]:
        """Commit all submissions in one transaction, in the thread, retrying until the database accepts it; if it never
        does, each gets the reason.
        """
        if self._engine is None:
            arguments = {"check_same_thread": False} if self._url.startswith("sqlite") else {}
            self._engine = open_engine(self._url, poolclass=StaticPool, connect_args=arguments)
        began, warned = time.monotonic(), False
        while True:
            try:
                with writing(self._engine) as session:
                    receipts = live.submit_together(session, submissions, self._remembered, instant=self._instant)
            except Exception as error:
                self._remembered.clear()
                if lost_race(error):  # another process has moved in one of the matches
                    return [self._commit_alone(submission) for submission in submissions]
                self._engine.dispose()
                if not is_away(error):
                    log.exception("a group of moves was not committed", moves=len(submissions))
                    return [error] * len(submissions)
                if not warned:
                    log.warning("the database is away, moves wait", moves=len(submissions), error=reason_of(error))
                    warned = True
                if is_full(error) or time.monotonic() - began > MOST_SECONDS_AWAY:
                    return [Unavailable("The database does not answer. Please send it again.")] * len(submissions)
                time.sleep(_BETWEEN)
            else:
                self._forget_the_rest(submissions)
                return list(receipts)

    def _commit_alone(self, submission: live.MoveSubmission) -> live.Receipt | Exception:
        try:
            return live.commit(cast(Engine, self._engine), submission, instant=self._instant)
        except Exception as error:  # about this submission only
            return error

    def _forget_the_rest(self, latest: list[live.MoveSubmission]) -> None:
        """Keep the active matches, most recently moved last, up to a maximum number; the others will be read again."""
        for submission in latest:
            record = self._remembered.pop(submission.match_id, None)
            if record is not None and not record.match.over:
                self._remembered[record.id] = record
        while len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)
