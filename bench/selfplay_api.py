"""How fast a round of an API model is played, beside one call at a time.

    python -m bench.selfplay_api                      # 64 and 256 calls in flight, 200 ms a call
    python -m bench.selfplay_api --in-flight 256 --profile

Parlor plays a round as a worker does: leases, limits, every event and every call committed to SQLite in a fresh folder.
The baseline is what reference play loops do: one match after the other, one call at a time, the OpenAI SDK with a new
client for each call, nothing written. Both ask the same stub, which answers every call after the same time with a legal
move; a match has eight. docs/results.md has the figures.
"""

import argparse
import json
import sys
import time
import uuid
from collections.abc import Sequence
from typing import Any

import openai
from sqlalchemy import func, select

from app.core.extensions import db, reading, writing
from app.jobs.context import JobContext
from app.matches import engine
from app.models import EventRow, GenerationRow, MatchRow
from app.players import prompts
from app.registry import add_api_model
from app.rounds import lifecycle
from app.rounds.runner import play_round
from app.rounds.spec import RoundSpec
from bench.in_process import fresh_parlor, timed
from bench.processes import yardstick_ms
from bench.stub import CALLS_A_MATCH, running

MODEL = "stub"


def baseline(url: str, matches: int) -> float:
    """Matches per second, one call at a time."""
    began = time.perf_counter()
    for seed in range(matches):
        prompt = prompts.default_prompt("negotiation", "full")
        _, match = engine.begin("negotiation", {}, seed, (prompt, prompt))
        while (seat := match.to_move) is not None:
            messages: Any = prompts.messages(match.view(seat), prompt)
            with openai.OpenAI(api_key="none", base_url=url) as client:
                answer = client.chat.completions.create(model=MODEL, messages=messages, temperature=1, max_tokens=200)
            _, match = engine.advance(match, seat, answer.choices[0].message.content or "", by_model=True)
        if match.ply != CALLS_A_MATCH:
            raise AssertionError(f"expected a match of {CALLS_A_MATCH} moves, got {match.ply}")
    return matches / (time.perf_counter() - began)


def parlor(url: str, in_flight: int, matches: int, profile: bool) -> dict[str, Any]:
    """Matches per second of a round, and how much of it is in the database."""
    with fresh_parlor() as settings:
        return _round(settings, url, in_flight, matches, profile)


def _round(settings: Any, url: str, in_flight: int, matches: int, profile: bool) -> dict[str, Any]:
    with writing() as session:
        options = {"model": MODEL, "base_url": url, "key_env": "", "in_flight": in_flight}
        add_api_model(session, MODEL, None, ["negotiation"], options)
        round_id = lifecycle.create(
            session, RoundSpec(game="negotiation", models=(MODEL,), matches=matches, seed=1), queued=False
        ).id

    async def work() -> None:
        await play_round(JobContext(db.engine, settings, uuid.uuid4().hex), round_id)

    seconds, cpu = timed(work(), profile=profile)
    return {**_stored(), "matches_per_second": matches / seconds, "cpu_ms_a_call": 1000 * cpu / matches / CALLS_A_MATCH}


def _stored() -> dict[str, int]:
    """The contents of the database: whole matches, their moves, and the calls behind them."""
    moves = select(func.count()).select_from(EventRow).where(EventRow.kind.in_(("message", "proposal")))
    deals = select(func.count()).select_from(MatchRow).where(MatchRow.reason == "deal")
    calls = select(func.count()).select_from(GenerationRow)
    with reading() as session:
        return {
            name: session.scalar(each) or 0 for name, each in (("moves", moves), ("deals", deals), ("calls", calls))
        }


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Both variants, at each number of calls in flight."""
    before = yardstick_ms()
    found: dict[str, Any] = {"latency": options.latency, "in_flight": {}}
    with running(options.latency) as url:
        found["baseline_per_second"] = baseline(url, options.baseline_matches)
        for in_flight in options.in_flight:
            matches = in_flight * options.rounds
            side = parlor(url, in_flight, matches, options.profile)
            side["whole"] = side["deals"] == matches and side["moves"] == side["calls"] == matches * CALLS_A_MATCH
            side["ratio"] = side["matches_per_second"] / found["baseline_per_second"]
            side["of_ideal"] = side["matches_per_second"] * CALLS_A_MATCH * options.latency / in_flight
            found["in_flight"][in_flight] = side
    return {**found, "yardstick_ms": [before, yardstick_ms()]}


def table(found: dict[str, Any]) -> str:
    """All results, for a terminal."""
    lines = [
        f"A round of negotiations of {CALLS_A_MATCH} calls, {1000 * found['latency']:g} ms a call",
        f"one call at a time: {found['baseline_per_second']:.3f} matches/s",
        f"{'in flight':>9} {'matches/s':>10} {'ratio':>7} {'of the ideal':>13} {'CPU ms a call':>14}  all committed",
    ]
    for in_flight, side in found["in_flight"].items():
        lines.append(
            f"{in_flight:>9} {side['matches_per_second']:>10.1f} {side['ratio']:>7.1f} {side['of_ideal']:>13.2f}"
            f" {side['cpu_ms_a_call']:>14.3f}  {'yes' if side['whole'] else 'NO'}"
        )
    before, after = found["yardstick_ms"]
    return "\n".join([*lines, f"a fixed piece of Python before / after, ms: {before:.1f} / {after:.1f}"])


def main(arguments: Sequence[str] | None = None) -> int:
    """0: measured; 1: something was not committed."""
    parser = argparse.ArgumentParser(prog="python -m bench.selfplay_api", description="Measures rounds of API models.")
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 256], help="calls at once (64 256)")
    parser.add_argument("--rounds", type=int, default=6, help="matches for each call in flight (6)")
    parser.add_argument("--baseline-matches", type=int, default=4, help="matches of the baseline (4)")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that the stub takes (0.2)")
    parser.add_argument("--profile", action="store_true", help="say where the time goes, which makes all slower")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    found = measure(parser.parse_args(arguments))
    print(json.dumps(found) if "--json" in (arguments or sys.argv) else table(found))
    return 0 if all(side["whole"] for side in found["in_flight"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
