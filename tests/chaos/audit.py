"""Holds what a storm left in the database against itself, and against what the players were promised.

Each check looks at one match and gives a line for everything that is wrong with it. What else is to hold for every
match is one more function in CHECKS.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Engine, select

from app.core.extensions import reading
from app.games.base import Event
from app.matches import engine
from app.matches.clocks import LATE, Clocks, Deadline, next_deadline
from app.matches.events import Aborted, Ended, ServerAway, Started, TimedOut, Violated
from app.matches.outages import SILENCE
from app.matches.stored import LoggedEvent, load_log
from app.models import GenerationRow, LanguageModel, MatchRow, SeatRow
from tests.chaos.aborted import EXCUSED, cause_of
from tests.chaos.killer import Blow
from tests.chaos.player import TOLD_SECONDS, Sent, Story

SLACK = timedelta(seconds=30)  # for a round of upkeep on a machine that has much to do
LEASE = timedelta(seconds=25)  # upkeep that is killed: its lease runs out, and the next one has to start


@dataclass(frozen=True)
class Case:
    """A match as the database has it, and as its players told it: nobody, if the answer to its start was lost."""

    row: MatchRow
    kinds: tuple[str, str]  # of each seat: person, or the kind of model
    log: tuple[LoggedEvent, ...]
    generations: tuple[GenerationRow, ...]
    stories: tuple[Story, ...]
    blows: tuple[Blow, ...]

    @property
    def moves(self) -> list[LoggedEvent]:
        """The accepted moves."""
        return [logged for logged in self.log if isinstance(logged.event, Event)]

    @property
    def tries(self) -> list[LoggedEvent]:
        """What anybody has tried to move, accepted or refused."""
        return [logged for logged in self.log if isinstance(logged.event, Event | Violated)]


def audit(database: Engine, stories: Sequence[Story], blows: Sequence[Blow]) -> list[str]:
    """Everything that is wrong with any match."""
    cases = _cases(database, stories, tuple(blows))
    return [f"match {case.row.id}: {line}" for case in cases for check in CHECKS for line in check(case)]


def _cases(database: Engine, stories: Sequence[Story], blows: tuple[Blow, ...]) -> Iterator[Case]:
    with reading(database) as session:
        models = {model.id: model.kind for model in session.scalars(select(LanguageModel))}
        for row in session.scalars(select(MatchRow)):
            seats = session.scalars(select(SeatRow).where(SeatRow.match_id == row.id).order_by(SeatRow.seat)).all()
            first, second = (models.get(seat.language_model_id or 0, seat.kind) for seat in seats)
            generations = session.scalars(
                select(GenerationRow).where(GenerationRow.match_id == row.id).order_by(GenerationRow.id)
            )
            told = tuple(story for story in stories if story.table.match == row.id)
            yield Case(row, (first, second), load_log(session, row.id), tuple(generations), told, blows)


# ---- The checks -----------------------------------------------------------------


def the_log_has_no_gap(case: Case) -> Iterator[str]:
    """seq from 0, ply as many as were accepted before, the times in order, one beginning and one end."""
    if [logged.seq for logged in case.log] != list(range(len(case.log))):
        yield f"seq: {[logged.seq for logged in case.log]}"
    accepted = 0
    for logged in case.log:
        if logged.ply != accepted:
            yield f"event {logged.seq} has ply {logged.ply} after {accepted} moves"
        accepted += isinstance(logged.event, Event)
    if [logged.at for logged in case.log] != sorted(logged.at for logged in case.log):
        yield f"times: {[logged.at.isoformat() for logged in case.log]}"
    began = [logged.seq for logged in case.log if isinstance(logged.event, Started)]
    ended = [logged.seq for logged in case.log if isinstance(logged.event, Ended)]
    if began != [0] or ended not in ([], [len(case.log) - 1]):
        yield f"it began at {began} and ended at {ended} of {len(case.log)} events"


def the_row_is_the_fold_of_the_log(case: Case) -> Iterator[str]:
    """Every column that follows from the log, worked out again."""
    match = engine.replay(logged.event for logged in case.log)
    ended = match.ended
    turning = [logged.at for logged in case.log if not isinstance(logged.event, ServerAway | Violated)]
    model_to_move = match.to_move is not None and case.kinds[match.to_move] != "person"
    wanted = {
        "status": "playing" if ended is None else "over",
        "ply": len(case.moves),
        "to_move": match.to_move,
        "model_to_move": model_to_move,
        "violations": len(case.tries) - len(case.moves),
        "reason": ended and ended.reason,
        "winner": ended and ended.winner,
        "utility_0": ended and ended.utilities[0],
        "utility_1": ended and ended.utilities[1],
        "agreed": ended and ended.facts.get("agreed"),
        "pareto_optimal": ended and ended.facts.get("pareto_optimal"),
        "started_at": case.log[0].at,
        "moved_at": turning[-1],
        "ended_at": ended and case.log[-1].at,
        "deadline": None if ended else getattr(_deadline(case, len(case.log)), "at", None),
    }
    if not model_to_move:
        wanted |= {"lease_owner": None, "lease_until": None, "lease_count": 0}
    for column, value in wanted.items():
        if getattr(case.row, column) != value:
            yield f"column {column} is {getattr(case.row, column)!r}, its log says {value!r}"


def what_was_acknowledged_is_there_once(case: Case) -> Iterator[str]:
    """Each move with an answer stands in the log as it was answered, and the log has no other moves of people."""
    logged = {(each.seat, each.move_id): each for each in case.tries if each.move_id is not None}
    if len(logged) != len(case.tries) - sum(each.move_id is None for each in case.tries):
        yield "a move id stands there twice"
    people = {number for number, kind in enumerate(case.kinds) if kind == "person"}
    sent = {move.move_id: move for story in case.stories for move in story.moves}
    for (seat, move_id), each in logged.items():
        move = sent.get(str(move_id))
        if seat in people and (move is None or _text(each) != engine.readable(move.text) or move.ply != each.ply):
            yield f"event {each.seq} is {each.event}, sent was {move}"
    mine = {move_id: each for (seat, move_id), each in logged.items() if seat in people}
    for move in sent.values():
        if (problem := _broken_promise(move, mine.get(move.move_id))) is not None:
            yield f"{problem}: {move}"


def _text(logged: LoggedEvent) -> str | None:
    return getattr(logged.event, "text", None)


def _broken_promise(move: Sent, logged: LoggedEvent | None) -> str | None:
    if move.answer is None:
        return None  # nothing was promised
    if move.answer["ok"]:
        kept = logged is not None and isinstance(logged.event, Event) and logged.ply == move.answer["ply"] - 1
        return None if kept else f"acknowledged, and logged as {logged}"
    if move.answer["error"]["code"] == "illegal_move":
        kept = logged is not None and isinstance(logged.event, Violated)
        return None if kept else f"refused by the rules, and logged as {logged}"
    return None if logged is None else f"refused, and logged as {logged}"


def a_model_moves_once_a_turn(case: Case) -> Iterator[str]:
    """Each try of a model is numbered in its turn, and came of exactly one call, which is kept."""
    attempt = 0
    tried: Counter[tuple[int, int, str | None]] = Counter()
    for logged in case.tries:
        if logged.seat is None or case.kinds[logged.seat] == "person":
            continue
        if logged.move_id != f"model-{logged.ply}-{attempt}":
            yield f"event {logged.seq} has the move id {logged.move_id}, expected attempt {attempt} at ply {logged.ply}"
        if case.kinds[logged.seat] != "scripted":
            tried[logged.ply, attempt, _text(logged)] += 1
        attempt = attempt + 1 if isinstance(logged.event, Violated) else 0
    calls = Counter((call.ply, call.attempt, call.text) for call in case.generations if call.error is None)
    # A call may have come to nothing: the model was given up, or the clock ran out before its answer.
    given_up = sum(isinstance(logged.event, Aborted | TimedOut) for logged in case.log)
    if tried - calls or (calls - tried).total() > given_up:
        yield f"moves of models without their call: {tried - calls}; calls without their move: {calls - tried}"


def it_ended_for_a_reason_of_the_game(case: Case) -> Iterator[str]:
    """Nothing that a storm does is a reason for a match to be aborted."""
    for logged in case.log:
        if isinstance(logged.event, Aborted) and cause_of(logged.event) not in EXCUSED:
            yield f"aborted: {logged.event}"
    if case.row.status != "over":
        yield "it has not ended"
    if case.row.reason == "resigned" and not any(story.resigned for story in case.stories):
        yield "nobody has resigned"


def its_players_saw_what_is_there(case: Case) -> Iterator[str]:
    """The last view of each player tells the log's story."""
    for story in case.stories:
        view = story.final
        if view is None:
            yield "its player did not see the end"
            continue
        seen = [(entry["ply"], entry["kind"]) for entry in view["transcript"]]
        texts = [entry["text"] for entry in view["transcript"]]
        wanted = [_text(move) for move in case.moves]
        if seen != [(move.ply, getattr(move.event, "kind", None)) for move in case.moves]:
            yield f"the view shows {seen}"
        if any(text not in (own, None) for text, own in zip(texts, wanted, strict=False)):
            yield f"the view shows {texts}, the log has {wanted}"
        if (view["ply"], view["outcome"]["reason"]) != (case.row.ply, case.row.reason):
            yield f"the view has ply {view['ply']} and {view['outcome']}, the row {case.row.ply} and {case.row.reason}"


def a_clock_ends_a_match_once_and_in_time(case: Case) -> Iterator[str]:
    """Not before its deadline, not much later as long as upkeep lives, and nothing is played in between."""
    ends = [logged for logged in case.log if isinstance(logged.event, TimedOut)]
    if len(ends) != (case.row.reason == "timeout"):
        yield f"its reason is {case.row.reason}, its clock ran out in {ends}"
    for logged in case.log[1:]:
        deadline = _deadline(case, logged.seq)
        by_clock = isinstance(logged.event, TimedOut)
        if by_clock and (deadline is None or not deadline.passed(logged.at) or deadline.clock != logged.event.clock):
            yield f"event {logged.seq} ended it at {logged.at}, its deadline was {deadline}"
        if deadline is None or isinstance(logged.event, Ended):
            continue
        # A web process that was busy for a moment takes what came meanwhile.
        if not by_clock and deadline.passed(logged.at - SILENCE) and not _was_away(case, logged.at):
            yield f"event {logged.seq} came at {logged.at}, after {deadline}: {logged.event}"
        struck = sum(blow.victim == "upkeep" and deadline.at - LEASE < blow.at < logged.at for blow in case.blows)
        if by_clock and logged.at - deadline.at - LATE > SLACK + struck * LEASE:
            yield f"it ended at {logged.at}, its deadline was {deadline}, and upkeep was struck {struck} times"


def _was_away(case: Case, at: datetime) -> bool:
    """Whether the log says that the server was away then: no clock runs out meanwhile."""
    outages = [logged for logged in case.log if isinstance(logged.event, ServerAway)]
    return any(each.at - timedelta(seconds=each.event.seconds) <= at <= each.at for each in outages)


def _deadline(case: Case, seq: int) -> Deadline | None:
    """The deadline that stood before event `seq`."""
    before = case.log[:seq]
    match = engine.replay(logged.event for logged in before)
    turns = (Event, ServerAway)  # a turn's clock begins with either
    began = next(logged.at for logged in reversed(before) if logged.seq == 0 or isinstance(logged.event, turns))
    away = sum(logged.event.seconds for logged in before if isinstance(logged.event, ServerAway))
    person = match.to_move is not None and case.kinds[match.to_move] == "person"
    clocks = Clocks.from_json(getattr(case.log[0].event, "clocks", None))
    return next_deadline(clocks, case.log[0].at + timedelta(seconds=away), began, person)


def its_pages_were_told_in_time(case: Case) -> Iterator[str]:
    """Nobody who is connected has to ask: what others have done is shown by itself."""
    for story in case.stories:
        if late := [round(seconds, 1) for seconds in story.shown if seconds > TOLD_SECONDS]:
            yield f"moves were shown after {late} s"
        if story.end is None or case.row.ended_at is None:
            continue
        connected, told = story.end
        if connected < case.row.ended_at and (told - case.row.ended_at).total_seconds() > TOLD_SECONDS:
            yield f"it ended at {case.row.ended_at}, a page that was connected since {connected} was told at {told}"


CHECKS: tuple[Callable[[Case], Iterator[str]], ...] = (
    the_log_has_no_gap,
    the_row_is_the_fold_of_the_log,
    what_was_acknowledged_is_there_once,
    a_model_moves_once_a_turn,
    it_ended_for_a_reason_of_the_game,
    its_players_saw_what_is_there,
    a_clock_ends_a_match_once_and_in_time,
    its_pages_were_told_in_time,
)
