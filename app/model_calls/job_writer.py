"""Store the results of a worker's job that calls models, in groups, one transaction each.

Each transaction renews the lease, and is rolled back if another worker has it meanwhile.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Engine, update
from sqlalchemy.orm import Session

from app.core.extensions import MOST_SECONDS_AWAY, transact_with_retry
from app.jobs import states
from app.jobs.kind import JobKind
from app.jobs.spending import SpendingGate, spent_on
from app.matches.store import insert_generations
from app.registry.learnt import write_learnt

MOST_TOGETHER = 100  # calls in one transaction, for which others wait, people among them
MOST_WAITING = 500  # calls to be stored, at which callers wait for the database


_NO_STEPS: Mapping[int, Mapping[str, Any]] = {}
_NO_COUNTS: Mapping[str, float] = {}


class _Call(NamedTuple):
    """A call that is to be stored: its row, and what it adds to the job's figures."""

    row: Mapping[str, Any]
    counts: Mapping[str, float]


class JobLeaseLost(Exception):
    """Another worker runs the job."""


class CallWriter:
    """Writes for the worker that runs a job. Everything except the writing itself happens on the event loop."""

    def __init__(
        self,
        database: Engine,
        kind: JobKind[Any],
        parts: type[Any],
        number: int,
        owner: str,
        seconds: float,
        gate: SpendingGate,
    ) -> None:
        """`seconds` is how long a lease lasts. The kind's table has the figures that are counted, and `parts` is the
        table of the job's parts.
        """
        self.status = states.RUNNING  # the job's status when last read
        self.gate = gate  # which the job's calls pass
        self._database = database
        self._kind = kind
        self._parts = parts
        self._number = number
        self._owner = owner
        self._seconds = seconds
        self._calls: list[_Call] = []
        self._steps: dict[int, dict[str, Any]] = {}
        self._counts: dict[str, float] = {}
        self._something = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._closing = False
        self._writing = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="call writer")

    # ---- What there is to write --------------------------------------------------

    async def call(self, row: Mapping[str, Any], **counts: float) -> None:
        """Add a model call: a row of `calls.generation_row`, and what it adds to the job's figures and spending.

        Waits while the database is far behind.
        """
        self._calls.append(_Call(row, counts))
        self.gate.spend(spent_on(counts))
        self._something.set()
        if len(self._calls) > MOST_WAITING:
            self._room.clear()
            await self._room.wait()

    def step(self, part: int, **columns: Any) -> None:
        """Add what has become known of a part of the job, such as an interaction of a society."""
        self._steps.setdefault(part, {}).update(columns)
        self._something.set()

    def count(self, **counts: float) -> None:
        """Add to figures of the job, by the names of their columns."""
        for name, count in counts.items():
            self._counts[name] = self._counts.get(name, 0) + count
        self._something.set()

    # ---- Writing -----------------------------------------------------------------

    async def write_forever(self) -> None:
        """Store pending rows again and again, until `close`. Must not be cancelled: a group is either written or
        not.
        """
        while not self._closing:
            await self._something.wait()
            await self.flush()

    async def flush(self, also: Callable[[Session], None] = lambda _session: None) -> None:
        """Store everything pending and renew the lease; run `also` in the same transaction.

        Raises JobLeaseLost, and OperationalError if the database is away for too long.
        """
        # A caller cancelled while it waits must not keep a group from being counted as written.
        await asyncio.shield(asyncio.ensure_future(self._flush(also)))

    async def _flush(self, also: Callable[[Session], None]) -> None:
        async with self._writing:
            self._something.clear()
            calls, steps, counts = self._calls, self._steps, self._counts
            self._calls, self._steps, self._counts = [], {}, {}
            try:
                while len(calls) > MOST_TOGETHER:
                    self.status = await self._in_thread(partial(self._write_group, calls=calls[:MOST_TOGETHER]))
                    calls = calls[MOST_TOGETHER:]

                def work(session: Session) -> str:
                    status = self._write_group(session, calls, steps, counts)
                    also(session)
                    return status

                self.status = await self._in_thread(work)
            except Exception:
                self._put_back(calls, steps, counts)
                raise
            self._room.set()

    async def _in_thread(self, work: Callable[[Session], str]) -> str:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._insist, work)

    def _insist(self, work: Callable[[Session], str]) -> str:
        write_learnt(self._database)
        return transact_with_retry(self._database, work, MOST_SECONDS_AWAY)

    def _put_back(self, calls: list[_Call], steps: Mapping[int, dict[str, Any]], counts: Mapping[str, float]) -> None:
        """Queue again what could not be written, before anything added since."""
        since, self._calls = self._steps, calls + self._calls
        self._steps = {number: {**steps.get(number, {}), **since.get(number, {})} for number in {**steps, **since}}
        self.count(**counts)

    async def close(self, writer: "asyncio.Task[None]", leave: Callable[[Session], None]) -> None:
        """Store what is still pending and release the job with `leave`. Raises as `flush` does."""
        self._closing = True
        self._something.set()
        self._room.set()
        try:
            await writer
            await self.flush(leave)
        finally:
            self._thread.shutdown(wait=False)

    def _write_group(
        self,
        session: Session,
        calls: Sequence[_Call],
        steps: Mapping[int, Mapping[str, Any]] = _NO_STEPS,
        counts: Mapping[str, float] = _NO_COUNTS,
    ) -> str:
        # The job's row is locked first, as by everyone who takes more than one lock.
        total = Counter(counts)
        for each in calls:
            total.update(each.counts)
        added = {name: getattr(self._kind.table, name) + count for name, count in total.items()}
        progress = {"lease_count": 0} if calls or steps else {}
        status = self._kind.renew(session, self._number, self._owner, self._seconds, **progress, **added)
        if status is None:
            raise JobLeaseLost
        insert_generations(session, [each.row for each in calls])
        write_steps(session, self._parts, steps)
        return status


def write_steps(session: Session, table: type[Any], steps: Mapping[int, Mapping[str, Any]]) -> None:
    """Fill columns of rows of a table, by their ids."""
    if steps:
        session.execute(update(table), [{"id": number, **columns} for number, columns in steps.items()])
