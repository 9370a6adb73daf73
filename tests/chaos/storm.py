"""One storm: start the players, strike for a while, let it grow calm, end every match, and audit what is left."""

import http.client
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select

from app.core.extensions import reading
from app.matches.sweep import UPKEEP, held_until
from app.models import EventRow, MatchRow, SeatRow
from app.registry import PERSON
from app.web import tickets
from tests.chaos.aborted import aborted_by_cause, unexcused
from tests.chaos.aborted import table as aborted_table
from tests.chaos.audit import audit
from tests.chaos.harms import SILENT, Harm, silenced
from tests.chaos.killer import LEASE, PAUSED, SERVING, Killer, pid_of
from tests.chaos.player import PATIENCE, Player, Wish
from tests.participant import JSON, Table
from tests.stack import Stack, wait_until
from tests.stub_openai import Messages, Reply, StubServer
from tests.tables import add_model, database, settings_of
from workers import broker

PLAYERS = 50
UPKEEP_LEASE = timedelta(seconds=10)  # that upkeep holds after each of its rounds
ENV = {
    "READING_WORDS_PER_MINUTE": "3000",  # a short while, in which the worker holds the turn of the scripted partner
    "LONGEST_DELAY": "0.4",
    "TURN_LEASE": str(LEASE),
    "UPKEEP_EVERY": "0.5",
    "MATCH_CLOCK": "60",
    "GUEST_MATCHES_PER_MINUTE": "0",
}
NOTHING: Mapping[str, Harm] = {}
VICTIMS = ("web", SERVING, "turns", PAUSED, "upkeep")
HOUSE, PARTNER, SLOW_PARTNER = "House partner", "Partner Blue", "Partner Grey"
CHILDREN = ("web", "turns", "upkeep")
MISTAKE = "Hm \x07"


def chat(messages: Messages) -> str:
    """A model of both games that says something impossible now and then, and takes it back when it is told so."""
    rules, said = messages[0]["content"], [each["content"] for each in messages if each["role"] == "assistant"]
    if len(said) % 3 == 1 and not said[-1].startswith("Hm"):
        return MISTAKE
    answer = f"Answer {len(said)}."
    if "[propose]" not in rules:
        return answer
    offered = any("has made a proposal" in each["content"] for each in messages)
    return "[propose] (0 books, 0 hats, 0 balls)" if offered else f"[message] {answer}"


GAMES: tuple[tuple[str, str | None, JSON], ...] = (
    ("negotiation", None, {"first": 0}),
    ("negotiation", None, {"first": 1}),
    ("taboo", "attacker", {}),
    ("taboo", "defender", {}),
)
WISHES, SLOW_WISHES = (
    [Wish(game, opponent, role, config) for opponent in opponents for game, role, config in GAMES]
    for opponents in ((HOUSE, PARTNER), (SLOW_PARTNER,))
)


@dataclass(frozen=True)
class Report:
    """What a storm did, and everything that went wrong."""

    summary: str
    matches: int
    moves: int
    blows: Mapping[str, int]
    problems: Sequence[str]
    table: str  # as Markdown, for docs/results.md
    aborted: str  # likewise: how many matches were aborted, by cause


def storm(
    parlor: Callable[[Mapping[str, str]], Stack],
    seconds: float,
    seed: str,
    *,
    players: int = PLAYERS,
    moves: int = 0,
    turn_clock: float = 20,
    harms: Mapping[str, Harm] = NOTHING,
) -> Report:
    """Start Parlor, strike it for so long while `players` play, and find out what that did.

    `parlor` starts it with an environment, and waits until it is ready. It is struck for longer if that is not enough
    for every victim to be struck once and for so many `moves` to be made. With a short `turn_clock`, in seconds, more
    matches are ended by it. `harms` are what else is done to it.
    """
    stack = parlor({**ENV, "TURN_CLOCK": str(turn_clock)})
    with StubServer() as stub:
        scripts = {"chat": Reply(chat, delay=0.5), "slow": Reply(chat, delay=3 * LEASE)}
        for name, reply in scripts.items():
            stub.script(name, reply)
        add_model(stack, stub.url, "chat", "chat", PARTNER)
        if harms:  # a long storm
            add_model(stack, stub.url, "slow", "slow", SLOW_PARTNER)
            harms = {**harms, SILENT: silenced(stub, scripts)}
        return _storm(stack, seconds, seed, players, moves, harms)


def _storm(stack: Stack, seconds: float, seed: str, players: int, moves: int, harms: Mapping[str, Harm]) -> Report:
    embedded = not stack.env["REDIS_URL"]
    calm = threading.Event()
    wishes = [*WISHES, *(SLOW_WISHES if harms else ())]
    crowd = [Player(f"player {n}", stack.url, wishes, f"{seed}/{n}", calm) for n in range(players)]
    for player in crowd:
        player.start()
    processes = (*VICTIMS, *(("broker",) if embedded else ()))
    stop = threading.Event()
    works = lambda name, since: _works(stack, name, since, crowd)  # noqa: E731
    killer = Killer(stack, processes, harms, f"{seed}/killer", stop, works)
    began = time.monotonic()
    killer.start()
    time.sleep(seconds)
    while (killer.to_begin_with or _moves(stack) < moves) and time.monotonic() < began + 10 * seconds:
        time.sleep(0.5)
    stop.set()
    struck_for = time.monotonic() - began
    killer.join(PATIENCE)
    wait_until(lambda: all(pid_of(stack, name) for name in CHILDREN) and _serves(stack), "all processes", PATIENCE)
    calm.set()
    problems = [] if killer.failure is None else [f"the killer failed: {killer.failure!r}"]
    deadline = time.monotonic() + 2 * PATIENCE
    for player in crowd:
        player.join(max(0.1, deadline - time.monotonic()))
        if player.is_alive():
            problems.append(f"{player.name} did not come to an end")
    left = _end_what_is_left(stack, calm, crowd)
    problems += [line for player in (*crowd, *left) for line in player.complaints]
    stories = [story for player in (*crowd, *left) for story in player.stories]
    with database(stack) as engine:
        problems += audit(engine, stories, killer.blows)
        causes = aborted_by_cause(engine)
        with reading(engine) as session:
            rows = session.scalars(select(MatchRow)).all()
    problems += unexcused(causes)
    problems += unhandled(stack)
    ends: dict[str, int] = {}
    for row in rows:
        ends[row.reason or row.status] = ends.get(row.reason or row.status, 0) + 1
    made = sum(row.ply for row in rows)
    shown = sorted(seconds for story in stories for seconds in story.shown) or [0.0]
    summary = (
        f"seed {seed}, {struck_for:.0f} s: {len(rows)} matches with {made} moves; ends {ends};"
        f" {len(left)} started without their player; struck {dict(killer.count)};"
        f" {sum(story.connections for story in stories)} connections;"
        f" moves were shown after {shown[len(shown) // 2]:.2f} s, the slowest after {shown[-1]:.1f} s"
    )
    acknowledged = sum(bool(move.answer and move.answer["ok"]) for story in stories for move in story.moves)
    lost = sum("acknowledged, and logged as None" in line for line in problems)
    doubled = sum("a move id stands there twice" in line for line in problems)
    stuck = sum(row.status != "over" for row in rows)
    totals = f"{acknowledged} | {lost} | {doubled} | {stuck}"
    return Report(
        summary, len(rows), made, killer.count, problems, _table(totals, killer), aborted_table(len(rows), causes)
    )


def _table(totals: str, killer: Killer) -> str:
    """What was promised and kept, and how long each kind of harm was felt."""
    lines = ["| acknowledged | lost | doubled | stuck |", "|---|---|---|---|", f"| {totals} |", ""]
    lines += ["| harm | times | seconds until it works again, p50 | max |", "|---|---|---|---|"]
    for victim, times in sorted(killer.count.items()):
        took = sorted(killer.recovered.get(victim, [])) or [float("nan")]
        lines.append(f"| {victim} | {times} | {took[len(took) // 2]:.1f} | {took[-1]:.1f} |")
    return "\n".join(lines)


def _moves(stack: Stack) -> int:
    """How many moves were made so far."""
    with database(stack) as engine, reading(engine) as session:
        return session.scalar(select(func.sum(MatchRow.ply))) or 0


def _works(stack: Stack, name: str, since: datetime, crowd: Sequence[Player]) -> bool:
    """Whether a process has done since then what it is there for.

    The web process has when it serves and nearly all players are shown their match again: on a slow machine that takes
    them longer than its start, and who is cut off again before that would never see a view.
    """
    if name == "web":
        return _serves(stack) and sum(player.waits_for_a_view for player in crowd) <= len(crowd) / 10
    if name == "broker":
        return broker.answers(f"unix://{stack.home / 'run' / 'redis.sock'}")
    with database(stack) as engine, reading(engine) as session:
        if name == "upkeep":
            until = held_until(session, UPKEEP)
            return until is not None and until - UPKEEP_LEASE > since
        played = select(EventRow.seq).where(EventRow.move_id.startswith("model-"), EventRow.at > since).limit(1)
        return session.scalar(played) is not None


def _serves(stack: Stack) -> bool:
    """Whether pages come."""
    try:
        return stack.get("/healthz", timeout=2).strip() == "ok"
    except (OSError, http.client.HTTPException):
        return False


def _end_what_is_left(stack: Stack, calm: threading.Event, crowd: Sequence[Player]) -> list[Player]:
    """Matches whose start was answered to nobody: somebody sits down in each of them, and ends it."""
    with database(stack) as engine, reading(engine) as session:
        seats = session.execute(
            select(MatchRow.id, SeatRow.seat)
            .join(SeatRow, SeatRow.match_id == MatchRow.id)
            .where(SeatRow.kind == PERSON, MatchRow.status != "over")
        ).all()
    played = {story.table.match for player in crowd for story in player.stories}
    players = []
    for match, seat in seats:
        if match not in played:
            table = Table(stack.url, match, tickets.issue(settings_of(stack), match, seat), "")
            players.append(Player(f"player of {match}", stack.url, WISHES, match, calm, table))
    for player in players:
        player.start()
    for player in players:
        player.join(2 * PATIENCE)
    return players


def unhandled(stack: Stack) -> list[str]:
    """What any process says in its log that it did not see coming."""
    lines = [
        f"{path.name}: {line[:300]}"
        for path in sorted((stack.home / "logs").glob("*.log"))
        for line in path.read_text(errors="replace").splitlines()
    ]
    return [line for line in lines if "level='error'" in line or "<Greenlet at" in line]
