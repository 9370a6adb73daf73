"""`flask play`: a match in the terminal, stored like any other."""

import asyncio
import contextlib
import io
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

import click
from flask.cli import with_appcontext
from sqlalchemy import Engine

from app.cli.base import (
    Command,
    Interrupted,
    RepeatableOption,
    ensure_database,
    is_pair,
    print_json,
    read_pairs,
    settings,
)
from app.cli.material import material_options, named_material
from app.config import Settings
from app.extensions import db, reading, writing
from app.games import find_game
from app.matches import live
from app.matches.events import Aborted
from app.matches.lobby import new_seed, person_seat, read_seed
from app.matches.material import server_pieces, with_piece
from app.matches.stored import StoredMatch, StoredSeat, load
from app.matches.terminal import lines as terminal
from app.matches.terminal import phrases
from app.matches.turns import WorkerContext, play_turn
from app.registry import PERSON, check_not_archived, find_model
from app.rounds.material import material_of_file

SOURCE = "terminal"


@dataclass(slots=True)
class TerminalSession:
    """One person at a terminal in one match."""

    database: Engine
    settings: Settings
    record: StoredMatch
    seat: int
    out: TextIO
    shown: int = 0  # entries of the conversation that have been shown
    hidden: set[int] = field(default_factory=set)  # plies of those that were shown without their text

    def say(self, text: str = "", *, end: str = "\n") -> None:
        encoding = self.out.encoding or "utf-8"
        self.out.write(text.encode(encoding, "replace").decode(encoding) + end)
        self.out.flush()


@click.command(cls=Command)
@click.argument("game")
@click.option("--against", required=True, metavar="MODEL", help="A model's name, as `flask model list` shows it.")
@click.option("--role", metavar="ROLE", help="attacker or defender, in taboo. [default: drawn]")
@click.option(
    "--config", cls=RepeatableOption, belongs=is_pair, metavar="K=V", help="A setting of the game: objective=coop."
)
@material_options(", of which one is drawn")
@click.option("--seed", metavar="N", help="Play the match that this number gives. [default: drawn]")
@click.option("--json", "as_json", is_flag=True, help="Print the end as JSON; the conversation goes to stderr.")
@with_appcontext
def play(
    game: str,
    against: str,
    role: str | None,
    config: tuple[str, ...],
    seed: str | None,
    as_json: bool,
    **files: str | None,
) -> None:
    """Play a match in the terminal.

    What is played is stored like any other match. --config may be followed by several settings.
    """
    kind = find_game(game).material
    path = named_material(game, files)
    asked = read_pairs(config, "--config")
    number = new_seed() if seed is None else read_seed(seed, "--seed")
    ensure_database()
    with writing() as session:
        model = find_model(session, game, against)
        check_not_archived(model)
        opponent = StoredSeat.of(model)
        seat = person_seat(find_game(game).roles, role, number)
        seats = (StoredSeat(PERSON), opponent) if seat == 0 else (opponent, StoredSeat(PERSON))
        pieces = material_of_file(kind, path).items if kind is not None and path else server_pieces(game, settings())
        full = with_piece(game, asked, pieces, number)
        record = live.create(session, game, full, seats, seed=number, source=SOURCE, instant=_scripted(opponent))
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # bytes that are no text become a move that is refused
    stream = sys.stderr if as_json else sys.stdout
    at_once = settings().model_copy(update={"READING_WORDS_PER_MINUTE": 0})
    sitting = TerminalSession(db.engine, at_once, record, seat, stream)
    _play_to_the_end(sitting, opponent)
    if as_json:
        print_json(_result(sitting, against))


def _scripted(seat: StoredSeat) -> bool:
    return seat.spec is not None and seat.spec.kind == "scripted"


def _play_to_the_end(sitting: TerminalSession, opponent: StoredSeat) -> None:
    """Play, show how it ended, and leave no match open, however the person goes."""
    try:
        try:
            with _partner(sitting, opponent) as answer:
                _take_turns(sitting, answer)
        except EOFError:
            _resign(sitting)
            sitting.say("\nThe input has ended, so you leave the game.")
        _show_end(sitting)
    except KeyboardInterrupt:
        _resign(sitting)
        raise Interrupted(f"Interrupted: you have left match {sitting.record.id}.") from None


def _take_turns(sitting: TerminalSession, answer: Callable[[], StoredMatch]) -> None:
    for line in (*terminal.opening_lines(_view(sitting)), "Type /help to see what you can do.", ""):
        sitting.say(line)
    while not sitting.record.match.over:
        if sitting.record.model_to_move:
            sitting.record = answer()
        _show_news(sitting)
        if sitting.record.match.to_move == sitting.seat:
            _person_turn(sitting)


def _person_turn(sitting: TerminalSession) -> None:
    """Read one line and do what it says. A refusal is shown and the turn stays."""
    sitting.say("> ", end="")
    typed = terminal.read_line(_view(sitting), _read_typed(sitting))
    match typed.kind:
        case phrases.MOVE:
            _submit(sitting, typed.text)
        case phrases.RESIGN:
            _resign(sitting)
        case phrases.SHOW:
            sitting.say("\n".join(terminal.opening_lines(_view(sitting))))
            sitting.shown = 0
            _show_news(sitting, own=True)
        case phrases.HELP:
            sitting.say("\n".join(terminal.help_lines(_view(sitting))))
        case _:
            sitting.say(typed.text)


def _read_typed(sitting: TerminalSession) -> str:
    line = input()
    if not sys.stdin.isatty():
        sitting.say(line)  # what comes from a pipe is shown, as a terminal would have
    return line


def _submit(sitting: TerminalSession, text: str) -> None:
    longest = sitting.settings.MOVE_CHARACTERS
    if len(text) > longest:
        sitting.say(f"Please make it shorter: {longest} characters at most, got {len(text)}.")
        return
    submission = live.Submission(sitting.record.id, sitting.seat, text, uuid.uuid4().hex, sitting.record.match.ply)
    instant = _scripted(sitting.record.seats[1 - sitting.seat])
    receipt = live.commit(sitting.database, submission, instant=instant)
    sitting.record = receipt.record
    if receipt.answer.message:
        sitting.say(receipt.answer.message)


def _resign(sitting: TerminalSession) -> None:
    gone = live.Submission(sitting.record.id, sitting.seat, None)
    sitting.record = live.commit(sitting.database, gone, instant=False).record


# ---- The partner ------------------------------------------------------------


@contextlib.contextmanager
def _partner(sitting: TerminalSession, opponent: StoredSeat) -> Iterator[Callable[[], StoredMatch]]:
    """What plays the model's turns: a script answers within the step, any other model is asked in this process."""
    if _scripted(opponent):
        yield lambda: sitting.record
        return
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="models", daemon=True)
    thread.start()
    context = WorkerContext(
        sitting.database, sitting.settings, loop, lambda _match, _typing: None, f"terminal-{uuid.uuid4().hex}"
    )
    try:
        yield lambda: _answered(sitting, context)
    finally:
        asyncio.run_coroutine_threadsafe(loop.shutdown_asyncgens(), loop).result(2)  # connections that are open
        loop.call_soon_threadsafe(loop.stop)
        thread.join(2)


def _answered(sitting: TerminalSession, context: WorkerContext) -> StoredMatch:
    """The match after the model's turn. Should a worker have been told of it, its move is waited for."""
    tty = sitting.out.isatty()
    sitting.say(" partner: …", end="\r" if tty else "\n")
    while True:
        played = play_turn(context, sitting.record.id)
        with reading(sitting.database) as session:
            record = load(session, sitting.record.id)
        if not record.model_to_move:
            break
        if not played:
            time.sleep(0.2)
    if tty:
        sitting.say("           ", end="\r")
    return record


# ---- What is shown ----------------------------------------------------------


def _view(sitting: TerminalSession) -> Any:
    return sitting.record.match.view(sitting.seat)


def _show_news(sitting: TerminalSession, *, own: bool = False) -> None:
    """What has been said since the last look; what the person has typed stands there already, unless `own`."""
    view = _view(sitting)
    for entry in view.transcript[sitting.shown :]:
        if own or entry.by == "partner":
            sitting.say(terminal.entry_line(view, entry))
        if entry.text is None:
            sitting.hidden.add(entry.ply)
    sitting.shown = len(view.transcript)


def _show_end(sitting: TerminalSession) -> None:
    ended = sitting.record.match.ended
    if ended is None:
        return
    view = _view(sitting)
    revealed = [entry for entry in view.transcript if entry.ply in sitting.hidden and entry.text is not None]
    for entry in revealed:
        sitting.say(terminal.entry_line(view, entry))
    _show_news(sitting)
    for line in ("", *terminal.ending_lines(view, ended, _detail(sitting.record)), f"Match {sitting.record.id}"):
        sitting.say(line)


def _detail(record: StoredMatch) -> str | None:
    return next((logged.event.detail for logged in record.log if isinstance(logged.event, Aborted)), None)


def _result(sitting: TerminalSession, against: str) -> dict[str, Any]:
    match, ended = sitting.record.match, sitting.record.match.ended
    return {
        "match": sitting.record.id,
        "game": match.game.name,
        "role": match.game.roles[sitting.seat],
        "seat": sitting.seat,
        "against": against,
        "seed": sitting.record.seed,
        "moves": match.ply,
        "reason": ended.reason if ended else None,
        "winner": ended.winner if ended else None,
        "utility": ended.utilities[sitting.seat] if ended else None,
        "partner_utility": ended.utilities[1 - sitting.seat] if ended else None,
        "detail": _detail(sitting.record),
    }
