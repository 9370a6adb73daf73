"""`flask dataset`: training rows made from recorded matches."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click
from sqlalchemy.orm import undefer

from app.cli.base import Group, counted, ensure_database, json_option, print_json, print_result, progress, settings
from app.cli.dataset_import import import_rows
from app.cli.dataset_rebuild import rebuild
from app.cli.lists import list_options, print_list
from app.cli.output import STDOUT, check_target, json_with_out_option, out_option, write_out
from app.cli.spec_options import spec_options
from app.cli.tags import add_tag_commands, tag_option
from app.core import write_priority
from app.core.errors import Invalid, Verbatim, check_name
from app.core.extensions import db, reading, transact
from app.datasets import build as builder
from app.datasets import register, store
from app.datasets.description import dataset_json
from app.datasets.export import FORMAT_NAMES, export_dataset, export_pieces, form_of
from app.datasets.exporters.flat import DIALOGUE, TEMPLATES
from app.datasets.exporters.row_formats import PARLOR
from app.datasets.listing import LIST
from app.datasets.spec import DatasetRequestSpec
from app.jobs.tags import DATASET, has_tag
from app.models import Dataset
from training.methods.base import CONVERSATIONS

dataset = Group("dataset", help="Rows to train on: cut from what was played, or imported.")
dataset.add_command(import_rows, "import")
dataset.add_command(rebuild)
add_tag_commands(dataset, DATASET, lambda session, called: store.find_dataset(session, called).id)


def _format_options(command: Any) -> Any:
    for option in (
        click.option(
            "--template",
            type=click.Choice(tuple(TEMPLATES)),
            help=f"How spag-rows write a chat as one text. [default: {DIALOGUE}]",
        ),
        click.option(
            "--format", "form", type=click.Choice(FORMAT_NAMES), default=PARLOR, show_default=True,
            help="The form of the rows in FILE.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


@dataset.command()
@spec_options(DatasetRequestSpec)
@click.option("--out", metavar="FILE", help="Write the rows there, too.")
@_format_options
@json_option
def build(spec: DatasetRequestSpec, out: str | None, form: str, template: str | None, as_json: bool) -> None:
    """Keep transcripts of finished matches, one row per seat.

    Without --round, --campaign, --source and --match, these are matches outside rounds.

    above_avg keeps seats that scored above the mean of their round, above_avg_nonzero those above the mean of its
    scores above 0, nonzero those above 0, and all keeps every seat.
    With rewards, moves of losers, of ties and of broken rules have weight 0. docs/formats.md says what a row holds.
    """
    _check_format(out, form, template)
    wanted = spec.cut
    called = spec.name or store.default_name(wanted)
    check_name("--name", called)
    ensure_database()
    home = settings().home
    with reading() as session:
        found = builder.prepare(session, wanted)
        with progress(builder.training_rows(session, found), lambda: found.matches) as rows:
            draft = store.write(home, found, rows)
    save = transact(db.engine)
    with register.discarded_on_error(save, draft):
        if out is not None:  # first: if it cannot be written, no dataset is registered
            write_out(export_pieces(lambda: store.pieces_of(draft.path), CONVERSATIONS, form, template), out)
        write_priority.give_way()
    number = register.save(save, draft, called)
    with reading() as session:
        described = dataset_json(store.get_dataset(session, number), home)
    print_result(
        as_json,
        {**described, "out": out} if out is not None else described,
        f"{_dataset_line(described)} of {draft.figures['matches']} matches in {out or described['file']}.",
    )


@dataset.command("list")
@tag_option
@list_options
def list_(tag: str | None, **given: Any) -> None:
    """Show all datasets, the latest first."""
    home = settings().home
    with_figures = replace(LIST, start=lambda: store.LATEST_FIRST.options(undefer(Dataset.figures)))
    print_list(
        LIST,
        "flask dataset list",
        "No datasets yet: flask dataset build --round 1 --filter above_avg",
        described=lambda _session, rows: [dataset_json(row, home) for row in rows],
        whole=with_figures,
        where=lambda _session: [has_tag(Dataset.id, DATASET, tag)] if tag else [],
        **given,
    )


@dataset.command()
@click.argument("called", metavar="DATASET")
@json_option
def show(called: str, as_json: bool) -> None:
    """Show one dataset, by number, name or name@version: what it was cut from, and how much of it there is."""
    ensure_database()
    with reading() as session:
        described = dataset_json(store.find_dataset(session, called), settings().home)
    if as_json:
        print_json(described)
        return
    for name, value in described.items():
        if name not in ("figures", "spec") and value is not None:
            click.echo(f"{name.replace('_', ' '):<18}{value}")
    wanted = described["spec"]
    for source in ("imported", "society"):
        if source in wanted:
            wanted = {f"{source} {key}": value for key, value in wanted[source].items()}
    conditions = {f"matches: {key}": value for key, value in wanted.get("matches", {}).items()}
    for name, value in {**{key: value for key, value in wanted.items() if key != "matches"}, **conditions}.items():
        text = ", ".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else value
        click.echo(f"{name:<17} {'any' if text in (None, '') else text}")
    if rewards := described["figures"].get("rewards"):
        click.echo(f"{'rewarded moves':<18}{rewards['moves']}")
        for game, role, moves, mean, weight in rewards["by_role"]:
            click.echo(f"{game}, {role}: {moves} rewarded moves, mean reward {mean:.4g}, weight {weight:.4g}")


@dataset.command()
@click.argument("called", metavar="DATASET")
@_format_options
@out_option
@json_with_out_option
def export(called: str, form: str, template: str | None, out: str, as_json: bool) -> None:
    """Write the rows of a dataset, as they were cut or in another form.

    parlor: as they were cut, JSON lines. spag-rows: a JSON array with one row per move. openai: chats for its
    fine-tuning. trl-prompt-completion: one row per move. trl-preference: pairs, of datasets of comparisons.
    """
    check_target(out, as_json, "the rows themselves go")
    ensure_database()
    with reading() as session:
        row = store.find_dataset(session, called)
        write_out(export_dataset(settings().home, row, form, template), out)
        described = dataset_json(row, settings().home)
    if as_json:
        print_json({**described, "out": out})
    elif out != STDOUT:
        click.echo(f"{_dataset_line(described)} in {out}.")


def _check_format(out: str | None, form: str, template: str | None) -> None:
    form_of(CONVERSATIONS, form, template)
    if out is None and form != PARLOR:
        raise Invalid("--format", expected="--out FILE beside it", got=Verbatim("none"))


def _dataset_line(described: dict[str, Any]) -> str:
    rows = described["rows"]
    name = f"{described['name']}@{described['version']}"
    return f"Dataset {described['dataset_id']} ({name}): {counted(rows, 'row')}"
