"""Every move enters a match here, whoever makes it.

People, language models and scripts meet at `submit`: check, step, append. It runs inside the caller's transaction;
`commit` is the edge that opens one, retries when another process was faster, and returns what to publish.
"""

import random
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, cast

from sqlalchemy import Engine, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.core.errors import AppError, NotFound
from app.core.extensions import lost_race, writing
from app.core.failures import Fault
from app.games.base import Event
from app.matches import engine
from app.matches.clocks import NO_CLOCKS, Clocks
from app.matches.events import LogEvent, Violated
from app.matches.outages import was_served
from app.matches.store import NewMatch, append, insert_matches
from app.matches.stored import LoggedEvent, StoredMatch, StoredSeat, load, opened, turn_seed
from app.models import MatchRow
from app.players import make_player
from app.players.base import InstantPlayer, PlayerSpec


@dataclass(frozen=True, slots=True)
class MoveSubmission:
    """A move or a resignation on its way into a match. `ply` is the one its player saw; None skips that check."""

    match_id: str
    seat: int
    text: str | None  # None: a resignation
    move_id: str | None = None
    ply: int | None = None
    timing: Mapping[str, Any] | None = None  # how long it took; kept in matches of studies


@dataclass(frozen=True, slots=True)
class MoveReply:
    """The reply to the player who moved: the ply after the move, or why it was refused; `violation` is the rules' own
    code.
    """

    ply: int | None = None
    code: str | None = None
    message: str | None = None
    violation: str | None = None

    @property
    def ok(self) -> bool:
        return self.code is None


_TOO_LATE = MoveReply(code="over", message="The time ran out before this arrived.")


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of a submission: the answer, the match after each step of it, and the events that were added.

    The first step is the submission's own; scripted players' answers follow. If no event was added, it is the unchanged
    match.
    """

    answer: MoveReply
    steps: tuple[StoredMatch, ...]
    new: tuple[LoggedEvent, ...] = ()

    @property
    def record(self) -> StoredMatch:
        """The match as it is now."""
        return self.steps[-1]


def create(
    session: Session,
    game: str,
    config: Mapping[str, Any],
    seats: tuple[StoredSeat, StoredSeat],
    *,
    seed: int,
    source: str,
    instant: bool,
    start_key: str | None = None,
    clocks: Clocks = NO_CLOCKS,
) -> StoredMatch:
    """Start a match. With `instant`, scripted players answer within the step. Raises Invalid for a bad config.

    For a `start_key` that was used before, return the match that it started, or a new one if that match is over.
    """
    if start_key is not None:
        existing = session.scalar(select(MatchRow).where(MatchRow.start_key == start_key))
        if existing is not None and existing.status != "over":
            return load(session, existing.id)
        start_key = None if existing is not None else start_key
    record = opened(game, config, seats, seed, clocks)
    if instant:
        *_, record = record, *_scripted_moves(record, record.log[0].at)
    insert_matches(session, [NewMatch(record, source, start_key=start_key)])
    return record


def decide(
    record: StoredMatch,
    submission: MoveSubmission,
    *,
    instant: bool,
    was_served: Callable[[datetime], bool] = lambda _moment: True,
) -> Receipt:
    """The effect of a move or a resignation on a match in its current state; nothing is written yet.

    `was_served` says whether people were being served at the deadline or later; if not, the clock has not run out.
    """
    answer = _reply_without_trying(record, submission)
    if answer is not None:
        return Receipt(answer, (record,))
    now, known = datetime.now(UTC), len(record.log)
    if (deadline := record.deadline) is not None and deadline.passed(now) and was_served(deadline.at):
        after = record.extended(engine.time_out(record.match, deadline.clock), now)
        return Receipt(_TOO_LATE, (after,), after.log[known:])
    own = record.moved(submission.seat, submission.text, now, submission.move_id, submission.timing)
    # In a study, all partners take their time to reply, scripted ones too.
    steps = (own, *_scripted_moves(own, now)) if instant and record.options is None else (own,)
    return Receipt(_reply_of(own.log[known]), steps, steps[-1].log[known:])


def submit(session: Session, submission: MoveSubmission, *, instant: bool) -> Receipt:
    """Take a move or a resignation into the caller's transaction. Raises NotFound for an unknown match."""
    (receipt,) = submit_together(session, [submission], {}, instant=instant)
    if isinstance(receipt, AppError):
        raise receipt
    return receipt


def submit_together(
    session: Session,
    submissions: Sequence[MoveSubmission],
    remembered: MutableMapping[str, StoredMatch],
    *,
    instant: bool,
) -> list[Receipt | AppError]:
    """Take many submissions into the caller's transaction, with the matches that the caller has cached.

    `remembered` is only ever a shortcut: a refusal based on it is checked against the database, and if a log has grown
    meanwhile, the whole call fails with IntegrityError and the submissions have to be made one by one. `remembered` is
    updated in place, and has to be discarded if the transaction fails.
    """
    results: list[Receipt | AppError] = []
    grown: dict[str, tuple[StoredMatch, int]] = {}
    served = partial(was_served, session)
    for submission in submissions:
        match_id = submission.match_id
        record = remembered.get(match_id)
        receipt = None if record is None else decide(record, submission, instant=instant, was_served=served)
        if record is None or receipt is None or not (receipt.new or match_id in grown):
            try:
                record = load(session, match_id, lock=True)
            except NotFound as error:
                results.append(error)
                continue
            receipt = decide(record, submission, instant=instant, was_served=served)
        if receipt.new:
            _, known = grown.get(match_id, (record, len(record.log)))
            grown[match_id] = receipt.record, known
        remembered[match_id] = receipt.record
        results.append(receipt)
    if grown:
        append(session, list(grown.values()))
    return results


def commit(database: Engine, submission: MoveSubmission, *, instant: bool, tries: int = 5) -> Receipt:
    """Submit in a transaction of its own; if two processes append at once, the slower one reads again."""
    try:
        with writing(database) as session:
            return submit(session, submission, instant=instant)
    except DBAPIError as error:
        if tries == 1 or not lost_race(error):
            raise
    return commit(database, submission, instant=instant, tries=tries - 1)


def end_overdue(database: Engine, match_id: str) -> bool:
    """End a match whose clock has run out, in a transaction of its own. False if there is nothing to end."""

    def time_out(session: Session, record: StoredMatch) -> Sequence[LogEvent]:
        deadline = record.deadline
        if deadline is None or not deadline.passed(datetime.now(UTC)) or not was_served(session, deadline.at):
            return ()
        return engine.time_out(record.match, deadline.clock)

    return _end_match_with_events(database, match_id, time_out)


def abandon(database: Engine, match_id: str, before: datetime) -> bool:
    """End a match in which nothing has happened since `before`, in a transaction of its own. False if something has."""

    def close_untouched(_session: Session, record: StoredMatch) -> Sequence[LogEvent]:
        return () if record.match.over or record.log[-1].at >= before else engine.abandon(record.match)

    return _end_match_with_events(database, match_id, close_untouched)


def _end_match_with_events(
    database: Engine, match_id: str, events: Callable[[Session, StoredMatch], Sequence[LogEvent]]
) -> bool:
    """End a match with the events that `events` returns, if there are any and nobody moves at the same moment."""
    try:
        with writing(database) as session:
            record = load(session, match_id, lock=True)
            if new := events(session, record):
                _append_events(session, record, new)
            return bool(new)
    except DBAPIError as error:
        if not lost_race(error):
            raise
        return False


def abort(session: Session, record: StoredMatch, fault: Fault, seat: int | None, detail: str) -> StoredMatch:
    """End a match that cannot go on, in the caller's transaction."""
    return _append_events(session, record, engine.abort(record.match, fault, seat, detail))


def _append_events(session: Session, record: StoredMatch, events: Sequence[LogEvent]) -> StoredMatch:
    after = record.extended(events, datetime.now(UTC))
    append(session, [(after, len(record.log))])
    return after


def turn_rng(seed: int, seat: int, ply: int, attempt: int) -> random.Random:
    """The generator of one attempt at one turn."""
    return random.Random(turn_seed(seed, seat, ply, attempt))


@lru_cache(maxsize=8)
def _scripted(name: str, manner: str | None) -> InstantPlayer:
    options = {} if manner is None else {"manner": manner}
    return cast(InstantPlayer, make_player(PlayerSpec("scripted", name, options)))


def scripted_text(record: StoredMatch) -> str:
    """The text of the scripted player whose turn it is."""
    seat = record.match.to_move
    spec = None if seat is None else record.seats[seat].spec
    if seat is None or spec is None:
        raise ValueError("expected a scripted player to move, got nobody or a person")
    rng = random.Random(record.turn_seed)
    return _scripted(spec.name, spec.options.get("manner")).choose(record.match.view(seat), rng)


def scripted_move(record: StoredMatch, now: datetime) -> StoredMatch:
    """The match after the move of the scripted player whose turn it is."""
    return record.moved(cast(int, record.match.to_move), scripted_text(record), now)


def _scripted_moves(record: StoredMatch, now: datetime) -> Iterator[StoredMatch]:
    """The match after each answer of its scripted players, as long as it is their turn."""
    while (mover := record.mover) is not None and mover.spec is not None and mover.spec.kind == "scripted":
        record = scripted_move(record, now)
        yield record


def _reply_without_trying(record: StoredMatch, submission: MoveSubmission) -> MoveReply | None:
    """Why the submission is refused without being tried, or its first answer if it was already submitted."""
    if submission.move_id is not None:
        for logged in record.log:
            if logged.move_id == submission.move_id and logged.seat == submission.seat:
                return _reply_of(logged)
    match = record.match
    if match.over:
        return MoveReply(code="over", message="This game is over.")
    if submission.text is None:
        return None
    if submission.ply is not None and submission.ply != match.ply:
        message = f"Expected a move at ply {match.ply}, got one for ply {submission.ply}: the game has moved on."
        return MoveReply(code="stale", message=message)
    if match.to_move != submission.seat:
        return MoveReply(code="not_your_turn", message="It is your partner’s turn. Please wait for their move.")
    return None


def _reply_of(logged: LoggedEvent) -> MoveReply:
    match logged.event:
        case Violated(code=code, reason=reason):
            return MoveReply(code="illegal_move", message=reason, violation=code)
        case Event():
            return MoveReply(ply=logged.ply + 1)
        case _:
            return MoveReply(ply=logged.ply)
