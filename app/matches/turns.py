"""A language model's turn in a live match: take the lease, ask the player, submit, tell the web.

The message that starts this may come twice or never: the lease, one conditional UPDATE, decides who plays, and a lease
that ran out is taken by the next worker that is told. Whatever a player does, the match goes on or ends cleanly.
"""

import asyncio
import concurrent.futures
import random
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import structlog
from sqlalchemy import update
from sqlalchemy.orm import Session

from app import training_part
from app.core.config import Settings
from app.core.errors import AppError
from app.core.extensions import DATABASE_AWAY, reading, reason_of, transact_with_retry, writing
from app.core.failures import BUSY, MODEL_FAULT, OUR_FAULT, Fault
from app.core.internal_errors import internal_error
from app.core.queues import Typing
from app.jobs.context import JobContext
from app.matches import live, turn_leases
from app.matches.events import Violated
from app.matches.move_timing import reply_timing
from app.matches.safety import unsafe
from app.matches.store import generation_row, insert_generations
from app.matches.stored import StoredMatch, load, turn_began
from app.matches.turn_leases import LeaseLost, Taken
from app.models import MatchRow
from app.players import make_player
from app.players.base import URGENT, Generation, ModelPlayer, PlayerFailed, PlayerSpec
from app.players.local.player import LocalPlayer
from app.registry.learnt import write_learnt

LONGEST_PAUSE = 8.0  # seconds between two calls of a model that is away
REST = 5.0  # seconds until a turn that waits for the training part is checked again
REDRAWS = 2  # of a text that people in a study should not read

_SLICE = 1.0  # seconds; how much of a pause of the whole process counts as waiting
_preparing = threading.Lock()  # otherwise each of many waiting threads would load the libraries

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class WorkerContext(JobContext):
    """A worker's context for turns and jobs: a job's context, the event loop on which models are called, and
    `notify(match, typing)`, which notifies the web processes about a match.
    """

    loop: asyncio.AbstractEventLoop = field(kw_only=True)
    notify: Callable[[str, Typing], None] = field(kw_only=True)

    def call(
        self, ask: Callable[[], Coroutine[Any, Any, Generation]], seconds: float | None = None
    ) -> "concurrent.futures.Future[Generation]":
        """Have the event loop ask a model. The future raises TimeoutError after `seconds`; None: TURN_SECONDS."""
        longest = self.settings.TURN_SECONDS if seconds is None else seconds
        return asyncio.run_coroutine_threadsafe(answer_within(longest, ask), self.loop)


async def answer_within(seconds: float, ask: Callable[[], Coroutine[Any, Any, Generation]]) -> Generation:
    """A model's answer that a person waits for. Raises TimeoutError after `seconds` in which this process ran.

    A process that was paused for a while, as on a machine that slept, finds the answer when it resumes.
    """
    URGENT.set(True)  # for this task and the one that asks
    # Created in here, so that no request is made in vain if the loop ends before this begins.
    answer = asyncio.ensure_future(ask())
    try:
        clock, left = asyncio.get_running_loop().time, seconds
        while left > 0:
            slice_seconds, began = min(left, _SLICE), clock()
            if (await asyncio.wait({answer}, timeout=slice_seconds))[0]:
                return answer.result()
            left -= min(clock() - began, 2 * slice_seconds)
        raise TimeoutError
    finally:
        answer.cancel()


def play_turn(context: WorkerContext, match_id: str) -> bool:
    """Play the model's due turns in a match. False if there is nothing to do, or another worker does it."""
    try:
        record = _begin_turn(context, match_id)
        if record is None:
            return False
        while record.model_to_move:
            missing = _missing_part(record)
            if missing is not None and not missing.has_failed:
                log.info("a turn waits for the training part", match=match_id)
                turn_leases.give_back(context, match_id, REST)
                return False
            if missing is not None:
                record = _abort(context, record, OUR_FAULT, str(missing.reason()), None)
            else:
                record = _play_once(context, record)
            context.notify(match_id, record.model_to_move)
    except LeaseLost:
        log.info("the turn went to somebody else", match=match_id)
        return False
    except DATABASE_AWAY as error:
        log.warning("the database took no turn, upkeep asks again", match=match_id, error=reason_of(error))
        turn_leases.give_back(context, match_id)
        return False
    return True


def _begin_turn(context: WorkerContext, match_id: str) -> StoredMatch | None:
    """Take the lease of a turn; None where there is nothing to play."""
    with writing(context.database) as session:
        taken = turn_leases.take(session, context, match_id)
    if taken is not Taken.OURS:
        if taken is Taken.GIVEN_UP:
            context.notify(match_id, False)
        return None
    with reading(context.database) as session:
        record = load(session, match_id)
    with _preparing:
        record.match.game.prepare()
    begins = record.model_to_move and _missing_part(record) is None
    context.notify(match_id, None if begins and _is_to_be_loaded(context, record) else begins)
    return record


def _is_to_be_loaded(context: WorkerContext, record: StoredMatch) -> bool:
    """Whether the model that is to move is a local one run by workers that is not in memory yet."""
    spec = record.seats[cast(int, record.match.to_move)].spec
    if spec is None or spec.kind != "local" or spec.served is not None:
        return False
    try:
        player = cast(LocalPlayer, make_player(spec, context.settings.home))
    except AppError:  # the turn itself reports the error
        return False
    return not asyncio.run_coroutine_threadsafe(player.is_loaded(), context.loop).result()


def _missing_part(record: StoredMatch) -> training_part.Lacking | None:
    """Why the model that is to move cannot be loaded yet; None where nothing is known to be missing."""
    spec = cast(PlayerSpec, record.seats[cast(int, record.match.to_move)].spec)
    return training_part.lacking() if spec.kind == "local" and spec.served is None else None


def _play_once(context: WorkerContext, record: StoredMatch) -> StoredMatch:
    """Make one attempt at the turn, which may be refused. Returns the match after it."""
    began = time.monotonic()
    seat = cast(int, record.match.to_move)
    spec = cast(PlayerSpec, record.seats[seat].spec)
    try:
        if spec.kind == "scripted":
            text, generation = live.scripted_text(record), None
        else:
            generation = _ask_safely(context, record, seat, spec)
            text = generation.text or ""
    except LeaseLost:
        raise
    except PlayerFailed as failure:
        log.warning("a model gave no answer", match=record.id, model=spec.name, error=failure.message)
        return _abort(context, record, failure.fault, failure.message, failure.generation)
    except TimeoutError as late:
        log.warning("a model took too long", match=record.id, model=spec.name)
        before = f"; before that: {late}" if str(late) else ""
        detail = f"no answer within {context.settings.TURN_SECONDS:g} s{before}"
        return _abort(context, record, MODEL_FAULT, detail, None)
    except DATABASE_AWAY:
        raise
    except Exception as error:
        line = internal_error("a player broke", error, match=record.id, model=spec.name)
        return _abort(context, record, OUR_FAULT, line, None)
    timing = None
    if record.options is None:
        pause = reading_delay(record, text, context.settings) - (time.monotonic() - began)
    else:
        asked_at, now = turn_began(record.log), datetime.now(UTC)
        timing = reply_timing(record.options.reply_after, text, asked_at, now)
        pause = timing["target"] - (now - asked_at).total_seconds()
    _wait(context, record, pause)
    return _submit_move(context, record, seat, text, generation, timing)


def _ask_safely(context: WorkerContext, record: StoredMatch, seat: int, spec: PlayerSpec) -> Generation:
    """Ask for a move; in a study, ask again if people should not read it. Raises PlayerFailed after REDRAWS."""
    seed = record.turn_seed
    for redraw in range(1, REDRAWS + 2):
        generation = _reply_in_time(context, record, seat, spec, seed)
        reason = None if record.options is None else unsafe(generation.text or "")
        if reason is None:
            return generation
        log.warning("a model's text was not shown", match=record.id, model=spec.name, reason=reason)
        generation = replace(generation, error=f"not shown to the person: {reason}")
        if redraw > REDRAWS:
            break
        _store_call_without_move(context, record, seat, generation)
        seed = f"{record.turn_seed}/{redraw}"
    raise PlayerFailed(f"{1 + REDRAWS} texts that people should not read, the last because of {reason}", generation)


def _reply_in_time(context: WorkerContext, record: StoredMatch, seat: int, spec: PlayerSpec, seed: str) -> Generation:
    """Ask for a move within TURN_SECONDS, repeating the call when the model's server is away or when something here
    breaks that may work again by then. Raises what the last call raised.
    """
    until = time.monotonic() + context.settings.TURN_SECONDS
    pauses = _pauses(seed)
    why = ""
    while True:
        try:
            return _call_player(context, record, seat, spec, seed, max(0.1, until - time.monotonic()))
        except TimeoutError:
            raise TimeoutError(why) from None
        except PlayerFailed as failure:
            pause = next(pauses)
            if failure.kind != BUSY or time.monotonic() + pause > until:
                raise
            why = failure.message
            _store_call_without_move(context, record, seat, failure.generation)
        except (LeaseLost, AppError, *DATABASE_AWAY):
            raise
        except Exception as error:
            pause = next(pauses)
            if time.monotonic() + pause > until:
                raise
            why = internal_error("a player broke", error, match=record.id, model=spec.name)
        log.warning("a model gave no answer, it is asked again", match=record.id, model=spec.name, error=why)
        _wait(context, record, pause)


def _pauses(seed: str) -> Iterator[float]:
    """Seconds before each further call, growing and drawn at random so that matches do not all come back at once."""
    drawn, tries = random.Random(seed), 0
    while True:
        yield drawn.uniform(0.5, 1) * min(LONGEST_PAUSE, 2.0**tries)
        tries += 1


def _call_player(
    context: WorkerContext, record: StoredMatch, seat: int, spec: PlayerSpec, seed: str, seconds: float
) -> Generation:
    """Call the player on the worker's event loop, renewing the lease until it answers."""
    player = cast(ModelPlayer, make_player(spec, context.settings.home))
    refused = [(violated.text, violated.reason) for violated in record.match.refused]
    prompt = record.match.prompts[seat] or {}
    call = context.call(lambda: player.reply(record.match.view(seat), prompt, refused, seed), seconds)
    try:
        while True:
            try:
                return call.result(timeout=context.settings.TURN_LEASE / 3)
            except concurrent.futures.TimeoutError:
                if call.done():
                    raise
                turn_leases.renew(context, record.id)
    finally:
        call.cancel()


def _wait(context: WorkerContext, record: StoredMatch, seconds: float) -> None:
    """Sleep, and renew the lease meanwhile."""
    beat = context.settings.TURN_LEASE / 3
    while seconds > 0:
        time.sleep(min(seconds, beat))
        seconds -= beat
        if seconds > 0:
            turn_leases.renew(context, record.id)


def reading_delay(record: StoredMatch, text: str, settings: Settings) -> float:
    """Seconds after which an answer to a guest appears, so that a person can follow; studies set their own delay.

    One second, plus the time for the words of the partner's last move and of the answer at the set pace, up to a
    ceiling.
    """
    if settings.READING_WORDS_PER_MINUTE == 0:
        return 0
    last = record.match.view(cast(int, record.match.to_move)).transcript[-1:]
    words = len(text.split()) + sum(len((entry.text or "").split()) for entry in last)
    return min(settings.LONGEST_DELAY, 1 + words * 60 / settings.READING_WORDS_PER_MINUTE)


def _submit_move(
    context: WorkerContext,
    record: StoredMatch,
    seat: int,
    text: str,
    generation: Generation | None,
    timing: Mapping[str, float] | None,
) -> StoredMatch:
    attempt = len(record.match.refused)
    ply = record.match.ply

    def store(session: Session) -> live.Receipt:
        _claim(session, context, record, seat, generation)
        submission = live.MoveSubmission(record.id, seat, text, f"model-{ply}-{attempt}", ply, timing)
        receipt = live.submit(session, submission, instant=False)
        if receipt.record.model_to_move:  # another attempt, or a match of two models: keep the lease
            session.execute(update(MatchRow).where(MatchRow.id == record.id).values(**turn_leases.values(context)))
        return receipt

    write_learnt(context.database)
    # The answer has cost time and money, so it waits for a database that is away or full.
    receipt = transact_with_retry(context.database, store, context.settings.TURN_SECONDS)
    if not receipt.answer.ok:
        refused = [logged.event for logged in receipt.new if isinstance(logged.event, Violated)]
        log.info("a model's move was refused", match=record.id, reasons=[violated.reason for violated in refused])
    return receipt.record


def _abort(
    context: WorkerContext, record: StoredMatch, fault: Fault, detail: str, generation: Generation | None
) -> StoredMatch:
    seat = cast(int, record.match.to_move)

    def end(session: Session) -> StoredMatch:
        _claim(session, context, record, seat, generation)
        return live.abort(session, load(session, record.id, lock=True), fault, seat, detail)

    return transact_with_retry(context.database, end, context.settings.TURN_SECONDS)


def _store_call_without_move(context: WorkerContext, record: StoredMatch, seat: int, generation: Generation) -> None:
    """Store a call that did not result in a move."""
    claim = partial(_claim, context=context, record=record, seat=seat, generation=generation)
    transact_with_retry(context.database, claim, context.settings.TURN_SECONDS)


def _claim(
    session: Session, context: WorkerContext, record: StoredMatch, seat: int, generation: Generation | None
) -> None:
    """Begin to write the result of a turn: make sure that the turn is still ours, and store the call behind it."""
    turn_leases.guard(session, context, record.id)
    if generation is not None:
        insert_generations(session, [generation_row(record, seat, generation)])
