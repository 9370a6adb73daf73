"""`flask round`: self-play rounds, played here or by the workers."""

import asyncio
import signal
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from app.cli.base import (
    Command,
    CommandFailed,
    Interrupted,
    counted,
    ensure_database,
    json_option,
    print_json,
    settings,
)
from app.cli.jobs import Described, JobCommands, create, prepared, queue_option
from app.cli.material import read_material
from app.cli.progress_bar import rising
from app.cli.spec_options import read_budget, refusals_of_budget, spec_options
from app.core import write_priority
from app.core.extensions import db, writing
from app.games import GAMES
from app.jobs import states
from app.jobs.context import JobContext
from app.jobs.spending import dollars
from app.models import RoundRow
from app.rounds import matrix
from app.rounds.creation import CREATION
from app.rounds.job import ROUND
from app.rounds.listing import LIST
from app.rounds.runner import freeze_garbage_collector, play_round
from app.rounds.spec import RoundSpec

ABORTED = 3  # the exit code when a model could not continue some of the matches


@click.command(cls=Command)
@spec_options(RoundSpec)
@queue_option
@json_option
def run(spec: RoundSpec, queue: bool, as_json: bool) -> None:
    """Play a round, and show how far it is.

    Exit code 0: all matches ended by the game's own rules; 3: some were aborted by a model; 1: the round stopped;
    130: interrupted, and a line says how to resume.
    """
    material = read_material(spec.game, spec.material, spec.config)
    ensure_database()
    ids = create(CREATION, prepared(CREATION, spec, {"material": material}), queued=queue)
    _go_on(ids, queue, as_json, several=spec.cross_play)


_whole = click.option("--cross-play", "whole", is_flag=True, help="All rounds of the cross-play that it is part of.")


class _RoundCommands(JobCommands[RoundRow]):
    """See `flask round`."""

    help = "Have models play rounds of matches against each other."
    none_yet = f"No rounds yet: flask round run {next(iter(GAMES))} --models scripted scripted --matches 100"
    resume_help = "Play what is left of a round that was cancelled, interrupted or stopped."
    cancel_help = "Cancel a round. Finished matches are kept, and the rest can be resumed."
    show_help = "Show one round: what is played, and how far it is."
    list_help = "Show the rounds, the latest first. A cross-play is one line; as JSON, it is all of its rounds."
    resume_options = cancel_options = (_whole,)
    whole = replace(LIST, start=None)

    def stopped(self, described: Described) -> str:
        """The number of its matches so far."""
        return f", {described['finished']} of {described['matches']} matches over"

    def goes_on(self, number: int) -> str:
        """How to resume a round."""
        return f"`flask round resume {number}` plays the rest"

    def go_on(self, number: int, queue: bool, as_json: bool) -> None:
        """Play a round here, or hand it to the workers."""
        _go_on([number], queue, as_json, several=False)

    def resume(self, number: int, queue: bool, as_json: bool, whole: bool = False, **budget: Any) -> None:
        """Resume a round, or with `whole` all stopped rounds of its cross-play."""
        if not whole:
            super().resume(number, queue, as_json, **budget)
            return
        raised = read_budget(budget)
        with refusals_of_budget(), writing() as session:
            rows = matrix.resume(session, matrix.matrix_of(session, number), queued=queue, budget=raised)
            ids = [row.id for row in rows]
        _go_on(ids, queue, as_json, several=True)

    def cancel(self, number: int, as_json: bool, whole: bool = False) -> None:
        """Cancel a round, or with `whole` all rounds of its cross-play."""
        if not whole:
            super().cancel(number, as_json)
            return
        with writing() as session:
            first = matrix.matrix_of(session, number)
            found = self.described(session, matrix.cancel(session, first))
        if as_json:
            print_json({"matrix_id": first, "rounds": found})
            return
        count = counted(len(found), "round")
        click.echo(f"Cross-play {first}: {count} cancelled; `flask round resume {first} --cross-play` plays the rest.")


_ROUNDS = _RoundCommands(ROUND)
rounds = _ROUNDS.group()
rounds.add_command(run)


# ---- Playing ------------------------------------------------------------------


def _go_on(ids: Sequence[int], queue: bool, as_json: bool, several: bool) -> None:
    if queue:
        _hand_over(ids, as_json)
    else:
        _play_all(ids, as_json, several)


def _hand_over(ids: Sequence[int], as_json: bool) -> None:
    for round_id in ids:
        ROUND.enqueue(settings().broker_url, round_id)
    if as_json:
        print_json({"round_id": ids[0], "queued": True} if len(ids) == 1 else {"round_ids": list(ids), "queued": True})
    else:
        numbers = ", ".join(map(str, ids))
        click.echo(f"Round {numbers} waits for the workers; `flask round show {ids[0]}` says how far it is.")
        if len(ids) > 1:
            click.echo(f"`flask round cancel {ids[0]} --cross-play` stops them all.")


def _play_all(ids: Sequence[int], as_json: bool, several: bool) -> None:
    results = []
    freeze_garbage_collector()
    for round_id in ids:
        began = time.monotonic()
        interrupted = asyncio.run(play_here(round_id))
        described = _ROUNDS.read(round_id)
        results.append({**described, "seconds": round(time.monotonic() - began, 3)})
        if interrupted:
            raise Interrupted(
                f"Interrupted: {described['finished']} of {described['matches']} matches of round {round_id} are over;"
                f" `flask round resume {round_id}` plays the rest."
            )
    if as_json:
        print_json({"rounds": results} if several else results[0])
    else:
        for result in results:
            _print_round_result(result)
    failed = next((each for each in results if each["status"] not in (states.DONE, states.CANCELLED)), None)
    if failed is not None:
        number = failed["round_id"]
        raise CommandFailed(f"round {number} stopped: {failed['error']}; `flask round resume {number}` plays the rest")
    if any(each["aborted"] for each in results):
        click.get_current_context().exit(ABORTED)


async def play_here(round_id: int) -> bool:
    """Play a round in this process, with a progress bar. True after Ctrl-C."""
    stop = threading.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    write_priority.give_way()
    context = JobContext(db.engine, settings(), uuid.uuid4().hex, stop)
    shown = asyncio.create_task(rising(round_id, db.engine))
    try:
        await play_round(context, round_id)
    finally:
        shown.cancel()
        await asyncio.gather(shown, return_exceptions=True)
    return stop.is_set()


def _print_round_result(result: dict[str, Any]) -> None:
    pace = result["finished"] / max(result["seconds"], 0.001)
    line = (
        f"Round {result['round_id']}: {result['finished']} of {result['matches']} matches over in"
        f" {result['seconds']:.1f} s ({pace:.1f} a second), {result['moves']} moves"
    )
    if result["calls"]:
        estimated = result["estimated_tokens"]
        tokens = result["prompt_tokens"] + result["completion_tokens"] + estimated
        line += f", {result['calls']} calls, {tokens} tokens"
        line += f" ({estimated} of them by estimate)" if estimated else ""
        line += "" if result["cost"] is None else f", {dollars(result['cost'])}"
    aborted = f"; {'all' if result['all_aborted'] else result['aborted']} aborted" if result["aborted"] else ""
    click.echo(f"{line}{aborted}.")
