"""`flask play`: a match in the terminal, stored like any other."""

import contextlib
import io
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

import click
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
from app.core.config import Settings
from app.core.extensions import db, reading, writing
from app.games import find_game
from app.games.config import LENIENT
from app.jobs.event_loop import running_loop
from app.jobs.holding import hold
from app.matches import live
from app.matches.events import Aborted
from app.matches.lobby import new_seed, person_seat, read_seed
from app.matches.material import server_pieces, with_piece
from app.matches.stored import StoredMatch, StoredSeat, load
from app.matches.terminal import lines as terminal
from app.matches.terminal import phrases
from app.matches.turns import WorkerContext, play_turn
from app.registry import PERSON, check_not_archived, find_model
from app.registry.spending import check_spending
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
    hidden: set[int] = field(default_factory=set)  # plies of those shown without their text

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
    shared = read_pairs(config, "--config")
    number = new_seed() if seed is None else read_seed(seed, "--seed")
    ensure_database()
    with writing() as session:
        model = find_model(session, game, against)
        hold(session, [model])
        check_not_archived(model)
        check_spending(session, settings(), model)
        opponent = StoredSeat.of(model)
        seat = person_seat(find_game(game).roles, role, number)
        seats = (StoredSeat(PERSON), opponent) if seat == 0 else (opponent, StoredSeat(PERSON))
        pieces = material_of_file(kind, path).items if kind is not None and path else server_pieces(game, settings())
        usual = {} if _scripted(opponent) else {LENIENT: True}
        full = with_piece(game, {**usual, **shared}, pieces, number)
        record = live.create(session, game, full, seats, seed=number, source=SOURCE, instant=_scripted(opponent))
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # invalid bytes become a move that is refused
    stream = sys.stderr if as_json else sys.stdout
    at_once = settings().model_copy(update={"READING_WORDS_PER_MINUTE": 0})
    terminal_session = TerminalSession(db.engine, at_once, record, seat, stream)
    _play_to_the_end(terminal_session, opponent)
    if as_json:
        print_json(_match_result(terminal_session, against))


def _scripted(seat: StoredSeat) -> bool:
    return seat.spec is not None and seat.spec.kind == "scripted"


def _play_to_the_end(terminal_session: TerminalSession, opponent: StoredSeat) -> None:
    """Play, show how it ended, and leave no match open, however the person leaves."""
    try:
        try:
            with _turns_of_partner(terminal_session, opponent) as answer:
                _take_turns(terminal_session, answer)
        except EOFError:
            _resign(terminal_session)
            terminal_session.say("\nThe input has ended, so you leave the game.")
        _show_end(terminal_session)
    except KeyboardInterrupt:
        _resign(terminal_session)
        raise Interrupted(f"Interrupted: you have left match {terminal_session.record.id}.") from None


def _take_turns(terminal_session: TerminalSession, answer: Callable[[], StoredMatch]) -> None:
    for line in (*terminal.opening_lines(_person_view(terminal_session)), "Type /help to see what you can do.", ""):
        terminal_session.say(line)
    while not terminal_session.record.match.over:
        if terminal_session.record.model_to_move:
            terminal_session.record = answer()
        _show_news(terminal_session)
        if terminal_session.record.match.to_move == terminal_session.seat:
            _person_turn(terminal_session)


def _person_turn(terminal_session: TerminalSession) -> None:
    """Read one line and act on it. After a refusal it is still the person's turn."""
    terminal_session.say("> ", end="")
    typed = terminal.read_line(_person_view(terminal_session), _read_typed(terminal_session))
    match typed.kind:
        case phrases.MOVE:
            _submit_typed_move(terminal_session, typed.text)
        case phrases.RESIGN:
            _resign(terminal_session)
        case phrases.SHOW:
            terminal_session.say("\n".join(terminal.opening_lines(_person_view(terminal_session))))
            terminal_session.shown = 0
            _show_news(terminal_session, own=True)
        case phrases.HELP:
            terminal_session.say("\n".join(terminal.help_lines(_person_view(terminal_session))))
        case _:
            terminal_session.say(typed.text)


def _read_typed(terminal_session: TerminalSession) -> str:
    line = input()
    if not sys.stdin.isatty():
        terminal_session.say(line)  # show piped input, as a terminal would have
    return line


def _submit_typed_move(terminal_session: TerminalSession, text: str) -> None:
    longest = terminal_session.settings.MOVE_CHARACTERS
    if len(text) > longest:
        terminal_session.say(f"Please make it shorter: {longest} characters at most, got {len(text)}.")
        return
    submission = live.MoveSubmission(
        terminal_session.record.id, terminal_session.seat, text, uuid.uuid4().hex, terminal_session.record.match.ply
    )
    instant = _scripted(terminal_session.record.seats[1 - terminal_session.seat])
    receipt = live.commit(terminal_session.database, submission, instant=instant)
    terminal_session.record = receipt.record
    if receipt.answer.message:
        terminal_session.say(receipt.answer.message)


def _resign(terminal_session: TerminalSession) -> None:
    gone = live.MoveSubmission(terminal_session.record.id, terminal_session.seat, None)
    terminal_session.record = live.commit(terminal_session.database, gone, instant=False).record


# ---- The partner ------------------------------------------------------------


@contextlib.contextmanager
def _turns_of_partner(terminal_session: TerminalSession, opponent: StoredSeat) -> Iterator[Callable[[], StoredMatch]]:
    """The function that plays the model's turns: a script answers within the step, other models are called in this
    process.
    """
    if _scripted(opponent):
        yield lambda: terminal_session.record
        return
    with running_loop() as loop:
        context = WorkerContext(
            terminal_session.database,
            terminal_session.settings,
            f"terminal-{uuid.uuid4().hex}",
            loop=loop,
            notify=lambda _match, _typing: None,
        )
        yield lambda: _play_model_turn(terminal_session, context)


def _play_model_turn(terminal_session: TerminalSession, context: WorkerContext) -> StoredMatch:
    """The match after the model's turn. If a worker already plays the turn, wait for its move."""
    tty = terminal_session.out.isatty()
    terminal_session.say(" partner: …", end="\r" if tty else "\n")
    while True:
        played = play_turn(context, terminal_session.record.id)
        with reading(terminal_session.database) as session:
            record = load(session, terminal_session.record.id)
        if not record.model_to_move:
            break
        if not played:
            time.sleep(0.2)
    if tty:
        terminal_session.say("           ", end="\r")
    return record


# ---- What is shown ----------------------------------------------------------


def _person_view(terminal_session: TerminalSession) -> Any:
    return terminal_session.record.match.view(terminal_session.seat)


def _show_news(terminal_session: TerminalSession, *, own: bool = False) -> None:
    """Show the new entries of the conversation; the person's own are on the screen already and shown only if `own`."""
    view = _person_view(terminal_session)
    for entry in view.transcript[terminal_session.shown :]:
        if own or entry.by == "partner":
            terminal_session.say(terminal.entry_line(view, entry))
        if entry.text is None:
            terminal_session.hidden.add(entry.ply)
    terminal_session.shown = len(view.transcript)


def _show_end(terminal_session: TerminalSession) -> None:
    ended = terminal_session.record.match.ended
    if ended is None:
        return
    view = _person_view(terminal_session)
    revealed = [entry for entry in view.transcript if entry.ply in terminal_session.hidden and entry.text is not None]
    for entry in revealed:
        terminal_session.say(terminal.entry_line(view, entry))
    _show_news(terminal_session)
    for line in (
        "",
        *terminal.ending_lines(view, ended, _abort_detail(terminal_session.record)),
        f"Match {terminal_session.record.id}",
    ):
        terminal_session.say(line)


def _abort_detail(record: StoredMatch) -> str | None:
    return next((logged.event.detail for logged in record.log if isinstance(logged.event, Aborted)), None)


def _match_result(terminal_session: TerminalSession, against: str) -> dict[str, Any]:
    match, ended = terminal_session.record.match, terminal_session.record.match.ended
    return {
        "match": terminal_session.record.id,
        "game": match.game.name,
        "role": match.game.roles[terminal_session.seat],
        "seat": terminal_session.seat,
        "against": against,
        "seed": terminal_session.record.seed,
        "moves": match.ply,
        "reason": ended.reason if ended else None,
        "winner": ended.winner if ended else None,
        "utility": ended.utilities[terminal_session.seat] if ended else None,
        "partner_utility": ended.utilities[1 - terminal_session.seat] if ended else None,
        "detail": _abort_detail(terminal_session.record),
    }
