"""`flask model`: the registry of language models."""

from typing import Any

import click

from app.cli.base import Group, Several, ensure_database, is_pair, print_json, read_pairs, read_value, settings
from app.cli.lineage import lineage
from app.cli.local_model import add_local
from app.cli.model_words import described, in_full, in_words
from app.errors import Conflict
from app.extensions import reading, writing
from app.games import GAMES, find_game
from app.registry import add_api_model, add_scripted_model, get_model, list_models, set_enabled

model = Group("model", help="List, add and switch the models that people can play against.")
model.add_command(add_local)
model.add_command(lineage)


@model.command("list")
@click.option("--game", metavar="GAME", help="Only models that play this game.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_(game: str | None, as_json: bool) -> None:
    """Show every registered model."""
    if game is not None:
        find_game(game)
    ensure_database()
    with reading() as session:
        found = [described(row, settings().home) for row in list_models(session, game)]
    if as_json:
        print_json(found)
        return
    titles = {"name": "NAME", "label": "LABEL", "kind": "KIND", "games": "GAMES", "state": "STATE", "detail": "DETAIL"}
    lines = [titles, *({**each, "games": ", ".join(each["games"]), **in_words(each)} for each in found)]
    widths = {field: max(len(line[field]) for line in lines) for field in titles}
    for line in lines:
        click.echo("  ".join(line[field].ljust(width) for field, width in widths.items()).rstrip())


@model.command("add-api")
@click.argument("name")
@click.option("--model", "remote", required=True, metavar="ID", help="The model's name at the server.")
@click.option("--base-url", metavar="URL", help="The server, up to /v1. [default: $OPENAI_BASE_URL, or OpenAI]")
@click.option("--organisation", metavar="O", help="The organisation that pays.")
@click.option("--key-env", metavar="VARIABLE", help="NAME of the variable that holds the key; '' for a server without.")
@click.option("--label", metavar="LABEL", help="The only name that participants see. [default: a neutral one]")
@click.option("--game", "games", cls=Several, belongs=GAMES.__contains__, metavar="GAME", help="What it plays. [all]")
@click.option("--temperature", metavar="T", help="0 to 2, or none: not sent. [default: 1]")
@click.option("--max-tokens", metavar="N", help="Most tokens of one move. [default: the game's]")
@click.option("--timeout", metavar="SECONDS", help="Of each attempt. [default: 60]")
@click.option("--retries", metavar="N", help="After a 429, a 5xx or no connection. [default: 4]")
@click.option("--in-flight", metavar="N", help="Requests at once, of all matches of a worker. [default: 32]")
@click.option("--tokens-per-minute", metavar="N", help="Of prompts and answers together. [default: any number]")
@click.option("--prompt-style", default="full", show_default=True, metavar="STYLE", help="How it is prompted.")
@click.option(
    "--option",
    "more",
    cls=Several,
    belongs=is_pair,
    metavar="NAME=VALUE",
    help="top_p, seed, extra, price_in, price_out.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was stored as JSON.")
def add_api(
    name: str,
    remote: str,
    label: str | None,
    games: tuple[str, ...],
    prompt_style: str,
    more: tuple[str, ...],
    as_json: bool,
    **given: Any,
) -> None:
    """Add a model behind an OpenAI-compatible server.

    The key itself is never stored: --key-env names the variable of the workers' environment that holds it.
    """
    options = {"model": remote, **{option: value for option, value in given.items() if value is not None}}
    for number in ("temperature", "max_tokens", "timeout", "retries", "in_flight", "tokens_per_minute"):
        if number in options:
            options[number] = None if options[number] == "none" else read_value(options[number])
    # The value of a further option may be a key that was put there by mistake, so it is never shown.
    further = read_pairs(more, "--option", show=False)
    if twice := sorted(set(options) & set(further)):
        raise Conflict(f"--option: expected {twice[0]} once, got it twice")
    ensure_database()
    with writing() as session:
        further_options = {**options, **further}
        row = add_api_model(
            session, name, label, games, further_options, prompt_style=prompt_style, hosts=settings().api_hosts
        )
        stored = described(row, settings().home)
    if as_json:
        print_json(stored)
        return
    click.echo(f"Added {stored['name']}, which participants see as “{stored['label']}”.")
    for field in ("games", "model", "base_url", "key_env"):
        value = stored[field]
        click.echo(f"  {field.replace('_', ' '):<9}{', '.join(value) if isinstance(value, list) else value or 'none'}")
    if stored["key_env"] and not stored["key_set"]:
        click.echo(f"{stored['key_env']} is not set here; set it where the workers run.")
    click.echo(f"Try it: flask play {stored['games'][0]} --against {name}")


@model.command("add-scripted")
@click.argument("name")
@click.option("--manner", required=True, metavar="MANNER", help="plain, casual or careless.")
@click.option("--label", metavar="LABEL", help="The only name that participants see. [default: a neutral one]")
@click.option("--json", "as_json", is_flag=True, help="Print what was stored as JSON.")
def add_scripted(name: str, manner: str, label: str | None, as_json: bool) -> None:
    """Add a scripted player with a manner of its own.

    casual types as people do, and chats between its clues; careless forgets what was agreed in a negotiation, which is
    what a weak model can be trained on.
    """
    ensure_database()
    with writing() as session:
        stored = described(add_scripted_model(session, name, label, {"manner": manner}), settings().home)
    if as_json:
        print_json(stored)
    else:
        click.echo(f"Added {stored['name']}, which participants see as “{stored['label']}”.")


@model.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(name: str, as_json: bool) -> None:
    """Show all that is known of a model."""
    ensure_database()
    with reading() as session:
        row = get_model(session, name)
        found = described(row, settings().home)
        lines = dict(in_full(row, found))
    if as_json:
        print_json(found)
        return
    width = max(map(len, lines))
    for field, value in lines.items():
        click.echo(f"{field.ljust(width)}  {value}")


@model.command()
@click.argument("name")
def enable(name: str) -> None:
    """Let people play against a model again."""
    _switch(name, True)


@model.command()
@click.argument("name")
def disable(name: str) -> None:
    """Offer a model to nobody; games in progress go on."""
    _switch(name, False)


def _switch(name: str, enabled: bool) -> None:
    ensure_database()
    with writing() as session:
        set_enabled(session, name, enabled)
    click.echo(f"{name} is {'enabled' if enabled else 'disabled'}.")
