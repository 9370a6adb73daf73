"""`flask model`: the registry of language models."""

import os
from typing import Any

import click

from app.cli.base import Group, Several, ensure_database, is_pair, print_json, read_pairs, read_value, settings
from app.errors import Conflict
from app.extensions import reading, writing
from app.games import GAMES, find_game
from app.models import LanguageModel
from app.players.api_options import read_options
from app.registry import add_api_model, list_models, set_enabled

model = Group("model", help="List, add and switch the models that people can play against.")


@model.command("list")
@click.option("--game", metavar="GAME", help="Only models that play this game.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_(game: str | None, as_json: bool) -> None:
    """Show every registered model."""
    if game is not None:
        find_game(game)
    ensure_database()
    with reading() as session:
        found = [_described(row) for row in list_models(session, game)]
    if as_json:
        print_json(found)
        return
    titles = {"name": "NAME", "label": "LABEL", "kind": "KIND", "games": "GAMES", "state": "STATE", "detail": "DETAIL"}
    lines = [titles, *({**each, "games": ", ".join(each["games"]), **_in_words(each)} for each in found)]
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
@click.option("--prompt-style", default="full", show_default=True, metavar="STYLE", help="How it is prompted.")
@click.option("--option", "more", cls=Several, belongs=is_pair, metavar="NAME=VALUE", help="top_p, seed, extra.")
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
    for number in ("temperature", "max_tokens", "timeout", "retries"):
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
        stored = _described(row)
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


def _described(row: LanguageModel) -> dict[str, Any]:
    """A registry row as JSON. Of a key, only the variable's name and whether it is set here."""
    described: dict[str, Any] = {
        "name": row.name, "label": row.label, "kind": row.kind, "games": row.games, "enabled": row.enabled,
        "options": row.options,
    }  # fmt: skip
    if row.kind == "api":
        options = read_options(row.options)
        described |= {
            "model": options.model,
            "base_url": options.base_url,
            "key_env": options.key_env,
            "key_set": bool(os.environ.get(options.key_env, "").strip()) if options.key_env else None,
        }
    return described


def _in_words(described: dict[str, Any]) -> dict[str, str]:
    words = {"state": "enabled" if described["enabled"] else "disabled", "detail": ""}
    if described["kind"] == "api":
        key = f"key in {described['key_env']}" if described["key_env"] else "no key"
        unset = " (not set here)" if described["key_set"] is False else ""
        words["detail"] = f"{described['model']} at {described['base_url']}, {key}{unset}"
    return words
