"""Matches that models play against each other: many at once, as coroutines on one event loop.

A match waits only for its own player, so the calls of all matches are in flight together, as far as the models' own
limits allow. Nothing is written here: the match's runner keeps what happened, and a callback stores it.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from app import training_part
from app.core.failures import BUSY, DENIED, MOST_BREAKS, OUR_FAULT, UNSUITED
from app.core.internal_errors import internal_error
from app.games.base import View
from app.jobs.call_costs import Prices
from app.jobs.spec import JobBudget
from app.jobs.spending import BudgetReached, SpendingGate, Spent, spent_by
from app.matches import engine
from app.matches.live import scripted_move
from app.matches.store import generation_row
from app.matches.stored import StoredMatch, StoredSeat, opened
from app.players import make_player
from app.players.base import Generation, InstantPlayer, ModelPlayer, PlayerFailed


class RoundBlocked(Exception):
    """No match can continue until the problem that the message names is fixed."""


class OutageTimer:
    """How long matches wait for a model that does not answer: `seconds` since its last answer to any of them.

    Waits grow from a second to half a minute, each drawn at random, so that calls are not all repeated at once.
    """

    FIRST, LONGEST = 1.0, 30.0  # seconds
    ANSWERS = 20

    def __init__(self, seconds: float, rng: random.Random, away: float | None = None) -> None:
        """`away` is for how many seconds the model has already not answered; None: unknown."""
        self._seconds = seconds
        self._rng = rng
        self._since = None if away is None else time.monotonic() - away
        self.waits_for: str | None = None  # the message of the model's last failure, until it answers again
        self.stuck: set[MatchRunner] = set()  # the matches that are still without an answer
        self._was_coming = False  # whether the training part was coming at the last wait
        self._answers = self._unsuited = 0
        self._blocked_by: str | None = None  # the failure after which no further call is worth making

    def answered(self) -> None:
        """Record that the model answered one of the matches."""
        self._since = self.waits_for = None
        self._answers += 1

    def blocks(self, failure: PlayerFailed) -> bool:
        """Whether no further call is worth making until something is fixed; `check_open` then raises the failure's
        message.

        Options that do not suit a model block at the first call, and later if more than one call in ANSWERS failed.
        """
        found = failure.kind == DENIED
        if failure.kind == UNSUITED:
            self._unsuited += 1
            found = self._unsuited * self.ANSWERS > self._answers
        if found:
            self._blocked_by = failure.message
        return found

    def check_open(self) -> None:
        """Raises RoundBlocked if an earlier failure rules out further calls."""
        if self._blocked_by is not None:
            raise RoundBlocked(self._blocked_by)

    @property
    def away(self) -> float:
        """For how many seconds the model has not answered."""
        return 0.0 if self._since is None else time.monotonic() - self._since

    @property
    def left(self) -> float:
        """For how many more seconds matches wait for the model."""
        return max(0.0, self._seconds - self.away)

    async def wait(self, failure: PlayerFailed, tries: int) -> None:
        """Wait before another try. Raises RoundBlocked when the model has been away for too long."""
        now, is_coming = time.monotonic(), training_part.is_coming()  # installing it may take long, but needs no help
        if self._since is None or is_coming or self._was_coming:  # a call may have begun before it was there
            self._since = now
        self._was_coming = is_coming
        self.waits_for = failure.message
        if now - self._since > self._seconds:
            raise RoundBlocked(f"no answer for {self._seconds:g} s: {failure.message}")
        await self.rest(tries)

    async def rest(self, tries: int) -> None:
        """Wait before repeating a call that has failed `tries` times."""
        await asyncio.sleep(self._rng.uniform(0.5, 1) * min(self.LONGEST, self.FIRST * 2**tries))


@dataclass(frozen=True, slots=True)
class SeatRunner:
    """A model in a round: its seat, how it plays, and how long matches wait for it."""

    seat: StoredSeat
    player: InstantPlayer | ModelPlayer
    patience: OutageTimer
    scripted: bool
    slots: asyncio.Semaphore  # one for each call of the model that may be in flight
    gate: SpendingGate = field(default_factory=lambda: SpendingGate(JobBudget(), Spent()))  # which its calls pass
    prices: Prices | None = None  # the model's prices; None: unknown

    @classmethod
    def of(cls, seat: StoredSeat, patience: OutageTimer, home: Path, **further: Any) -> "SeatRunner":
        """The runner of a model's seat; `home` is PARLOR_HOME, `further` are its gate and prices.

        Raises Invalid for a model that cannot be played with.
        """
        if seat.spec is None:
            raise ValueError("expected a model, got a person")
        player = cast(InstantPlayer | ModelPlayer, make_player(seat.spec, home))  # a model that only chats has no seat
        scripted = seat.spec.kind == "scripted"
        slots = asyncio.Semaphore(1 if scripted else cast(ModelPlayer, player).at_once)
        return cls(seat, player, patience, scripted, slots, **further)

    @property
    def at_once(self) -> int:
        """How many calls of the model may be in flight."""
        return 1 if self.scripted else cast(ModelPlayer, self.player).at_once

    def spend(self, generation: Generation) -> None:
        """Count the cost of a finished call."""
        self.gate.spend(spent_by(generation))


@dataclass(slots=True, eq=False)
class MatchRunner:
    """A match that is being played. The first `stored` events are in the database; `calls` are not yet."""

    index: int
    record: StoredMatch
    seat_runners: tuple[SeatRunner, SeatRunner]  # by seat
    stored: int = 0
    tokens: int | None = None  # in the accepted moves so far, if the models' servers count them
    calls: list[dict[str, Any]] = field(default_factory=list)  # rows of the generation table
    closed: bool = False  # another process plays it now
    seen: Callable[[View, int], View] | None = None  # changes views for the match of that index before models see them


def begin(
    game: str, config: dict[str, Any], seed: int, seat_runners: tuple[SeatRunner, SeatRunner], index: int
) -> MatchRunner:
    """A new match. Raises Invalid for a bad config."""
    return MatchRunner(index, opened(game, config, (seat_runners[0].seat, seat_runners[1].seat), seed), seat_runners)


async def play(runner: MatchRunner, tell: Callable[[MatchRunner], Awaitable[None]]) -> None:
    """Play a match to its end, from the move that is due.

    `tell` is awaited before each wait for a model, and at the end. Raises RoundBlocked and BudgetReached, and leaves
    the match unchanged then.
    """
    while (seat := runner.record.match.to_move) is not None and not runner.closed:
        seat_runner = runner.seat_runners[seat]
        if seat_runner.scripted:
            runner.record = scripted_move(runner.record, datetime.now(UTC))
        else:
            await tell(runner)
            await _ask_model(runner, seat, seat_runner, tell)
            seat_runner.patience.stuck.discard(runner)
    await tell(runner)


async def _ask_model(
    runner: MatchRunner, seat: int, seat_runner: SeatRunner, tell: Callable[[MatchRunner], Awaitable[None]]
) -> None:
    """Get one answer from a model, however long that takes; a refused answer counts as one."""
    tries = breaks = 0
    while not runner.closed:
        match = runner.record.match
        refused = [(violated.text, violated.reason) for violated in match.refused]
        player = cast(ModelPlayer, seat_runner.player)
        try:
            async with seat_runner.slots, seat_runner.gate.call(seat_runner.prices):
                seat_runner.patience.check_open()
                view = match.view(seat)
                shown = view if runner.seen is None else runner.seen(view, runner.index)
                generation = await player.reply(shown, match.prompts[seat] or {}, refused, runner.record.turn_seed)
        except (BudgetReached, RoundBlocked):
            raise
        except PlayerFailed as failure:
            seat_runner.spend(failure.generation)
            runner.calls.append(generation_row(runner.record, seat, failure.generation))
            if seat_runner.patience.blocks(failure):
                await tell(runner)  # the call is stored before the round stops
                raise RoundBlocked(failure.message) from None
            if failure.kind == BUSY:
                seat_runner.patience.stuck.add(runner)
                await tell(runner)
                await seat_runner.patience.wait(failure, tries)
                tries += 1
                continue
            runner.record = runner.record.extended(
                engine.abort(match, failure.fault, seat, failure.message), datetime.now(UTC)
            )
        except Exception as error:
            line = internal_error("a player broke", error, match=runner.record.id)
            breaks += 1
            if breaks < MOST_BREAKS:
                await seat_runner.patience.rest(breaks)
                continue
            events = engine.abort(match, OUR_FAULT, seat, line)
            runner.record = runner.record.extended(events, datetime.now(UTC))
        else:
            seat_runner.spend(generation)
            seat_runner.patience.answered()
            _play_answer(runner, seat, generation)
        return


def _play_answer(runner: MatchRunner, seat: int, generation: Generation) -> None:
    before = runner.record
    runner.calls.append(generation_row(before, seat, generation))
    runner.record = before.moved(seat, generation.text or "", datetime.now(UTC))
    if runner.record.match.ply > before.match.ply and generation.completion_tokens is not None:
        runner.tokens = (runner.tokens or 0) + generation.completion_tokens
