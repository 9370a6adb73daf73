"""`flask model add-local`: a checkpoint folder becomes a model."""

from pathlib import Path
from typing import Any

import click

from app.cli.base import Command, ensure_database, print_json, read_value, settings, warn_of_bfloat16
from app.cli.model_format import next_steps
from app.cli.model_options import games_option, given_options, label_option, number_options, style_option
from app.core.config import ROOT
from app.core.extensions import writing
from app.players.local.options import read_template_arguments, resolve
from app.players.stop_strings import read_stop
from app.registry import add_local_model
from app.registry.checkpoint_check import check_checkpoint
from app.registry.checkpoint_folders import check_checkpoint_folder
from app.registry.description import described

_NUMBERS = ("temperature", "top_k", "top_p", "max_tokens", "in_flight", "reasoning_room")


@click.command(cls=Command)
@click.argument("name")
@click.option("--path", required=True, metavar="FOLDER", help="config.json, safetensors and a tokenizer.")
@label_option
@games_option
@style_option
@number_options(
    temperature="0, which is greedy, to 2. [default: 1]",
    top_k="Sample from the K likeliest tokens. [default: all]",
    top_p="Sample from the likeliest that have this share together. [default: all]",
    max_tokens="Maximum tokens per move. [default: the game's]",
    in_flight="Matches that are batched together. [default: 128]",
    reasoning_room="Tokens for reasoning beside those of a move. [default: by --reasoning]",
)
@click.option(
    "--reasoning", metavar="R", help="off, low, medium, high, tokens, or template: as it does. [default: template]"
)
@click.option("--stop", metavar="JSON", help='Texts before which an answer ends, as ["User:"]. [default: none]')
@click.option("--template-arguments", metavar="JSON", help='Of the chat template, as {"enable_thinking": false}.')
@click.option("--device", metavar="D", help="auto, cpu or cuda. [default: auto]")
@click.option("--dtype", metavar="T", help="auto, float32 or bfloat16. [default: bfloat16 on a GPU, else float32]")
@click.option("--json", "as_json", is_flag=True, help="Print what was stored, and what the folder holds, as JSON.")
def add_local(
    name: str, path: str, label: str | None, games: tuple[str, ...], prompt_style: str, as_json: bool, **given: Any
) -> None:
    """Add a causal language model from a folder, after loading it once.

    The folder stays where it is and must not change: its hash is checked whenever the model is loaded.
    """
    home = settings().home
    folder = folder_at(home, path)
    options = given_options(given)
    options |= {option: read_value(options[option]) for option in _NUMBERS if option in options}
    if "template_arguments" in options:
        options["template_arguments"] = read_template_arguments(options["template_arguments"])
    if "stop" in options:
        options["stop"] = list(read_stop(options["stop"]))
    warn_of_bfloat16("dtype", options.get("dtype"), options.get("device"))
    facts = check_checkpoint(folder)
    options |= {"path": stored_path(home, folder), "sha256": facts["sha256"]}
    ensure_database()
    with writing() as session:
        row = add_local_model(
            session, name, label, games, options, prompt_style=prompt_style, adapter_of=facts["adapter_of"]
        )
        stored = described(row, home)
    if as_json:
        print_json({**stored, "checkpoint": facts})
        return
    click.echo(f"Added {stored['name']}, which participants see as “{stored['label']}”.")
    click.echo(f"  games      {', '.join(stored['games'])}")
    click.echo(f"  folder     {folder}")
    click.echo(f"  model      {facts['architecture']}, {facts['parameters']:,} parameters")
    click.echo(f"  length     {facts['length']:,} tokens, of a vocabulary of {facts['vocabulary']:,}")
    if not facts["chat_template"]:
        click.echo("It has no chat template, so chats are put to it in the plain form of docs/training.md.")
    click.echo(next_steps(stored))


def folder_at(home: Path, path: str) -> Path:
    """The folder that a path names, relative to the current folder, PARLOR_HOME or the project's folder."""
    here = Path(path).expanduser()
    folder = (here if here.exists() else resolve(home, path)).resolve()
    check_checkpoint_folder(home, folder)
    return folder


def stored_path(home: Path, folder: Path) -> str:
    """The path to store in the registry: relative if the folder may move together with PARLOR_HOME or the project."""
    for root in (home, ROOT):
        if folder.is_relative_to(root) and resolve(home, relative := str(folder.relative_to(root))) == folder:
            return relative
    return str(folder)
