"""One worker at one round: it takes ranges, plays their matches at once, stores them, and stops on request.

The worker may be a Celery task, or a command in a terminal. Any number of them, on any machines, can play one round.
"""

import asyncio
import contextlib
import gc
import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.core.errors import AppError
from app.core.extensions import DATABASE_AWAY, reading, writing
from app.core.internal_errors import internal_error
from app.inference import engines
from app.jobs import states
from app.jobs.context import JobContext
from app.jobs.leases import MOST_DEATHS
from app.jobs.spec import JobBudget
from app.jobs.spending import SpendingGate, Spent, budget_of, spent_by
from app.matches import selfplay
from app.matches.selfplay import MatchRunner, OutageTimer, RoundBlocked, SeatRunner
from app.matches.stored import MODEL, StoredMatch, StoredSeat, load
from app.matches.turns import WorkerContext
from app.models import GenerationRow, MatchRow, RoundRow
from app.registry.prompts import player_prompt
from app.registry.spending import limit_reader
from app.rounds import lifecycle, ranges
from app.rounds.exchanged_talk import Messages, exchanged, messages_of
from app.rounds.job import ROUND
from app.rounds.plan import MatchSetup, RoundPlan, setup
from app.rounds.prices import prices_by_model, store_prices, with_prices
from app.rounds.ranges import LeasedRange
from app.rounds.sampling import player_of
from app.rounds.writer import DatabaseAway, RangeProgress, RoundWriter

GLANCE = 0.4  # seconds between two checks whether the round should stop
MOST_MATCHES = 2048  # played by a worker at once
HOLD = 5.0  # seconds that a worker stays with a round whose matches are all stuck
RETRY_AFTER = 30.0  # seconds until a worker checks again whether the model answers

_joined: set[int] = set()  # the rounds that this process plays
_joining = threading.Lock()


def freeze_garbage_collector() -> None:
    """Freeze the garbage collector in a process that plays rounds, once it has loaded what it needs. Matches leave no
    cycles, and searching everything that was loaded for some would take a tenth of its time.
    """
    gc.collect()
    gc.freeze()


def run(worker: WorkerContext, round_id: int) -> None:
    """Join a round, if this process has not yet, and stay until it is over."""
    with _joining:
        if round_id in _joined:
            return
        _joined.add(round_id)
    try:
        asyncio.run_coroutine_threadsafe(play_round(worker, round_id), worker.loop).result()
    finally:
        with _joining:
            _joined.discard(round_id)


async def play_round(
    context: JobContext, round_id: int, notify: Callable[[int], None] = lambda _round_id: None
) -> bool:
    """Play the free parts of a round until nothing is left, or the round or the worker is stopped.

    `notify` is called with the round's number after each transaction. False if there was nothing to do. Any problem
    with a model is stored on the round's row.
    """
    runner = await asyncio.to_thread(_prepared, context, round_id, notify)
    if runner is None:
        return False
    await runner.work()
    # Its matches are over, and the next job in this process may need the memory.
    await engines.release_caches()
    return True


def _prepared(context: JobContext, round_id: int, notify: Callable[[int], None]) -> "_RoundRunner | None":
    with writing(context.database) as session:
        if not lifecycle.begin(session, round_id):
            return None
        row = ROUND.get(session, round_id)
        store_prices(row, lifecycle.seated(session, row))
        plan = lifecycle.plan_of(session, row)
        try:
            seat_runners = _seat_runners(session, row, context)
            talk = [] if row.talk_of is None else messages_of(session, row.talk_of)
        except AppError as error:
            lifecycle.fail(session, round_id, error.message)
            return None
        return _RoundRunner(context, round_id, plan, seat_runners, notify, talk, gives_way=row.queued)


def _seat_runners(session: Session, row: RoundRow, context: JobContext) -> tuple[SeatRunner, SeatRunner]:
    """The models of a round, by seat; one that plays against itself shares one outage timer and one limit."""
    patience: dict[int, OutageTimer] = {}
    slots: dict[int, asyncio.Semaphore] = {}
    made, settings, models = [], context.settings, lifecycle.seated(session, row)
    latest, limit = partial(_read_spending, context, row.id), limit_reader(context.database, settings)
    gate = SpendingGate(budget_of(row, settings), spent_by(row), latest, limit)
    prices = prices_by_model(row, models)
    for place, model in enumerate(models):
        rng = random.Random(f"{row.seed}/waits")
        away = lifecycle.away_seconds(row, model.id)
        waits = patience.setdefault(model.id, OutageTimer(settings.ROUND_PATIENCE, rng, away))
        system = player_prompt(session, None if row.prompts is None else row.prompts[place])
        player = replace(player_of(model, row.sampling), system=system)
        seat = StoredSeat(MODEL, model.id, with_prices(player, prices[model.id]))
        runner = SeatRunner.of(seat, waits, settings.home, gate=gate, prices=prices[model.id])
        made.append(replace(runner, slots=slots.setdefault(model.id, runner.slots)))
    return made[0], made[1]


def _read_spending(context: JobContext, round_id: int) -> tuple[JobBudget, Spent]:
    """The budget of a round and its spending so far, whoever plays it."""
    with reading(context.database) as session:
        row = ROUND.get(session, round_id)
        return budget_of(row, context.settings), spent_by(row)


class _RoundRunner:
    """See `play_round`."""

    def __init__(
        self,
        context: JobContext,
        round_id: int,
        plan: RoundPlan,
        seat_runners: tuple[SeatRunner, SeatRunner],
        notify: Callable[[int], None],
        talk: Sequence[Messages],
        *,
        gives_way: bool,
    ) -> None:
        """Set up a runner. `talk` has the messages that models read in place of their partners', if any.

        `gives_way`: whether others may need the worker, so that it does not stay while all matches are stuck.
        """
        self._gives_way = gives_way
        self._seen = partial(exchanged, talk) if talk else None
        self._playing = 0  # matches in progress
        self._context = context
        self._round_id = round_id
        self._plan = plan
        self._seat_runners = seat_runners
        self._lease = context.settings.ROUND_LEASE
        self._notify = notify
        self._gate = seat_runners[0].gate
        prices = {each.seat.language_model_id: each.prices for each in seat_runners}
        self._writer = RoundWriter(context.database, round_id, context.owner, self._lease, notify, self._gate, prices)
        self._begun: deque[MatchRunner] = deque()  # matches that were already begun
        self._new: deque[tuple[int, RangeProgress]] = deque()  # index, and its range
        self._taking = asyncio.Lock()
        self._over = False
        self._problem: str | None = None
        self._database_away = False
        self._away: SeatRunner | None = None  # the model whose outage makes the round give way

    async def work(self) -> None:
        """Play until nothing is left or a stop is requested, and leave everything in a consistent state."""
        each = {seat_runner.seat.language_model_id: seat_runner for seat_runner in self._seat_runners}.values()
        at_once = min(MOST_MATCHES, sum(seat_runner.at_once for seat_runner in each))
        writer = asyncio.create_task(self._writer.write_forever())
        players = [asyncio.create_task(self._play_on()) for _ in range(at_once)]
        watch = asyncio.create_task(self._renew_leases_until_stop())
        everybody = asyncio.gather(*players)
        first: set[asyncio.Future[Any]] = {everybody, writer, watch}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        for task in (*players, watch):
            task.cancel()
        for result in await asyncio.gather(*players, watch, everybody, return_exceptions=True):
            self._note(result)
        try:
            await self._writer.close(writer, self._release_unplayed)
        except Exception as error:
            self._note(error)
            await asyncio.to_thread(self._give_up)
        self._notify(self._round_id)

    def _note(self, result: Any) -> None:
        """Keep the first problem, for the round's row."""
        if isinstance(result, DatabaseAway):
            self._database_away = True
        if isinstance(result, RoundBlocked | AppError):
            self._problem = self._problem or str(result)
        elif isinstance(result, Exception):
            line = internal_error("a worker at a round broke", result, round=self._round_id)
            self._problem = self._problem or line

    def _release_unplayed(self, session: Session) -> None:
        """Release what was not played. A queued round resumes on its own once the database accepts writes again."""
        lifecycle.lock(session, self._round_id)
        waits = self._database_away and ROUND.get(session, self._round_id).queued
        if self._problem is not None and not waits:
            lifecycle.fail(session, self._round_id, self._problem)
        ranges.release(session, self._round_id, self._context.owner)
        if self._away is not None:
            patience, model_id = self._away.patience, self._away.seat.language_model_id
            # The last try comes when the patience runs out, not a pause later.
            pause = min(RETRY_AFTER, patience.left)
            lifecycle.release_slot(
                session, self._round_id, model_id or 0, patience.away, pause, patience.waits_for or ""
            )
        ROUND.settle_cancelled(session, self._round_id)

    def _give_up(self) -> None:
        """Store why nothing could be written, if at least that can be written."""
        with contextlib.suppress(SQLAlchemyError), writing(self._context.database) as session:
            self._release_unplayed(session)

    # ---- Matches ---------------------------------------------------------------

    async def _play_on(self) -> None:
        """Play one match after another."""
        while (runner := await self._next_match()) is not None:
            self._playing += 1
            await selfplay.play(runner, self._writer.tell)
            self._playing -= 1
            await asyncio.sleep(0)  # a match without waits must not block the others

    async def _next_match(self) -> MatchRunner | None:
        """The next match to play, those already begun first; None when the round is over."""
        async with self._taking:
            while not self._over:
                if self._begun:
                    return self._begun.popleft()
                if not self._new:
                    await self._take_range()
                    continue
                index, progress = self._new.popleft()
                if progress.lost:
                    continue
                planned = setup(self._plan, index)
                runner = selfplay.begin(self._plan.game, planned.config, planned.seed, self._seated(planned), index)
                runner.seen = self._seen
                self._writer.add(runner, progress)
                return runner
        return None

    async def _take_range(self) -> None:
        """Take a free range, or wait a moment while others play all the remaining ones."""
        in_hand = self._writer.in_hand
        taken, left = await self._writer.in_thread(lambda session: self._lease_next_range(session, in_hand))
        if taken is None:
            self._over = not left
            if left:
                await self._writer.written(GLANCE)
            return
        begun, over = await asyncio.to_thread(self._stored_matches_of_range, taken)
        todo = [index for index in range(taken.start, taken.stop) if index not in over]
        progress = self._writer.open(taken.start, len(todo))
        for runner in begun:
            self._writer.add(runner, progress)
        known = {runner.index for runner in begun}
        self._begun.extend(begun)
        self._new.extend((index, progress) for index in todo if index not in known)

    def _lease_next_range(self, session: Session, in_hand: frozenset[int]) -> tuple[LeasedRange | None, bool]:
        taken = ranges.take(session, self._round_id, self._context.owner, self._lease, in_hand)
        if taken is not None and taken.leases >= MOST_DEATHS:
            raise RoundBlocked(
                f"{taken.leases} workers died while playing the matches {taken.start} to {taken.stop - 1}; `flask"
                " round resume` tries them again"
            )
        return taken, taken is not None or not ranges.all_done(session, self._round_id)

    def _stored_matches_of_range(self, taken: LeasedRange) -> tuple[list[MatchRunner], set[int]]:
        """The matches of a range that have begun, and the indices of those that are over."""
        with reading(self._context.database) as session:
            rows = session.execute(
                select(MatchRow.id, MatchRow.index.label("number"), MatchRow.status).where(
                    MatchRow.round_id == self._round_id, MatchRow.index >= taken.start, MatchRow.index < taken.stop
                )
            ).all()
            begun = [self._resumed(session, row.id, row.number) for row in rows if row.status != "over"]
        return begun, {row.number for row in rows if row.status == "over"}

    def _resumed(self, session: Session, match_id: str, index: int) -> MatchRunner:
        """The runner of a match that has begun, with its models sampled as the round specifies."""
        seat_runners = self._seated(setup(self._plan, index))
        record = replace(load(session, match_id), seats=(seat_runners[0].seat, seat_runners[1].seat))
        return MatchRunner(
            index, record, seat_runners, len(record.log), _tokens_of_moves(session, record), seen=self._seen
        )

    def _seated(self, planned: MatchSetup) -> tuple[SeatRunner, SeatRunner]:
        """The seat runners of a match, by the match's seats."""
        return (self._seat_runners[1], self._seat_runners[0]) if planned.swapped else self._seat_runners

    # ---- Looking after ---------------------------------------------------------

    async def _renew_leases_until_stop(self) -> None:
        """Renew the leases, and return when the round must stop."""
        until = 0.0
        loop = asyncio.get_running_loop()
        while True:
            if loop.time() >= until:
                await self._writer.renew()
                until = loop.time() + self._lease / 3
            goes_on = await asyncio.to_thread(self._goes_on)
            # Calls in flight when a budget is reached are paid for, so they are waited for, whoever noticed it first.
            is_paid_for = self._gate.under_way and self._gate.is_reached
            if self._context.stopping.is_set() or not (goes_on or is_paid_for):
                return
            self._away = self._stuck()
            if self._away is not None:
                return
            await asyncio.sleep(GLANCE)

    def _stuck(self) -> SeatRunner | None:
        """The model that is not answering, if no match can continue without it and others may need the worker."""
        if not self._gives_way or not self._playing:
            return None
        stuck = set().union(*(seat_runner.patience.stuck for seat_runner in self._seat_runners))
        if len(stuck) < self._playing:
            return None
        away = max(self._seat_runners, key=lambda seat_runner: seat_runner.patience.away)
        return away if away.patience.away >= HOLD else None

    def _goes_on(self) -> bool:
        """Whether the round is still to be played. Stores on its row what it is waiting for."""
        try:
            with reading(self._context.database) as session:
                row = session.execute(
                    select(RoundRow.status, RoundRow.error).where(RoundRow.id == self._round_id)
                ).one()
            waits_for = next(
                (
                    seat_runner.patience.waits_for
                    for seat_runner in self._seat_runners
                    if seat_runner.patience.waits_for
                ),
                None,
            )
            if row.status == states.RUNNING and row.error != waits_for:
                with writing(self._context.database) as session:
                    lifecycle.store_waiting_reason(session, self._round_id, waits_for)
        except DATABASE_AWAY:
            return True  # the writer decides how long the database may be away
        return row.status in states.OPEN


def _tokens_of_moves(session: Session, record: StoredMatch) -> int | None:
    """The tokens of a match's accepted moves: those of the last call for each ply played."""
    rows = session.execute(
        select(GenerationRow.ply, GenerationRow.completion_tokens)
        .where(GenerationRow.match_id == record.id, GenerationRow.ply < record.match.ply, GenerationRow.error.is_(None))
        .order_by(GenerationRow.id)
    )
    last = {row.ply: row.completion_tokens for row in rows if row.completion_tokens is not None}
    return sum(last.values()) if last else None
