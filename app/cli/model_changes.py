"""`flask model edit|clone|archive|restore|remove`: change a registered model, or clone it."""

from collections.abc import Callable
from typing import Any

import click
from sqlalchemy.orm import Session

from app.cli.base import Command, ensure_database, print_result, settings, warn_of_bfloat16
from app.cli.local_model import folder_at, stored_path
from app.cli.model_format import next_steps
from app.cli.model_options import (
    PRICE_HELP,
    further_option,
    given_options,
    label_option,
    number_options,
    read_numbers,
    with_further,
)
from app.core.errors import Invalid, Verbatim
from app.core.extensions import reading, writing
from app.players.local.options import read_template_arguments
from app.players.local.serving import PLAY_WITH
from app.registry import changes, get_model
from app.registry.checkpoint_check import check_checkpoint
from app.registry.description import described
from app.registry.serving import set_play_with

_SAMPLING = ("temperature", "top_p", "max_tokens")


@click.command(cls=Command)
@click.argument("name")
@click.option("--label", metavar="LABEL", help="The only name that participants see.")
@click.option("--notes", metavar="TEXT", help="For experimenters.")
@number_options(
    **{name: f"{text}. none: unset." for name, text in PRICE_HELP.items()},
    price_training="US dollars a million trained tokens, or none.",
    in_flight="Requests at once, of all matches of a worker, or none.",
    tokens_per_minute="Of prompts and answers together, or none.",
    timeout="Of each attempt, or none.",
    retries="After a 429, a 5xx or no connection, or none.",
    reasoning_room="Tokens for reasoning beside those of a move, or none.",
)
@click.option(
    "--play-with", type=click.Choice(PLAY_WITH), help="Who computes a local model's answers: a worker, or its server."
)
@click.option("--json", "as_json", is_flag=True, help="Print what is stored as JSON.")
def edit(name: str, label: str | None, notes: str | None, play_with: str | None, as_json: bool, **given: Any) -> None:
    """Change a model's label, notes, prices and limits; none resets an option to its default.

    What changes how it plays makes a new model: flask model clone.
    """
    options = read_numbers(given_options(given), list(given))
    if label is None and notes is None and play_with is None and not options:
        raise Invalid(None, expected="at least one option that says what to change", got=Verbatim("none"))
    ensure_database()
    with writing() as session:
        if play_with is not None:
            set_play_with(session, name, play_with)
        stored = described(
            changes.edit_model(session, name, label=label, notes=notes, options=options), settings().home
        )
    _show(stored, f"Changed {name}.", as_json)


@click.command(cls=Command)
@click.argument("name")
@click.argument("new_name")
@label_option
@click.option("--base-url", metavar="URL", help="Another server.")
@click.option("--model", metavar="ID", help="Another model of the server.")
@click.option("--path", metavar="FOLDER", help="Another checkpoint.")
@click.option("--prompt-style", metavar="STYLE", help="Another way of prompting.")
@number_options(
    temperature="0 to 2, or none: not sent, of an API model.",
    top_p="0 to 1, or none.",
    max_tokens="Maximum tokens per move, or none: the game's.",
)
@click.option("--template-arguments", metavar="JSON", help="Of the chat template of a local model.")
@further_option("Another option of its kind.")
@click.option("--json", "as_json", is_flag=True, help="Print what was stored as JSON.")
def clone(
    name: str,
    new_name: str,
    label: str | None,
    path: str | None,
    prompt_style: str | None,
    more: tuple[str, ...],
    as_json: bool,
    **given: Any,
) -> None:
    """Add a copy of a model, changed as the options say."""
    home = settings().home
    options = with_further(read_numbers(given_options(given), _SAMPLING), more)
    if "template_arguments" in options:
        options["template_arguments"] = read_template_arguments(options["template_arguments"])
    ensure_database()
    adapter_of = None
    if path is not None:
        with reading() as session:
            _check_local(get_model(session, name).kind)
        folder = folder_at(home, path)
        facts = check_checkpoint(folder)
        options |= {"path": stored_path(home, folder), "sha256": facts["sha256"]}
        adapter_of = facts["adapter_of"]
    with writing() as session:
        row = changes.clone_model(
            session, name, new_name, label,
            options=options, prompt_style=prompt_style, adapter_of=adapter_of,
            hosts=settings().api_hosts, key_variables=settings().key_variables,
        )  # fmt: skip
        stored = described(row, home)
    if "dtype" in options:
        warn_of_bfloat16("dtype", options["dtype"], stored["options"].get("device"))
    _show(stored, f"Added {new_name}, which participants see as “{stored['label']}”.", as_json)
    if not as_json:
        click.echo(next_steps(stored))


@click.command(cls=Command)
@click.argument("name")
def archive(name: str) -> None:
    """Archive a model: its matches stay, and running work continues."""
    _change_in_transaction(lambda session: changes.archive_model(session, name))
    click.echo(f"Archived {name}. Nothing new can play it; flask model restore {name} undoes that.")


@click.command(cls=Command)
@click.argument("name")
def restore(name: str) -> None:
    """Restore a model from the archive."""
    _change_in_transaction(lambda session: changes.restore_model(session, name))
    click.echo(f"Restored {name}. It is used for nothing yet: flask model set {name} --rounds on")


@click.command(cls=Command)
@click.argument("name")
def remove(name: str) -> None:
    """Remove a model that nothing was played with or trained from; any other can be archived."""
    _change_in_transaction(lambda session: changes.remove_model(session, name))
    click.echo(f"Removed {name}.")


def _change_in_transaction(work: Callable[[Session], None]) -> None:
    ensure_database()
    with writing() as session:
        work(session)


def _show(stored: dict[str, Any], line: str, as_json: bool) -> None:
    print_result(as_json, stored, line)


def _check_local(kind: str) -> None:
    if kind != "local":
        raise Invalid("--path", expected="it for a local model only", got=Verbatim(f"one that is {kind}"))
