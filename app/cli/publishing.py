"""`flask model card|push|pull` and `flask dataset card|push|pull`: publish models and datasets, and pull published
ones.
"""

from collections.abc import Callable, Mapping
from typing import Any

import click

from app.cli.base import Command, Group, ensure_database, json_option, print_json, print_result, settings
from app.cli.jobs import JobCommands, queue_option
from app.cli.output import STDOUT, out_option, write_out
from app.cli.spec_options import spec_options
from app.core.errors import Invalid, Phrase, Verbatim
from app.core.extensions import db, reading, transact, writing
from app.datasets.store import find_dataset
from app.models import Dataset, LanguageModel, Publication
from app.publication import lifecycle
from app.publication.bundle import DATASET, MODEL
from app.publication.card import dataset_card, model_card
from app.publication.job import PUBLICATION
from app.publication.licences import LICENCES, check_licence
from app.publication.spec import PUBLIC, DatasetPullSpec, ModelPullSpec, PublicationSpec
from app.registry import get_model
from app.registry.checkpoint_check import check_checkpoint

_ARGUMENTS = {MODEL: click.argument("called", metavar="NAME"), DATASET: click.argument("called", metavar="DATASET")}
_LICENCES = f"One of {', '.join(LICENCES)}."


class _PublicationCommands(JobCommands[Publication]):
    """See `flask publication`."""

    help = "List, show, cancel and resume pushes of models and datasets."
    none_yet = "None yet: flask model push NAME --to OWNER/NAME --licence LICENCE"


_PUBLICATIONS = _PublicationCommands(PUBLICATION)
publication: Group = _PUBLICATIONS.group()


def _command_with_options(name: str, text: str, call: Callable[..., None], *options: Any) -> click.Command:
    for option in reversed(options):
        call = option(call)
    return click.command(name, cls=Command, help=text)(call)


# ---- Cards ---------------------------------------------------------------------------


def _card(kind: str) -> click.Command:
    def card(called: str, licence: str | None, out: str) -> None:
        chosen = check_licence(licence) if licence else ""
        ensure_database()
        with reading() as session:
            if kind == MODEL:
                text = model_card(session, settings().home, get_model(session, called), chosen)
            else:
                text = dataset_card(session, find_dataset(session, called), chosen)
        write_out([text.encode()], out)
        if out != STDOUT:
            click.echo(f"The card is in {out}.")

    text = f"Write the card of a {kind} (README.md): lineage, data, results, licence, how to make it again."
    licence = click.option("--licence", metavar="LICENCE", help=f"{_LICENCES} [default: none, and the card says so]")
    return _command_with_options("card", text, card, _ARGUMENTS[kind], licence, out_option)


# ---- Pushes --------------------------------------------------------------------------


# The one option beside those of the spec: a second spelling, kept because it is short and was there first.
_PUBLIC = click.option("--public", "visibility", flag_value=PUBLIC, help=f"The same as --visibility {PUBLIC}.")
_PUSHES = {MODEL: "`flask model push` pushes those", DATASET: "`flask dataset push` pushes those"}


def _push_command(kind: str) -> click.Command:
    other = DATASET if kind == MODEL else MODEL

    def push(spec: PublicationSpec, yes: bool, dry_run: bool, queue: bool, as_json: bool) -> None:
        if getattr(spec, other) is not None:  # which only a file can say
            raise Invalid(other, expected=f"none, but a {kind}", got=getattr(spec, other), remedy=_PUSHES[other])
        if queue and spec.place.folder is not None:
            raise Invalid("--queue", expected="a repository: a folder is written here", got=spec.to)
        ensure_database()
        with reading() as session:
            planned = lifecycle.plan(session, settings().home, spec)
        if dry_run and as_json:
            print_json(_planned_json(spec, planned))
            return
        if not as_json:
            click.echo("\n".join(_planned_push_lines(spec, planned)), err=not dry_run)
        if dry_run:
            return
        if not yes:
            if as_json:
                raise Invalid("--json", expected="--yes with it: it asks nothing", got=Verbatim("none"))
            click.confirm("Copies cannot be called back. Push?", abort=True, err=True)
        with writing() as session:
            number = lifecycle.create(session, spec, planned, queued=queue).id
        _PUBLICATIONS.go_on(number, queue, as_json)

    text = (
        f"Push a {kind} with its card to a repository of the hub, or to a folder.\n\nIt is published only if everybody"
        " whose games are in it agreed to this, through all that it was made from. The token is that of HF_TOKEN."
        "\n\nExit code 0: it is there; 1: it stopped, and a line says why; 2: refused; 130: interrupted."
    )
    return _command_with_options(
        "push", text, push, spec_options(PublicationSpec, argument=kind, without=(other,)), _PUBLIC,
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Say what would be published, or why not, and send nothing."),
        queue_option, json_option,
    )  # fmt: skip


def _planned_json(spec: PublicationSpec, planned: lifecycle.PlannedPush) -> Mapping[str, Any]:
    release = planned.release
    return {
        "name": planned.name,
        "to": str(spec.place),
        "visibility": spec.visibility,
        "licence": spec.licence,
        "files": len(planned.bundle.files),
        "size": planned.bundle.size,
        "manifest": planned.bundle.manifest.sha256,
        "matches": release.sources,
        "people": [each._asdict() for each in release.people],
        "inherited": [each._asdict() for each in release.inherited],
        "warnings": [str(each) for each in planned.warnings],
    }


def _planned_push_lines(spec: PublicationSpec, planned: lifecycle.PlannedPush) -> list[str]:
    size = f"{len(planned.bundle.files)} files with {planned.bundle.size:,} bytes"
    where = "" if spec.place.folder else f", {spec.visibility} if it is new"
    lines = [f"{planned.name} is published under {spec.licence}: {size}, to {spec.place}{where}."]
    lines += [
        f"In it are {each.matches} games of people of study {each.study}, who all agreed to publication."
        for each in planned.release.people
    ]
    return [*lines, *(f"{each}." for each in planned.warnings)]


# ---- Pulls ---------------------------------------------------------------------------


def _pull(kind: str) -> click.Command:
    def pull(spec: DatasetPullSpec, as_json: bool) -> None:
        from app.publication import pull as pulling

        ensure_database()
        commit = transact(db.engine)

        def tell(said: Phrase) -> None:
            if not as_json:
                click.echo(str(said), err=True)

        if isinstance(spec, ModelPullSpec):
            number = pulling.pull_model(commit, settings(), spec, look=check_checkpoint, tell=tell)
        else:
            number = pulling.pull_dataset(commit, reading, settings(), spec, tell=tell)
        with reading() as session:
            row: Any = session.get_one(LanguageModel if kind == MODEL else Dataset, number)
            found = pulling.described(row)
        print_result(as_json, found, f"{kind.capitalize()} {number} ({found['name']}) is registered.")

    more = "its weights are safetensors, and no code of theirs is run" if kind == MODEL else "each row is checked"
    text = (
        f"Register a {kind} from a repository of the hub, or from a folder that was pushed to.\n\nEvery file is"
        f" compared with the hash in the manifest; {more}. Nothing is registered before all of it is here."
    )
    options = spec_options(ModelPullSpec if kind == MODEL else DatasetPullSpec, argument="place")
    return _command_with_options("pull", text, pull, options, json_option)


model_card_command, dataset_card_command = _card(MODEL), _card(DATASET)
push_model, push_dataset = _push_command(MODEL), _push_command(DATASET)
pull_model, pull_dataset = _pull(MODEL), _pull(DATASET)
