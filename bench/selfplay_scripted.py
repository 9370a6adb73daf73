"""How fast scripted players play against each other on one core, and how much memory that takes.

    python -m bench.selfplay_scripted --matches 5000           # Deal or No Deal, beside the plain loop
    python -m bench.selfplay_scripted --game taboo --json
    python -m bench.selfplay_scripted --matches 100000 --curve # memory after 1,000 matches, 2,000, 5,000 and so on

All ways play the same seeds, in turns of a few hundred matches, and must log the same. Then a round of as many matches
is played as a worker plays it: every event is committed to SQLite in a fresh folder. docs/results.md has the figures.
"""

import argparse
import hashlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import func, select

from app.core.config import Settings
from app.core.extensions import db, reading, writing
from app.games import GAMES
from app.games.base import JSON, Event
from app.jobs.context import JobContext
from app.matches import engine
from app.matches.events import RESERVED, LogEvent, from_json, to_json
from app.matches.live import turn_rng
from app.models import EventRow, RoundRow
from app.players.scripted.player import ScriptedPlayer
from app.rounds import lifecycle
from app.rounds.runner import freeze_garbage_collector, play_round
from app.rounds.spec import RoundSpec
from bench.in_process import fresh_parlor, timed
from bench.processes import usage, yardstick_ms

Play = Callable[[str, int], list[LogEvent]]  # game and seed → the log of the match

TURN = 250  # matches that one way plays in each turn
MOST_COMPARED = 5000  # matches for the ways that write nothing
WARM_UP = 500  # matches before the clock starts, in which tables and word lists are read and caches filled
MARKS = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)  # matches after which memory is measured
_PLAYER = ScriptedPlayer()


# ---- Ways to play a match -----------------------------------------------------


def in_memory(game: str, seed: int) -> list[LogEvent]:
    """The engine as self-play uses it: the match is kept alongside its log."""
    started, match = engine.begin(game, {}, seed)
    log: list[LogEvent] = [started]
    while (seat := match.to_move) is not None:
        rng = turn_rng(seed, seat, match.ply, len(match.refused))
        events, match = engine.advance(match, seat, _PLAYER.choose(match.view(seat), rng), by_model=True)
        log += events
    return log


def plainly(game: str, seed: int) -> list[LogEvent]:
    """The baseline: the log is kept as JSON, and every move is made on a replay of the whole log."""
    stored: list[JSON] = [to_json(engine.start(game, {}, seed))]
    while (seat := (match := engine.replay(map(from_json, stored))).to_move) is not None:
        rng = turn_rng(seed, seat, match.ply, len(match.refused))
        text = _PLAYER.choose(match.view(seat), rng)
        stored += map(to_json, engine.step(match, seat, text, by_model=True))
    return [from_json(raw) for raw in stored]


WAYS: Mapping[str, Play] = {"in memory": in_memory, "plain loop": plainly}
FIRST, BASELINE = "in memory", "plain loop"


# ---- Measuring ------------------------------------------------------------------


def measure(game: str, matches: int) -> dict[str, Any]:
    """Matches per second of CPU time in each way, by the median and the best turn, and whether all logs are the
    same.
    """
    for seed in range(WARM_UP):
        in_memory(game, seed)
    freeze_garbage_collector()  # as every process that plays rounds does
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    digests = {name: hashlib.sha256() for name in WAYS}
    moves = 0
    for first in range(WARM_UP, WARM_UP + matches, TURN):
        seeds = range(first, min(first + TURN, WARM_UP + matches))
        for name, play in WAYS.items():
            begun = time.process_time()
            logs = [play(game, seed) for seed in seeds]
            seconds[name].append((time.process_time() - begun) / len(seeds))
            digests[name].update(json.dumps([[to_json(event) for event in log] for log in logs]).encode())
        moves += sum(isinstance(event, Event) for log in logs for event in log)
    ways = {
        name: {"per_second": 1 / statistics.median(each), "best_per_second": 1 / min(each)}
        for name, each in seconds.items()
    }
    return {
        "ways": ways,
        "compared": matches,
        "moves_a_match": moves / matches,
        "ratio": ways[FIRST]["per_second"] / ways[BASELINE]["per_second"],
        "same_logs": len({digest.digest() for digest in digests.values()}) == 1,
    }


def committed(game: str, matches: int) -> dict[str, Any]:
    """A round as a worker plays it: matches per second of CPU time, whether all is stored, and MiB of memory (RSS)."""
    with fresh_parlor() as settings:
        return _round(settings, game, matches)


def _round(settings: Settings, game: str, matches: int) -> dict[str, Any]:
    with writing() as session:
        round_id = lifecycle.create(
            session, RoundSpec(game=game, models=("scripted",), matches=matches, seed=1, pick="in-order"), queued=False
        ).id
    rss: dict[int, float] = {}

    def finished() -> int:
        with reading() as session:
            return session.scalar(select(RoundRow.finished)) or 0

    def look(_round_id: int) -> None:
        done = finished()
        for mark in (*MARKS, matches):
            if mark <= done and mark not in rss:
                rss[mark] = usage(os.getpid()).rss

    async def work() -> None:
        await play_round(JobContext(db.engine, settings, "bench"), round_id, look)

    seconds, cpu = timed(work())
    with reading() as session:
        ended = session.scalar(select(func.count()).where(EventRow.kind == "ended"))
        moves = session.scalar(select(func.count()).where(EventRow.kind.not_in(RESERVED)))
        counted = session.scalar(select(RoundRow.moves))
    whole = finished() == ended == matches and moves == counted
    return {"per_second": matches / cpu, "wall_per_second": matches / seconds, "whole": whole, "rss_mib": rss}


def table(found: Mapping[str, Any]) -> str:
    """All results, for a terminal."""
    title = f"{found['game']}, {found['compared']} scripted matches of {found['moves_a_match']:.1f} moves, one core"
    lines = [title, "=" * len(title), ""]
    for name, way in found["ways"].items():
        lines.append(f"{name:16} {way['per_second']:8.0f} matches/s (median), {way['best_per_second']:.0f} (best)")
    before, after = found["yardstick_ms"]
    stored = found["committed"]
    lines += [
        f"{'committed':16} {stored['per_second']:8.0f} matches/s of CPU, {stored['wall_per_second']:.0f} by the clock",
        f"all committed: {'yes' if stored['whole'] else 'NO'}",
        f"{FIRST} / {BASELINE}: {found['ratio']:.2f}",
        f"same logs: {'yes' if found['same_logs'] else 'NO'}",
        f"a fixed piece of Python before / after, ms: {before:.1f} / {after:.1f}",
    ]
    if found["curve"]:
        lines += [f"after {count:>7} matches: {mib:6.0f} MiB" for count, mib in stored["rss_mib"].items()]
    return "\n".join(lines)


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line. Exits with one line if an option is invalid."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.selfplay_scripted", description="Measures scripted self-play; see docs/results.md."
    )
    parser.add_argument("--matches", type=int, default=3000, help="matches that each way plays (3000)")
    parser.add_argument("--game", choices=sorted(GAMES), default="negotiation", help="what is played (negotiation)")
    parser.add_argument("--curve", action="store_true", help="say how the memory grows over the round, too")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    if options.matches < 1:
        parser.error("expected at least 1 match")
    return options


def main() -> int:
    """0: measured; 1: the ways' logs differ, or something was not committed."""
    options = read_options()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    found: dict[str, Any] = {"game": options.game, "matches": options.matches, "curve": options.curve}
    yardstick = yardstick_ms()
    found |= measure(options.game, min(options.matches, MOST_COMPARED))
    found["committed"] = committed(options.game, options.matches)
    found["yardstick_ms"] = [yardstick, yardstick_ms()]
    print(json.dumps(found) if options.json else table(found))
    return 0 if found["same_logs"] and found["committed"]["whole"] else 1


if __name__ == "__main__":
    sys.exit(main())
