"""`flask campaign`: play, filter, train, register and evaluate in a loop, here or by the workers."""

from pathlib import Path
from typing import Any

import click

from app.analysis.tables import campaign_columns, campaign_rows
from app.analysis.themes import LIGHT, THEMES
from app.analysis.wording import in_words
from app.campaigns import steps
from app.campaigns.creation import CREATION
from app.campaigns.export import recipe_archive
from app.campaigns.job import CAMPAIGN
from app.campaigns.listing import figure_of
from app.campaigns.spec import CampaignSpec
from app.cli.archives import export_command
from app.cli.base import (
    Command,
    CommandFailed,
    Interrupted,
    check_one_format,
    ensure_database,
    json_option,
    print_csv,
    print_json,
    warn_of_bfloat16,
)
from app.cli.drawing import write_as_named
from app.cli.jobs import JobCommands, create, prepared, queue_option
from app.cli.material import read_material
from app.cli.spec_options import spec_options
from app.cli.steps import run_steps
from app.core.errors import Invalid, Verbatim
from app.core.extensions import reading
from app.games import GAMES, metrics_of
from app.games.metrics import AS_PLAYED, Use
from app.jobs import states
from app.models import Campaign


@click.command(cls=Command)
@spec_options(CampaignSpec)
@queue_option
@json_option
def run(spec: CampaignSpec, queue: bool, as_json: bool) -> None:
    """Play, keep the better transcripts, train on them, register the model, evaluate it; and again with that model.

    All models, the base first, are evaluated on the same held-out material: as they play, once more greedily, and
    against fixed opponents. Exit code 0: all iterations are done; 1: the campaign stopped; 130: interrupted, and a
    line says how to resume.
    """
    warn_of_bfloat16("training.precision", spec.training.get("precision"), spec.training.get("device"))
    items = read_material(spec.game, spec.material, spec.config)
    ensure_database()
    [number] = create(CREATION, prepared(CREATION, spec, {"material": items}), queued=queue)
    _CAMPAIGNS.go_on(number, queue, as_json)


class _CampaignCommands(JobCommands[Campaign]):
    """See `flask campaign`."""

    help = "Train a model repeatedly on its own matches."
    none_yet = f"No campaigns yet: flask campaign run --game {next(iter(GAMES))} --base tiny-base"
    resume_help = "Resume a campaign that failed, was cancelled or interrupted, from its last step."
    cancel_help = "Cancel a campaign and its current round or training. Finished results are kept."
    show_help = "Show the results of a campaign's models, each with its 95 % interval."
    list_help = "Show the campaigns, the latest first."
    show_options = (
        click.option("--chart", "path", type=Path, metavar="FILE", help="Draw its figure: .svg, .pdf or .png."),
        click.option("--theme", type=click.Choice(THEMES), default=LIGHT, show_default=True, help="Colours of it."),
        click.option("--csv", "as_csv", is_flag=True, help="Print CSV: a row per iteration."),
    )

    def print_one(  # type: ignore[override]  # takes options of its own
        self, number: int, as_json: bool, path: Path | None, theme: str, as_csv: bool
    ) -> None:
        """Print the results of a campaign's models, and draw them."""
        check_one_format(as_json, as_csv)
        described = self.read(number)
        with reading() as session:
            chart = figure_of(session, number)
        if path is not None:
            if chart is None:
                raise Invalid(
                    "campaign",
                    expected="one whose base was evaluated",
                    got=Verbatim("none of its figures yet"),
                    subject=f"campaign {number}",
                )
            write_as_named(chart, path, theme)
        if as_json:
            print_json(described)
        elif as_csv:
            print_csv(campaign_columns([described["game"]]), campaign_rows(number, described["results"]))
        else:
            _print_campaign_results(described)
            if described["error"]:
                click.echo(f"error  {described['error']}")

    def run_here(self, number: int, as_json: bool) -> None:
        """Run or continue a campaign in this process."""
        _run_here(number, as_json)


_CAMPAIGNS = _CampaignCommands(CAMPAIGN)
campaign = _CAMPAIGNS.group()
campaign.add_command(run)
campaign.add_command(
    export_command(
        CAMPAIGN,
        recipe_archive,
        "Write a campaign as a recipe, with the files of its material: `flask recipe run` plays the same again.",
    )
)


# ---- Running ------------------------------------------------------------------


def _run_here(campaign_id: int, as_json: bool) -> None:
    interrupted = run_steps(steps.take_steps, campaign_id, lambda job: f"{job.kind.name} {job.number}")
    described, again = _CAMPAIGNS.read(campaign_id), _CAMPAIGNS.goes_on(campaign_id)
    if interrupted:
        raise Interrupted(
            f"Interrupted: campaign {campaign_id} has evaluated {described['evaluated']} of"
            f" {described['iterations']} iterations; {again}."
        )
    if as_json:
        print_json(described)
    else:
        _print_campaign_results(described)
    if described["status"] in (states.FAILED, states.CANCELLED):
        why = f": {described['error']}; after that is repaired, {again}" if described["error"] else f"; {again}"
        raise CommandFailed(f"campaign {campaign_id} was stopped{why}")


def _print_campaign_results(described: dict[str, Any]) -> None:
    click.echo(f"Campaign {described['campaign_id']}, {described['name']}: {described['status']}.")
    start = described["spec"].get("start_matches")
    if start and start["held_out"]:
        click.echo(
            f"Dataset {start['number']}, from which it started, has rows of matches on held-out material:"
            f" {start['held_out']} of {start['matches']}; its models have met some of what they are evaluated on."
        )
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
