"""`flask token`: tokens with which programs use the API on behalf of an experimenter."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from app import accounts
from app.accounts import tokens
from app.cli.base import WHOLE, Group, ensure_database, json_option, print_json, settings
from app.cli.lists import list_options, print_list
from app.core.extensions import writing

token = Group("token", help="Make, list and revoke tokens, with which programs use the API.")


@token.command()
@click.argument("name")
@click.option("--user", default=accounts.FIRST_USER, show_default=True, help="The experimenter whose token it is.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    default=[tokens.READ],
    show_default=True,
    metavar="SCOPE",
    help="; ".join(f"{name}: {what}" for name, what in tokens.SCOPES.items()) + ". May be given several times.",
)
@click.option(
    "--days",
    default=str(tokens.USUAL_DAYS),
    show_default=True,
    metavar="N",
    help="How long it is good for.",
)
@json_option
def create(name: str, user: str, scopes: Sequence[str], days: str, as_json: bool) -> None:
    """Make a token and print it, once."""
    ensure_database()
    now = datetime.now(UTC)
    with writing() as session:
        row, secret = tokens.create(session, accounts.find_user(session, user), name, scopes, days, now)
        made = {"token_id": row.id, "name": row.name, "scopes": row.scopes, "expires_at": row.expires_at.isoformat()}
    if as_json:
        print_json({**made, "token": secret})
        return
    click.echo(f"Token, shown only here: {secret}")
    click.echo(f"curl -H 'Authorization: Bearer {secret}' {settings().public_url}/api/v1/models")


@token.command("list")
@list_options
def list_(**given: Any) -> None:
    """Show the tokens: whose they are, what they may do, and when they were used last."""
    print_list(tokens.LIST, "flask token list", "None yet: flask token create NAME", **given)


@token.command()
@click.argument("number", metavar="TOKEN", type=WHOLE)
def revoke(number: int) -> None:
    """Revoke a token by its number."""
    ensure_database()
    with writing() as session:
        name = tokens.revoke(session, number, datetime.now(UTC)).name
    click.echo(f"Revoked {name}.")


@token.command()
@list_options
def changes(**given: Any) -> None:
    """Show what was changed with tokens: when, by whom, and what."""
    print_list(tokens.CHANGES, "flask token changes", "Nothing was changed with a token yet.", **given)
