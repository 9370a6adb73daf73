"""`flask round`: self-play rounds, played here or by the workers."""

import asyncio
import signal
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import click
from sqlalchemy import select

from app.cli.base import (
    CommandFailed,
    Group,
    Interrupted,
    RepeatableOption,
    ensure_database,
    is_pair,
    print_json,
    read_pairs,
    read_value,
    settings,
)
from app.cli.progress_bar import rising
from app.errors import Invalid, Verbatim
from app.extensions import db, reading, writing
from app.games import find_game
from app.jobs import states
from app.matches.lobby import new_seed, read_seed
from app.models import RoundRow
from app.rounds import lifecycle, material, matrix
from app.rounds.job import ROUND
from app.rounds.listing import all_rounds, waits_behind
from app.rounds.plan import IN_ORDER, PICKS, SHUFFLED
from app.rounds.runner import RoundContext, freeze_garbage_collector, play_round

ABORTED = 3  # the exit code when a model could not go on with some of the matches
WORKERS_CALLED = 8  # more than that are called by upkeep, as long as a part of the round is free

rounds = Group("round", help="Have models play rounds of matches against each other.")


def _is_name(argument: str) -> bool:
    return not argument.startswith("-")


@rounds.command()
@click.argument("game")
@click.option(
    "--models", cls=RepeatableOption, belongs=_is_name, required=True, metavar="A B", help="Of seat 0 and seat 1."
)
@click.option("--matches", metavar="N", help="How many. [default: 100, or each word of --words once]")
@click.option(
    "--config", cls=RepeatableOption, belongs=is_pair, metavar="K=V", help="A setting of the game: objective=coop."
)
@click.option("--contexts", metavar="FILE", help="Negotiation: contexts to play, two lines each.")
@click.option("--words", metavar="FILE", help="Taboo: target words, one a line, or all. [default: all]")
@click.option("--pick", type=click.Choice(PICKS), help="How matches get theirs. [contexts: in-order, words: shuffled]")
@click.option("--swap-seats", is_flag=True, help="Play each game twice, with the models' seats swapped.")
@click.option("--cross-play", is_flag=True, help="A round for every pair of any number of models.")
@click.option("--seed", metavar="S", help="Play the round that this number gives. [default: drawn]")
@click.option("--temperature", metavar="T", help="0 to 2, for all models. [default: each model's own]")
@click.option("--greedy", is_flag=True, help="The same as --temperature 0.")
@click.option("--top-k", metavar="K", help="Sample from the K likeliest tokens, where the server can.")
@click.option("--max-tokens", metavar="N", help="Most tokens of one move. [default: the game's]")
@click.option("--name", default="", metavar="NAME", help="What lists call the round. [default: its models]")
@click.option("--queue", is_flag=True, help="Hand the round to the workers and return at once.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def run(game: str, models: Sequence[str], queue: bool, cross_play: bool, as_json: bool, **given: Any) -> None:
    """Play a round, and show how far it is.

    Exit code 0: all matches ended by the game's own rules; 3: some were aborted by a model; 1: the round stopped;
    130: interrupted, and a line says how to resume.
    """
    wish = _wish(game, models, cross_play, given)
    ensure_database()
    with writing() as session:
        if cross_play:
            ids = [row.id for row in matrix.create(session, wish, models, queued=queue)]
        else:
            ids = [lifecycle.create(session, wish, queued=queue).id]
    if queue:
        _hand_over(ids, as_json)
    else:
        _play_all(ids, as_json, cross_play)


_whole = click.option("--cross-play", "whole", is_flag=True, help="All rounds of the cross-play that it is part of.")


@rounds.command()
@click.argument("round_id", type=int)
@click.option("--queue", is_flag=True, help="Hand the round to the workers and return at once.")
@_whole
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def resume(round_id: int, queue: bool, whole: bool, as_json: bool) -> None:
    """Play what is left of a round that was cancelled, interrupted or stopped."""
    ensure_database()
    with writing() as session:
        if whole:
            rows = matrix.resume(session, matrix.matrix_of(session, round_id), queued=queue)
            ids = [row.id for row in rows]
        else:
            ids = [ROUND.resume(session, round_id, queued=queue).id]
    if queue:
        _hand_over(ids, as_json)
    else:
        _play_all(ids, as_json, several=whole)


@rounds.command()
@click.argument("round_id", type=int)
@_whole
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def cancel(round_id: int, whole: bool, as_json: bool) -> None:
    """Stop a round. What was played stays, and the rest can be resumed."""
    ensure_database()
    with writing() as session:
        number = matrix.matrix_of(session, round_id) if whole else None
        rows = [ROUND.cancel(session, round_id)] if number is None else matrix.cancel(session, number)
        found = [_described(session, row) for row in rows]
    described = found[0]
    if as_json:
        print_json(described if number is None else {"matrix_id": number, "rounds": found})
    elif number is not None:
        count = f"{len(found)} round{'' if len(found) == 1 else 's'}"
        click.echo(
            f"Cross-play {number}: {count} cancelled; `flask round resume {number} --cross-play` plays the rest."
        )
    else:
        over = f"{described['finished']} of {described['matches']} matches over"
        click.echo(
            f"Round {round_id} is {described['status']}, {over}; `flask round resume {round_id}` plays the rest."
        )


@rounds.command()
@click.argument("round_id", type=int)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(round_id: int, as_json: bool) -> None:
    """Show one round: what is played, and how far it is."""
    ensure_database()
    with reading() as session:
        described = _described(session, ROUND.get(session, round_id))
    if as_json:
        print_json(described)
        return
    for name, value in {**described, "status": _status(described)}.items():
        if name == "all_aborted":
            continue
        text = ", ".join(map(str, value)) if isinstance(value, list) else value
        click.echo(f"{name.replace('_', ' '):<18}{'' if text is None else text}".rstrip())


@rounds.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_(as_json: bool) -> None:
    """Show all rounds, the latest first. A cross-play is one line; as JSON, it is all of its rounds."""
    ensure_database()
    with reading() as session:
        if as_json:
            rows = session.scalars(select(RoundRow).order_by(RoundRow.id.desc()))
            print_json([_described(session, row) for row in rows])
            return
        found = all_rounds(session)
    if not found:
        click.echo("No rounds yet: flask round run negotiation --models scripted scripted --matches 100")
    for each in found:
        status = _status({"status": each.state, "all_aborted": each.all_aborted})
        line = f"{each.row.id:>5}  {each.row.game:<12} {status:<17} {each.finished:>7}/{each.matches:<7}"
        models = " and ".join(each.models) or each.row.name
        many = f"cross-play of {len(each.members)} rounds: {', '.join(each.models)}"
        click.echo(f"{line}  {many if each.members else models}")


# ---- Reading ------------------------------------------------------------------


def _wish(game: str, models: Sequence[str], cross_play: bool, given: dict[str, Any]) -> lifecycle.RoundSpec:
    find_game(game)
    if not cross_play and len(models) > 2:
        raise Invalid("--models", expected="one or two names, or --cross-play with more", got=len(models))
    items = material_of(game, given["contexts"], given["words"], config := read_pairs(given["config"], "--config"))
    if given["greedy"] and given["temperature"] is not None:
        raise Invalid("--greedy", expected="it or --temperature", got=Verbatim("both"))
    sampling = {
        "temperature": 0 if given["greedy"] else _number(given["temperature"]),
        "top_k": _number(given["top_k"]),
        "max_tokens": _number(given["max_tokens"]),
    }
    default = IN_ORDER if game == "negotiation" else SHUFFLED
    return lifecycle.RoundSpec(
        game=game,
        models=(models[0], models[-1]),
        matches=_matches(given["matches"], given["swap_seats"], items if given["words"] else None),
        seed=new_seed() if given["seed"] is None else read_seed(given["seed"], "--seed"),
        config=config,
        swap_seats=given["swap_seats"],
        pick=given["pick"] or default,
        material=items,
        sampling={name: value for name, value in sampling.items() if value is not None},
        name=given["name"],
    )


def material_of(
    game: str, contexts: str | None, words: str | None, config: Mapping[str, Any]
) -> lifecycle.Material | None:
    """What `--contexts` or `--words` name. Raises Invalid for what the game does not take."""
    if contexts is not None and game != "negotiation":
        raise Invalid("--contexts", expected="only with negotiation", got=Verbatim(f"it with {game}"))
    if words is not None and game != "taboo":
        raise Invalid("--words", expected="only with taboo", got=Verbatim(f"it with {game}"))
    if contexts is not None:
        return material.contexts(contexts)
    if game == "taboo" and (words is not None or config.get("word") is None):
        return material.words(words or material.ALL)
    return None


def _matches(given: str | None, swap_seats: bool, each_once: lifecycle.Material | None) -> Any:
    if given is not None:
        return _number(given)
    return 100 if each_once is None else len(each_once.items) * (2 if swap_seats else 1)


def _number(text: str | None) -> Any:
    return None if text is None else read_value(text)


# ---- Playing ------------------------------------------------------------------


def _hand_over(ids: Sequence[int], as_json: bool) -> None:
    for round_id in ids:
        ROUND.enqueue(settings().broker_url, round_id, WORKERS_CALLED)
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
        with reading() as session:
            described = _described(session, ROUND.get(session, round_id))
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
            _say(result)
    failed = next((each for each in results if each["status"] not in (states.DONE, states.CANCELLED)), None)
    if failed is not None:
        number = failed["round_id"]
        raise CommandFailed(f"round {number} stopped: {failed['error']}; `flask round resume {number}` plays the rest")
    if any(each["aborted"] for each in results):
        click.get_current_context().exit(ABORTED)


async def play_here(round_id: int) -> bool:
    """Play a round in this process, with a bar. True if Ctrl-C came."""
    stop = threading.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    place = RoundContext(db.engine, settings(), uuid.uuid4().hex, stop)
    shown = asyncio.create_task(rising(round_id, db.engine))
    try:
        await play_round(place, round_id)
    finally:
        shown.cancel()
        await asyncio.gather(shown, return_exceptions=True)
    return stop.is_set()


def _say(result: dict[str, Any]) -> None:
    pace = result["finished"] / max(result["seconds"], 0.001)
    line = (
        f"Round {result['round_id']}: {result['finished']} of {result['matches']} matches over in"
        f" {result['seconds']:.1f} s ({pace:.1f} a second), {result['moves']} moves"
    )
    if result["calls"]:
        tokens = result["prompt_tokens"] + result["completion_tokens"]
        line += f", {result['calls']} calls, {tokens} tokens"
    aborted = f"; {'all' if result['all_aborted'] else result['aborted']} aborted" if result["aborted"] else ""
    click.echo(f"{line}{aborted}.")


def _status(described: Mapping[str, Any]) -> str:
    return "done, all aborted" if described["all_aborted"] else str(described["status"])


def _described(session: Any, row: RoundRow) -> dict[str, Any]:
    """A round as JSON."""
    return {
        "round_id": row.id,
        "name": row.name,
        "game": row.game,
        "models": [model.name for model in lifecycle.seated(session, row)],
        "status": ROUND.state_of(session, row),
        "error": row.error,
        "retry_at": None if row.retry_at is None else row.retry_at.isoformat(timespec="seconds"),
        "waits_behind": waits_behind(session, row),
        "config": row.config,
        "sampling": row.sampling,
        "seed": row.seed,
        "swap_seats": row.swap_seats,
        "pick": row.pick,
        "queued": row.queued,
        "matrix_id": row.matrix_id,
        "matches": row.matches,
        "finished": row.finished,
        "aborted": row.aborted,
        "all_aborted": lifecycle.all_aborted(row),
        "moves": row.moves,
        "violations": row.violations,
        "calls": row.calls,
        "failed_calls": row.failed_calls,
        "prompt_tokens": row.prompt_tokens,
        "completion_tokens": row.completion_tokens,
    }
