"""Stores what a worker has played of a round, in groups, with a short transaction for each.

Of a group, only what belongs to ranges that the worker still holds is written: a worker that lost a lease writes
nothing more, and the new holder continues from what was written before.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any, cast

import structlog
from sqlalchemy import Engine, Table, Update, bindparam, update
from sqlalchemy.orm import Session

from app.core.extensions import DATABASE_AWAY, reason_of, transact_with_retry
from app.games.base import Event
from app.jobs.call_costs import Prices, is_unpriced
from app.jobs.spending import SPENT, SpendingGate, Spent, spent_on
from app.matches import store
from app.matches.engine import was_read_leniently
from app.matches.events import Aborted, Ended, Violated
from app.matches.selfplay import MatchRunner, RoundBlocked
from app.matches.stored import StoredMatch
from app.models import RoundRow
from app.registry.learnt import write_learnt
from app.rounds import lifecycle, ranges, returned_models
from app.rounds.job import SELFPLAY

MOST_TOGETHER = 20  # matches in one transaction, for which others wait, people among them
MOST_WAITING = 200  # matches with something to store, at which players wait for the database
MOST_SECONDS_AWAY = 60.0  # how long a database may be away before a round is given up for now

_TABLE = cast(Table, RoundRow.__table__)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class MatchUpdate:
    """The news of a match: its current record, how much of it is stored, and calls that are not."""

    start: int  # of the range
    index: int
    record: StoredMatch
    stored: int
    tokens: int | None
    calls: Sequence[dict[str, Any]]


@dataclass(slots=True)
class RangeProgress:
    """A range being played: the number of its unfinished matches, and those being played now.

    `lost`: another worker plays it, and none of its matches may be started any more.
    """

    start: int
    left: int
    playing: set[MatchRunner] = field(default_factory=set)
    lost: bool = False


class DatabaseAway(RoundBlocked):
    """The database was unavailable, or had no space, for longer than a worker waits for it."""


class RoundWriter:
    """The writer of one worker at one round. Everything except the writing itself runs on the event loop."""

    def __init__(
        self,
        database: Engine,
        round_id: int,
        owner: str,
        seconds: float,
        notify: Callable[[int], None],
        gate: SpendingGate,
        prices: Mapping[int | None, Prices | None],
    ) -> None:
        """Set up a writer. `seconds` is a lease's length; `notify` gets the round's number after each transaction.

        `gate` is what the round's calls pass, and `prices` are those of its models, by id.
        """
        self._gate = gate
        self._prices = prices
        self._database = database
        self._round_id = round_id
        self._owner = owner
        self._seconds = seconds
        self._notify = notify
        self._ranges: dict[int, RangeProgress] = {}
        self._of: dict[MatchRunner, int] = {}
        self._waiting: dict[MatchRunner, None] = {}
        self._finished: list[int] = []  # ranges to be marked as done
        self._something = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._wrote = asyncio.Event()
        self._closing = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="round writer")

    # ---- Ranges ----------------------------------------------------------------

    async def in_thread(self, work: Callable[[Session], Any]) -> Any:
        """Run `work` in its own transaction, off the event loop; it is retried while the database is unavailable."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._insist, work)

    @property
    def in_hand(self) -> frozenset[int]:
        """The starts of the ranges being played."""
        return frozenset(self._ranges)

    def open(self, start: int, left: int) -> RangeProgress:
        """Register the range taken at `start`, of which `left` matches are to be played."""
        progress = self._ranges[start] = RangeProgress(start, left)
        if left == 0:
            self._finished.append(start)
            self._something.set()
        return progress

    def add(self, runner: MatchRunner, progress: RangeProgress) -> None:
        """Register a match of the range that is being played."""
        progress.playing.add(runner)
        self._of[runner] = progress.start

    async def renew(self) -> None:
        """Renew the leases; ranges that were lost meanwhile are abandoned."""
        held = set(self._ranges)
        if held:
            hold = lambda session: ranges.renew(session, self._round_id, held, self._owner, self._seconds)  # noqa: E731
            self._lose(held.difference(await self.in_thread(hold)))

    def _lose(self, starts: Collection[int]) -> None:
        for start in starts:
            progress = self._ranges.pop(start, None)
            if progress is None:
                continue
            log.warning("a part of a round went to somebody else", round=self._round_id, start=start)
            progress.lost = True
            for runner in progress.playing:
                runner.closed = True
                self._waiting.pop(runner, None)
                self._of.pop(runner, None)

    # ---- Writing -----------------------------------------------------------------

    async def tell(self, runner: MatchRunner) -> None:
        """Report that something happened in a match. Waits while the database is far behind."""
        if runner in self._of:
            self._waiting[runner] = None
            self._something.set()
            if len(self._waiting) > MOST_WAITING:
                self._room.clear()
                await self._room.wait()

    async def written(self, most: float) -> None:
        """Wait until something has been written, for at most `most` seconds."""
        # Not asyncio.wait_for: before Python 3.12 it loses a cancellation that coincides with the event, and the worker
        # that waits for its cancelled players would wait for ever.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most):
                await self._wrote.wait()

    async def write_forever(self) -> None:
        """Store what is waiting, repeatedly, until `close`. Never cancel it: a group is written entirely or not."""
        while not self._closing:
            await self._something.wait()
            await self._write_group()

    async def close(self, writer: "asyncio.Task[None]", leave: Callable[[Session], None]) -> None:
        """Store what is still waiting, release the ranges with `leave`, and raise the error of either."""
        self._closing = True
        self._something.set()
        try:
            await writer
            while self._waiting or self._finished:
                await self._write_group()
        finally:
            await self.in_thread(leave)
            self._thread.shutdown(wait=False)

    async def _write_group(self) -> None:
        self._something.clear()
        group = list(islice(self._waiting, MOST_TOGETHER))
        entries = [self._entry(runner) for runner in group]
        for runner in group:
            del self._waiting[runner]
        if self._waiting:
            self._something.set()
        done, self._finished = [*self._finished, *self._settle_finished_matches()], []
        if entries or done:
            calls = [call for each in entries for call in each.calls]
            async with self._gate.books:
                self._lose(await self.in_thread(lambda session: self._store(session, entries, done)))
                self._gate.wrote(sum(map(spent_on, calls), Spent()), len(calls))
            for start in done:
                self._ranges.pop(start, None)
            self._notify(self._round_id)
        if len(self._waiting) <= MOST_WAITING:
            self._room.set()
        self._wrote.set()
        self._wrote.clear()

    def _entry(self, runner: MatchRunner) -> MatchUpdate:
        entry = MatchUpdate(self._of[runner], runner.index, runner.record, runner.stored, runner.tokens, runner.calls)
        runner.stored, runner.calls = len(runner.record.log), []
        return entry

    def _settle_finished_matches(self) -> list[int]:
        """Count the matches that are over with what has now been written, and return the ranges with none left."""
        done = []
        for runner in [
            runner for runner in self._of if runner.record.match.over and runner.stored == len(runner.record.log)
        ]:
            start = self._of.pop(runner)
            progress = self._ranges[start]
            progress.playing.discard(runner)
            progress.left -= 1
            if progress.left == 0:
                done.append(start)
        return done

    def _store(self, session: Session, entries: Sequence[MatchUpdate], done: Sequence[int]) -> set[int]:
        """Write entries and mark ranges as done, if they are still ours. Returns the ranges that are not."""
        # The round's row is locked first, as by everyone who takes more than one lock.
        names = lifecycle.lock(session, self._round_id)
        starts = {entry.start for entry in entries} | set(done)
        ours = set(ranges.renew(session, self._round_id, starts, self._owner, self._seconds, progress=True))
        entries = [entry for entry in entries if entry.start in ours]
        new = [store.NewMatch(each.record, SELFPLAY, self._round_id, each.index) for each in entries if not each.stored]
        if new:
            store.insert_matches(session, new)
        if known := [(each.record, each.stored) for each in entries if 0 < each.stored < len(each.record.log)]:
            store.append(session, known, of_round=True)
        store.insert_generations(session, [call for each in entries for call in each.calls])
        store.set_tokens(session, [(each.record.id, each.tokens) for each in entries if each.tokens is not None])
        added = self._increments(entries)
        more = {f"more_{name}": number for name, number in added.items()}
        session.execute(_addition(tuple(added)), {"of_round": self._round_id, **more})
        calls = (call for each in entries for call in each.calls)
        if (now := returned_models.with_calls(names, calls)) != names:
            session.execute(update(RoundRow).where(RoundRow.id == self._round_id).values(returned_models=now))
        if finished := ours & set(done):
            ranges.finish(session, self._round_id, finished)
            lifecycle.finish_if_done(session, self._round_id)
        return starts - ours

    def _increments(self, entries: Sequence[MatchUpdate]) -> dict[str, Any]:
        """The amounts that the entries add to the figures of their round."""
        logged = [(each.record.match, new.event) for each in entries for new in each.record.log[each.stored :]]
        kinds = Counter(type(event) for _, event in logged)
        calls = [call for each in entries for call in each.calls]
        return {
            "finished": kinds[Ended],
            "aborted": kinds[Aborted],
            "moves": kinds[Event],
            "violations": kinds[Violated],
            "lenient_moves": sum(was_read_leniently(match, event) for match, event in logged),
            "calls": sum(1 + call["retries"] for call in calls),
            "failed_calls": sum(call["error"] is not None for call in calls),
            **{name: sum(call[name] or 0 for call in calls) for name in SPENT},
            "unpriced_calls": sum(
                is_unpriced(call["cost"], call["error"], self._prices[call["language_model_id"]]) for call in calls
            ),
        }

    def _insist(self, work: Callable[[Session], Any]) -> Any:
        """Run `work`, retrying on conflicts, and until an unavailable database is back. Raises DatabaseAway."""
        write_learnt(self._database)
        try:
            return transact_with_retry(self._database, work, MOST_SECONDS_AWAY)
        except DATABASE_AWAY as error:
            raise DatabaseAway(f"the database took nothing for {MOST_SECONDS_AWAY:g} s: {reason_of(error)}") from None


@lru_cache(maxsize=1)
def _addition(names: tuple[str, ...]) -> Update:
    """The statement that adds to columns of a round. Every group takes it, and to build it anew takes twenty times as
    long as to run it.
    """
    columns = [_TABLE.c[name] for name in names]
    added = {column: column + bindparam(f"more_{column.name}") for column in columns}
    return update(_TABLE).where(_TABLE.c.id == bindparam("of_round")).values(added)
