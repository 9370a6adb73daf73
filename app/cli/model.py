"""`flask model`: the registry of language models."""

from dataclasses import replace
from typing import Any

import click
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from app.cli.base import Group, ensure_database, print_json, print_result, settings
from app.cli.lists import list_options, print_list
from app.cli.model_format import in_words, next_steps
from app.cli.model_options import (
    PRICE_HELP,
    further_option,
    games_option,
    given_options,
    label_option,
    number_options,
    read_numbers,
    style_option,
    with_further,
)
from app.cli.tags import add_tag_commands, tag_option
from app.core.errors import Invalid, Phrase, Verbatim
from app.core.extensions import writing
from app.core.lists import COMMANDS, ListColumn
from app.games import find_game
from app.jobs.tags import MODEL, has_tag
from app.matches.model_list import LIST
from app.models import LanguageModel
from app.registry import (
    add_api_model,
    add_scripted_model,
    get_model,
    list_models,
    set_offered_to_people,
    set_usable_in_rounds,
)
from app.registry.description import described
from app.registry.price_table import find_prices, load_price_table
from app.registry.prices import PRICES, price_words

ON, OFF = "on", "off"
_NUMBERS = ("temperature", "max_tokens", "timeout", "retries", "in_flight", "tokens_per_minute", *PRICE_HELP)
_SWITCH = click.Choice([ON, OFF])

model = Group("model", help="List, add, test and switch the models of rounds and of people.")
add_tag_commands(model, MODEL, lambda session, called: get_model(session, called).id)


@model.command("list")
@click.option("--game", metavar="GAME", help="Only models that play this game.")
@click.option("--archived", is_flag=True, help="Include archived ones.")
@tag_option
@list_options
def list_(game: str | None, archived: bool, tag: str | None, **given: Any) -> None:
    """Show the registered models."""
    if game is not None:
        find_game(game)
    home = settings().home
    detail = ListColumn(
        "detail", Phrase("Detail"), lambda each: in_words(described(each.row, home))["detail"], seen=COMMANDS
    )

    def where(session: Session) -> list[ColumnElement[bool]]:
        numbers = [row.id for row in list_models(session, game, archived=archived)]
        return [LanguageModel.id.in_(numbers), *([has_tag(LanguageModel.id, MODEL, tag)] if tag else [])]

    print_list(
        replace(LIST, columns=(*LIST.columns, detail)),
        "flask model list",
        "No models yet: flask model add-api NAME --model ID",
        described=lambda _session, rows: [described(row, home) for row in rows],
        where=where,
        **given,
    )


@model.command("add-api")
@click.argument("name")
@click.option("--model", "remote", required=True, metavar="ID", help="The model's name at the server.")
@click.option("--base-url", metavar="URL", help="The server, up to /v1. [default: $OPENAI_BASE_URL, or OpenAI]")
@click.option("--organisation", metavar="O", help="The organisation that pays.")
@click.option("--key-env", metavar="VARIABLE", help="NAME of the variable that holds the key; '' for a server without.")
@label_option
@games_option
@number_options(
    temperature="0 to 2, or none: not sent. [default: 1]",
    max_tokens="Maximum tokens per move. [default: the game's]",
    timeout="Of each attempt. [default: 60]",
    retries="After a 429, a 5xx or no connection. [default: 4]",
    in_flight="Requests at once, of all matches of a worker. [default: 32]",
    tokens_per_minute="Of prompts and answers together. [default: any number]",
    **{name: f"{text}." for name, text in PRICE_HELP.items()},
)
@style_option
@further_option(
    "top_p, seed, extra, reasoning, reasoning_room, reasoning_form, stop, structured_output, structured_form,"
    " price_training."
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

    Prices that are not given are those of the table (flask model prices), if it has the model. The key itself is never
    stored: --key-env names the variable of the workers' environment that holds it.
    """
    options = with_further({"model": remote, **read_numbers(given_options(given), _NUMBERS)}, more)
    said = None
    if not set(PRICES) & set(options) and (line := find_prices(load_price_table(settings()), options)) is not None:
        options, said = {**options, **line.prices}, line.said
    ensure_database()
    with writing() as session:
        row = add_api_model(
            session,
            name,
            label,
            games,
            options,
            prompt_style=prompt_style,
            hosts=settings().api_hosts,
            key_variables=settings().key_variables,
        )
        stored = described(row, settings().home)
    if as_json:
        print_json(stored)
        return
    click.echo(f"Added {stored['name']}, which participants see as “{stored['label']}”.")
    for field in ("games", "model", "base_url", "key_env"):
        value = stored[field]
        click.echo(f"  {field.replace('_', ' '):<9}{', '.join(value) if isinstance(value, list) else value or 'none'}")
    if said is not None:
        click.echo(f"  prices   {price_words(stored['options'])}: {said}")
    if stored["key_env"] and not stored["key_set"]:
        click.echo(f"{stored['key_env']} is not set here; set it where the workers run.")
    click.echo(next_steps(stored))


@model.command("add-scripted")
@click.argument("name")
@click.option("--manner", metavar="MANNER", help="Style of a player: plain, casual or careless.")
@click.option("--chat", metavar="WHO", help="Answers the chats of a society, as agent or observer.")
@click.option("--unreadable", metavar="SHARE", help="Share of its ratings that are made unreadable. [default: 0]")
@label_option
@click.option("--json", "as_json", is_flag=True, help="Print what was stored as JSON.")
def add_scripted(
    name: str, manner: str | None, chat: str | None, unreadable: str | None, label: str | None, as_json: bool
) -> None:
    """Add a scripted player with its own style, or one that answers chats.

    casual types as people do, and chats between its clues; careless forgets what was agreed in a negotiation, which is
    what a weak model can be trained on. An agent and an observer of societies answer by a short list of words.
    """
    if (manner is None) == (chat is None) or (unreadable is not None and chat is None):
        raise Invalid(None, expected="--manner, or --chat with or without --unreadable", got=Verbatim("something else"))
    options = read_numbers(given_options({"manner": manner, "chat": chat, "unreadable": unreadable}), ("unreadable",))
    ensure_database()
    with writing() as session:
        stored = described(add_scripted_model(session, name, label, options), settings().home)
    print_result(
        as_json, stored, f"Added {stored['name']}, which participants see as “{stored['label']}”.", next_steps(stored)
    )


@model.command("set")
@click.argument("name")
@click.option("--rounds", type=_SWITCH, help="Whether rounds and campaigns can use it.")
@click.option("--people", type=_SWITCH, help="Whether people are offered it; on only after a passed test call.")
@click.option("--json", "as_json", is_flag=True, help="Print what is stored as JSON.")
def set_(name: str, rounds: str | None, people: str | None, as_json: bool) -> None:
    """Switch what a model is used for. Running work continues."""
    if rounds is None and people is None:
        raise Invalid(None, expected="--rounds on|off, --people on|off or both", got=Verbatim("neither"))
    ensure_database()
    with writing() as session:
        if rounds is not None:
            set_usable_in_rounds(session, name, rounds == ON)
        if people is not None:
            set_offered_to_people(session, name, people == ON)
        stored = described(get_model(session, name), settings().home)
    print_result(as_json, stored, f"{name} is used for {in_words(stored)['for']}.")
