"""`flask model test`, `verify-sampling` and `list-remote`: calls of a model outside matches, made in this process."""

import asyncio

import click

from app.cli.base import Command, CommandFailed, ensure_database, json_option, print_json, settings
from app.cli.model_format import found_lines
from app.core.errors import Invalid, Verbatim
from app.core.extensions import db, reading, writing
from app.model_calls.request_runner import make_here
from app.model_calls.test_call import check_costs, request_check, request_test
from app.players.api import remote_models
from app.players.api.finding_words import check_in_words
from app.players.api.options import ApiOptions
from app.players.api.server_findings import SamplingCheck
from app.registry import get_model, player_spec, read_options


@click.command(cls=Command)
@click.argument("name")
@json_option
def test(name: str, as_json: bool) -> None:
    """Ask a model for the first move of a match that is not stored, and keep the result.

    Of a model behind an API a few more short calls find out how it wants to be asked: which fields its server takes,
    whether it reasons, and what its answers bring. All are made here, with the keys of this environment. Exit code 0:
    it answered; 1: it did not.
    """
    ensure_database()
    with writing() as session:
        number = request_test(session, get_model(session, name)).id
    result = make_here(db.engine, settings(), number)
    if as_json:
        print_json(result)
    elif result["ok"]:
        legal = f", which is no legal move: {result['refused']}" if result["refused"] else ", a legal move"
        click.echo(f"{name} answered in {result['latency']:.1f} s{legal}.")
        _print_findings(name)
    if not result["ok"]:
        raise CommandFailed(f"{name} did not answer: {result['error']}")


def _print_findings(name: str) -> None:
    with reading() as session:
        lines = found_lines(get_model(session, name))
    width = max((len(field) for field, _ in lines), default=0)
    for field, value in lines:
        click.echo(f"{field.ljust(width)}  {value}")


@click.command(cls=Command)
@click.argument("name")
@json_option
def verify_sampling(name: str, as_json: bool) -> None:
    """Check whether the temperature has an effect on a model; several servers silently ignore it.

    Draws eight short answers at the lowest and eight at the highest temperature that the server takes. What that costs
    at most is said first. The verdict is sent, refused or unverified; from then on the model's calls record it. Exit
    code 0: there is a verdict; 1: the model did not answer.
    """
    ensure_database()
    with writing() as session:
        row = get_model(session, name)
        number = request_check(session, row).id
        costs = str(check_costs(row))
    click.echo(f"{costs}.", err=True)
    result = make_here(db.engine, settings(), number)
    if as_json:
        print_json(result)
    elif result["ok"]:
        click.echo(f"{name}: {check_in_words(SamplingCheck.model_validate(result['check']))}.")
    if not result["ok"]:
        raise CommandFailed(f"{name} did not answer: {result['error']}")


@click.command(cls=Command)
@click.argument("name")
@json_option
def list_remote(name: str, as_json: bool) -> None:
    """Show what the server of a model lists as its models, and when each ends.

    NAME is a model of the registry behind an API: its address and the key of this environment are used. An end that the
    server does not tell is that of the dates that come with Parlor, as far as one is known.
    """
    ensure_database()
    with reading() as session:
        options = read_options(player_spec(get_model(session, name)))
    if not isinstance(options, ApiOptions):
        raise Invalid("NAME", expected="a model behind an API", got=Verbatim(f"{name}, which is not"))
    try:
        found = asyncio.run(remote_models.list_remote(options))
    except remote_models.ListFailed as failed:
        raise CommandFailed(failed.message) from None
    if as_json:
        rows = [{**each._asdict(), "ends": each.ends and each.ends.isoformat()} for each in found]
        print_json({"base_url": options.base_url, "models": rows})
        return
    width = max((len(each.name) for each in found), default=0)
    for each in found:
        ends = f"  ends {each.ends:%Y-%m-%d}, by {each.told_by}" if each.ends else ""
        click.echo(f"{each.name.ljust(width)}{ends}".rstrip())
    if not found:
        click.echo(f"{options.base_url} lists no models.")
