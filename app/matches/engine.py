"""A match as a fold of its events, and the one step that turns a move into new events. Pure.

`replay(events)` rebuilds a match anywhere; `step` gives the events that a move adds. Nothing here knows of databases,
the time or sockets, and only `step` asks a game to parse.
"""

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from app.core.errors import Invalid, Verbatim
from app.core.failures import MODEL_FAULT, Fault
from app.games import find_game
from app.games.answers import move_of_answer
from app.games.base import JSON, Event, Game, View, Violation
from app.matches.clocks import IDLE, NO_CLOCKS, TURN, Clocks
from app.matches.events import Aborted, Ended, LogEvent, Resigned, ServerAway, Started, TimedOut, Violated
from app.matches.lenient import read_leniently, unwrapped
from app.players.prompts import asks_for_json

BAD_ATTEMPTS = 5  # the fifth refused attempt of one turn aborts a model's match
RESIGNED, TIMEOUT, ABANDONED, ABORTED = "resigned", "timeout", "abandoned", "aborted"
BROKEN_OFF = (RESIGNED, TIMEOUT, ABANDONED, ABORTED)  # the reasons of ends outside the game's rules


@dataclass(frozen=True, slots=True)
class Match:
    """A match at one point of its log. `state` is the game's; `ply` counts accepted moves of both seats."""

    game: Game[Any]
    state: Any
    prompts: tuple[JSON | None, JSON | None]
    clocks: Clocks = NO_CLOCKS
    refused: tuple[Violated, ...] = ()  # refused attempts since the last accepted move
    violations: int = 0
    stopped: Resigned | TimedOut | Aborted | None = None
    ended: Ended | None = None
    to_move: int | None = None  # the seat whose turn it is, or None when the match is over
    lenient_moves: int = 0  # accepted moves that were read leniently

    @property
    def ply(self) -> int:
        ply: int = self.state.ply
        return ply

    @property
    def over(self) -> bool:
        return self.ended is not None

    def view(self, seat: int) -> View:
        """What `seat` may see of the game."""
        return self.game.view(self.state, seat, over=self.over or self.stopped is not None)


def start(
    game_name: str,
    config: JSON,
    seed: int,
    prompts: tuple[JSON | None, JSON | None] = (None, None),
    clocks: Clocks = NO_CLOCKS,
) -> Started:
    """The first event of a match: the config, with everything that it left open drawn from `seed`.

    Raises NotFound for an unknown game and Invalid for a bad config.
    """
    return begin(game_name, config, seed, prompts, clocks)[0]


def begin(
    game_name: str,
    config: JSON,
    seed: int,
    prompts: tuple[JSON | None, JSON | None] = (None, None),
    clocks: Clocks = NO_CLOCKS,
) -> tuple[Started, Match]:
    """The first event of a match, as from `start`, and the match that it begins, as from `replay`."""
    game = find_game(game_name)
    state = game.initial(game.config(config), random.Random(seed))
    started = Started(game.name, game.version, state.config.to_json(), prompts, clocks.to_json())
    return started, Match(game, state, prompts, clocks, to_move=game.to_move(state))


def replay(events: Iterable[LogEvent]) -> Match:
    """Fold a whole log, beginning with its `started`. Raises Invalid if it does not begin with that."""
    log = iter(events)
    first = next(log, None)
    if not isinstance(first, Started):
        raise Invalid(None, expected="it to begin with a started event", got=first, subject="event log")
    game = find_game(first.game)
    # A resolved config leaves nothing to draw, so the generator given here is never used.
    state = game.initial(game.config(first.config), random.Random(0))
    clocks = Clocks.from_json(first.clocks)
    match = Match(game, state, first.prompts, clocks, to_move=game.to_move(state))
    return applied(match, log)


def applied(match: Match, events: Iterable[LogEvent]) -> Match:
    """The match after more events. Raises what `apply` raises."""
    for event in events:
        match = apply(match, event)
    return match


def apply(match: Match, event: LogEvent) -> Match:
    """The match after one more event. Raises Invalid for an event after the end or a second beginning."""
    if match.over or isinstance(event, Started):
        raise Invalid(None, expected="nothing after the end and one beginning", got=event, subject="event log")
    match event:
        case Event():
            state = match.game.apply(match.state, event)
            mover = match.game.to_move(state)
            rest = match.prompts, match.clocks, (), match.violations, None, None, mover
            return Match(match.game, state, *rest, match.lenient_moves + was_read_leniently(match, event))
        case Violated():
            return replace(match, refused=(*match.refused, event), violations=match.violations + 1)
        case Resigned() | TimedOut() | Aborted():
            return replace(match, stopped=event, to_move=None)
        case ServerAway():
            return match  # only clocks use it, and they follow from the times in the log
        case Ended():
            return replace(match, ended=event, to_move=None)


def step(match: Match, seat: int, text: str, *, by_model: bool = False) -> list[LogEvent]:
    """The events that a move of the seat to move adds: the move and perhaps the end, or a violation.

    A model's fifth violation in a row also aborts the match as the model's fault; a person's never does.
    Raises Invalid when it is not the seat's turn.
    """
    return advance(match, seat, text, by_model=by_model)[0]


def advance(
    match: Match,
    seat: int,
    text: str | None,
    *,
    by_model: bool = False,
    lenient: bool = False,
    most_attempts: int = BAD_ATTEMPTS,
) -> tuple[list[LogEvent], Match]:
    """The events of a `step`, or of resigning if there is no text, and the match after them.

    `lenient`: whether a move is read as `matches.lenient` does, which is recorded in the log. `most_attempts` is the
    number of the refused attempt that aborts a model's match.
    """
    if text is None:
        resigned = resign(match, seat)
        return resigned, applied(match, resigned)
    if seat != match.to_move:
        raise Invalid("move", expected=f"seat {match.to_move} to move", got=Verbatim(f"seat {seat}"))
    move = _unreadable(seat, text) or _read_move(match, seat, text, lenient=lenient)
    if isinstance(move, Violation):
        events = _refused_move_events(match, move, readable(text), most_attempts if by_model else None)
        return events, applied(match, events)
    after = apply(match, move)
    outcome = match.game.outcome(after.state) if after.to_move is None else None
    if outcome is None:
        return [move], after
    ended = Ended.of(outcome)
    return [move, ended], apply(after, ended)


def was_read_leniently(match: Match, event: LogEvent) -> bool:
    """Whether an event of a match is a move that was read leniently, and not taken from an answer in JSON."""
    return isinstance(event, Event) and event.original is not None and not asks_for_json(match.prompts[event.seat])


def _read_move(match: Match, seat: int, text: str, *, lenient: bool) -> Event | Violation:
    if asks_for_json(match.prompts[seat]):
        return _read_answer(match, seat, text, lenient=lenient)
    read = read_leniently(match.game, match.state, seat, text) if lenient else None
    return match.game.parse(match.state, seat, text) if read is None else read


def _read_answer(match: Match, seat: int, text: str, *, lenient: bool) -> Event | Violation:
    """The move in a JSON answer, with the answer as its `original`; also from a wrapped answer, if `lenient`."""
    game, view = match.game, match.view(seat)
    answers = (text, *unwrapped(text, game.roles, seat, is_free=False)) if lenient else (text,)
    moves = (move_of_answer(game, view, each) for each in answers)
    move = next((each for each in moves if each is not None), None)
    if move is None:
        return Violation(seat, text, "no_json", "Answer with one JSON object of the form that was asked for.")
    read = _unreadable(seat, move) or game.parse(match.state, seat, move)
    return replace(read, original=text) if isinstance(read, Event) else read


def _refused_move_events(match: Match, violation: Violation, tried: str, most_attempts: int | None) -> list[LogEvent]:
    violated = Violated(violation.seat, tried, violation.code, violation.reason)
    attempts = len(match.refused) + 1
    if most_attempts is None or attempts < most_attempts:
        return [violated]
    detail = f"{attempts} refused attempts at one turn, the last: {violation.reason}"
    return [violated, *abort(match, MODEL_FAULT, violation.seat, detail)]


def resign(match: Match, seat: int) -> list[LogEvent]:
    """The events when a person leaves: nobody scores."""
    return [Resigned(seat), _broken_off(match, RESIGNED)]


def time_out(match: Match, clock: str) -> list[LogEvent]:
    """The events when a clock runs out: nobody scores, and the log says whose turn it was if that decided it."""
    return [TimedOut(match.to_move if clock == TURN else None, clock), _broken_off(match, TIMEOUT)]


def abandon(match: Match) -> list[LogEvent]:
    """The events of a match that everybody has left open: nobody scores, and nobody's turn decided it."""
    return [TimedOut(None, IDLE), _broken_off(match, ABANDONED)]


def abort(match: Match, fault: Fault, seat: int | None, detail: str) -> list[LogEvent]:
    """The events of a match that cannot go on: nobody scores, and the log says whose fault it was."""
    return [Aborted(seat, fault, readable(detail)), _broken_off(match, ABORTED)]


def _broken_off(match: Match, reason: str) -> Ended:
    return Ended(reason, None, (0, 0), dict(match.game.unfinished))


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def _unreadable(seat: int, text: str) -> Violation | None:
    """Refuse characters that no screen shows and not every database stores: control characters and lone surrogates."""
    found = _CONTROL.search(text)
    if found is None:
        return None
    reason = f"The text has a character that cannot be shown (U+{ord(found[0]):04X}). Please remove it."
    return Violation(seat, text, "control_character", reason)


def readable(text: str) -> str:
    """The text with replacements for characters that no screen shows and not every database stores."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
