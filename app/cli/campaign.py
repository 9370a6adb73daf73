"""`flask campaign`: play, filter, train, register and evaluate in a loop, here or by the workers."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import click
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.analysis.tables import campaign_columns, campaign_rows
from app.analysis.themes import LIGHT, THEMES
from app.analysis.wording import in_words
from app.campaigns import lifecycle, steps
from app.campaigns.job import CAMPAIGN
from app.campaigns.listing import evaluated, figure_of, results
from app.campaigns.material import parted
from app.campaigns.spec import METHODS, PARTNER, STARTS, TRAINING, read_spec
from app.cli.base import (
    CommandFailed,
    Group,
    Interrupted,
    RepeatableOption,
    check_one_format,
    ensure_database,
    is_pair,
    print_csv,
    print_json,
    read_pairs,
    read_value,
    settings,
)
from app.cli.drawing import write_as_named
from app.cli.job import train_here
from app.cli.round import material_of, play_here
from app.datasets.filters import ABOVE_AVG, FILTERS
from app.errors import Invalid, Verbatim
from app.extensions import db, reading, writing
from app.games import metrics_of
from app.games.metrics import AS_PLAYED, Use
from app.jobs import states
from app.matches.lobby import new_seed, read_seed
from app.models import Campaign
from app.rounds.job import ROUND
from app.rounds.runner import freeze_garbage_collector

campaign = Group("campaign", help="Have a model learn from its own matches, again and again.")


@campaign.command()
@click.option("--game", required=True, metavar="GAME")
@click.option("--base", required=True, metavar="MODEL", help="The local model to start from.")
@click.option("--rounds", "iterations", default="5", show_default=True, metavar="N", help="How often.")
@click.option("--matches", default="500", show_default=True, metavar="N", help="Matches of each round.")
@click.option("--evaluation", default="500", show_default=True, metavar="N", help="Held-out matches for each model.")
@click.option(
    "--evaluation-temperature",
    default="0",
    show_default=True,
    metavar="T",
    help="Evaluate at this temperature, too; 0 is greedy, none leaves it out.",
)
@click.option(
    "--partner",
    default=PARTNER,
    show_default=True,
    metavar="MODEL",
    help="Evaluate against this model, too, which nobody trains with; none leaves it out.",
)
@click.option("--filter", "filter_", type=click.Choice(FILTERS), default=ABOVE_AVG, show_default=True)
@click.option("--method", type=click.Choice(METHODS), default=METHODS[0], show_default=True)
@click.option(
    "--start", type=click.Choice(STARTS), default=STARTS[0], show_default=True, help="What a training goes on from."
)
@click.option(
    "--config", cls=RepeatableOption, belongs=is_pair, metavar="K=V", help="A setting of the game: objective=coop."
)
@click.option(
    "--train",
    cls=RepeatableOption,
    belongs=is_pair,
    metavar="K=V",
    help="A field of the training, as of `flask train`. [" + " ".join(f"{k}={v:g}" for k, v in TRAINING.items()) + "]",
)
@click.option("--contexts", metavar="FILE", help="Negotiation: contexts, of which a tenth is held out. [generated]")
@click.option("--words", metavar="FILE", help="Taboo: target words, of which a tenth is held out, or all. [all]")
@click.option("--seed", metavar="S", help="Rounds, evaluations and trainings follow from it. [default: drawn]")
@click.option("--temperature", metavar="T", help="0 to 2. [default: the model's own]")
@click.option("--top-k", metavar="K", help="Sample from the K likeliest tokens.")
@click.option("--max-tokens", metavar="N", help="Most tokens of one move. [default: the game's]")
@click.option("--name", metavar="NAME", help="Models are called NAME-1, NAME-2. [default: base, objective and number]")
@click.option("--queue", is_flag=True, help="Hand the campaign to the workers and return at once.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def run(game: str, filter_: str, name: str | None, queue: bool, as_json: bool, **given: Any) -> None:
    """Play, keep the better transcripts, train on them, register the model, evaluate it; and again with that model.

    All models, the base first, are evaluated on the same held-out material: as they play, once more greedily, and
    against a partner that they were not trained with. Exit code 0: all iterations are done; 1:
    the campaign stopped; 130: interrupted, and a line says how to resume.
    """
    config, training = read_pairs(given.pop("config"), "--config"), read_pairs(given.pop("train"), "--train")
    sampling = {field: given.pop(field) for field in ("temperature", "top_k", "max_tokens")}
    items = material_of(game, given.pop("contexts"), given.pop("words"), config)
    seed = given.pop("seed")
    wanted = read_spec(
        {
            **{field: read_value(value) if field in _NUMBERS else value for field, value in given.items()},
            "game": game,
            "filter": filter_,
            "config": config,
            "training": training,
            "sampling": {field: read_value(value) for field, value in sampling.items() if value is not None},
        },
        seed=new_seed() if seed is None else read_seed(seed, "--seed"),
    )
    ensure_database()
    material = parted(wanted.game, items, wanted.evaluation, wanted.seed)
    with writing() as session:
        campaign_id = lifecycle.create(session, wanted, name, material, queued=queue).id
    _go_on(campaign_id, queue, as_json)


_NUMBERS = ("iterations", "matches", "evaluation")


@campaign.command()
@click.argument("campaign_id", metavar="CAMPAIGN", type=int)
@click.option("--queue", is_flag=True, help="Hand the campaign to the workers and return at once.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def resume(campaign_id: int, queue: bool, as_json: bool) -> None:
    """Go on with a campaign that failed, was cancelled or interrupted, from its last step."""
    ensure_database()
    with writing() as session:
        CAMPAIGN.resume(session, campaign_id, queued=queue)
    _go_on(campaign_id, queue, as_json)


@campaign.command()
@click.argument("campaign_id", metavar="CAMPAIGN", type=int)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def cancel(campaign_id: int, as_json: bool) -> None:
    """Stop a campaign, and the round or the training that it is at. All that was made stays."""
    ensure_database()
    with writing() as session:
        described = _described(session, CAMPAIGN.cancel(session, campaign_id))
    if as_json:
        print_json(described)
    else:
        click.echo(f"Campaign {campaign_id} is {described['status']}; `flask campaign resume {campaign_id}` goes on.")


@campaign.command()
@click.argument("campaign_id", metavar="CAMPAIGN", type=int)
@click.option("--chart", "path", type=Path, metavar="FILE", help="Draw its figure into this file: .svg or .png.")
@click.option("--theme", type=click.Choice(THEMES), default=LIGHT, show_default=True, help="The colours of the figure.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV: a row an iteration.")
def show(campaign_id: int, path: Path | None, theme: str, as_json: bool, as_csv: bool) -> None:
    """Show what the models of a campaign have come to, each with its 95 % interval."""
    check_one_format(as_json, as_csv)
    ensure_database()
    with reading() as session:
        described = _described(session, CAMPAIGN.get(session, campaign_id))
        chart = figure_of(session, campaign_id)
    if path is not None:
        if chart is None:
            raise Invalid(
                "campaign",
                expected="one whose base was evaluated",
                got=Verbatim("none of its figures yet"),
                subject=f"campaign {campaign_id}",
            )
        write_as_named(chart, path, theme)
    if as_json:
        print_json(described)
    elif as_csv:
        print_csv(campaign_columns([described["game"]]), campaign_rows(campaign_id, described["results"]))
    else:
        _say(described)


@campaign.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_(as_json: bool) -> None:
    """Show all campaigns, the latest first."""
    ensure_database()
    with reading() as session:
        rows = session.scalars(select(Campaign).order_by(Campaign.id.desc()))
        found = [_described(session, row) for row in rows]
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("No campaigns yet: flask campaign run --game negotiation --base tiny-base")
    for each in found:
        done = f"{each['evaluated']}/{each['iterations']}"
        click.echo(f"{each['campaign_id']:>5}  {each['game']:<12} {each['status']:<12} {done:>7}  {each['name']}")


# ---- Running ------------------------------------------------------------------


def _go_on(campaign_id: int, queue: bool, as_json: bool) -> None:
    if not queue:
        _run_here(campaign_id, as_json)
        return
    CAMPAIGN.enqueue(settings().broker_url, campaign_id)
    if as_json:
        print_json({"campaign_id": campaign_id, "queued": True})
    else:
        click.echo(
            f"Campaign {campaign_id} waits for the workers; `flask campaign show {campaign_id}` says how far it is."
        )


def _run_here(campaign_id: int, as_json: bool) -> None:
    bench = steps.CampaignContext(db.engine, settings().home, uuid.uuid4().hex)
    freeze_garbage_collector()
    interrupted = False
    while not interrupted and (part := steps.take_steps(bench, campaign_id)) is not None:
        click.echo(f"{part.kind.name} {part.number}", err=True)
        interrupted = asyncio.run(play_here(part.number)) if part.kind is ROUND else train_here(part.number)
    with reading() as session:
        described = _described(session, CAMPAIGN.get(session, campaign_id))
    again = f"`flask campaign resume {campaign_id}` goes on"
    if interrupted:
        raise Interrupted(
            f"Interrupted: campaign {campaign_id} has evaluated {described['evaluated']} of"
            f" {described['iterations']} iterations; {again}."
        )
    if as_json:
        print_json(described)
    else:
        _say(described)
    if described["status"] in (states.FAILED, states.CANCELLED):
        why = f": {described['error']}; once that is mended, {again}" if described["error"] else f"; {again}"
        raise CommandFailed(f"campaign {campaign_id} was stopped{why}")


def _say(described: dict[str, Any]) -> None:
    click.echo(f"Campaign {described['campaign_id']}, {described['name']}: {described['status']}.")
    columns = metrics_of(described["game"]).shown(Use.EVALUATION)
    titles = ["", "model", "evaluated", *(each.title for each in columns)]
    lines = [titles]
    for each in described["results"]:
        further = {label: found["figures"] for label, found in each["evaluations"].items()}
        for label, figures in ((AS_PLAYED, each["figures"]), *further.items()):
            cells = ["…" if figures is None else in_words(figures.get(column.name), column.unit) for column in columns]
            lines.append([str(each["iteration"]), each["model"] or "…", label, *cells])
    widths = [max(len(line[place]) for line in lines) for place in range(len(titles))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _described(session: Session, row: Campaign) -> dict[str, Any]:
    """A campaign as JSON."""
    found = results(session, row.id)
    return {
        "campaign_id": row.id,
        "name": row.name,
        "game": row.game,
        "status": CAMPAIGN.state_of(session, row),
        "error": row.error,
        "iterations": row.iterations,
        "evaluated": evaluated(row, found),
        "spec": row.spec,
        "results": [
            {
                "iteration": each.row.number,
                "model": each.model and each.model.name,
                "round_id": each.row.round_id,
                "dataset_id": each.row.dataset_id,
                "job_id": each.row.job_id,
                "evaluation_id": each.row.evaluation_id,
                "figures": each.row.figures,
                "evaluations": {
                    label: {"round_id": found.round_id, "figures": found.figures}
                    for label, found in each.further.items()
                },
            }
            for each in found
        ],
    }
