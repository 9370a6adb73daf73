"""`flask user`: the experimenters who may see the admin pages."""

from datetime import UTC, datetime
from typing import Any

import click

from app import accounts
from app.cli.base import Group, ensure_database, settings
from app.cli.lists import list_options, print_list
from app.core.extensions import reading, writing
from app.studies.monitor.inbox import inbox
from app.studies.reports import ASSIGNED, reopen_report

user = Group("user", help="Add and list experimenters, and sign them in.")


@user.command("list")
@list_options
def list_(**given: Any) -> None:
    """Show the experimenters, and in how many browsers each is signed in."""
    print_list(accounts.LIST, "flask user list", "Nobody yet: flask user create NAME", **given)


@user.command()
@click.argument("name")
@click.option("--generate", is_flag=True, help="Make a password and print it, once.")
def create(name: str, generate: bool) -> None:
    """Add an experimenter, who may see the admin pages."""
    ensure_database()
    with reading() as session:
        accounts.check_new_name(session, name)  # before anybody thinks of a password
    if generate:
        password = accounts.new_password()
    else:
        password = click.prompt("Password", hide_input=True, confirmation_prompt="Once more", err=True)
    with writing() as session:
        accounts.create_user(session, name, password, datetime.now(UTC))
    click.echo(f"Added {name}, who signs in at {settings().public_url}/sign-in.")
    if generate:
        click.echo(f"Password, shown only here: {password}")


@user.command()
@click.argument("name")
def link(name: str) -> None:
    """Print a link that signs an experimenter in, once, for a day; an earlier unused one is void from then on."""
    ensure_database()
    with writing() as session:
        path = accounts.new_link(session, accounts.find_user(session, name), datetime.now(UTC))
    click.echo(settings().public_url + path)


@user.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(name: str, yes: bool) -> None:
    """Remove an experimenter and sign them out everywhere. What they have made stays.

    Reports of participants that were assigned to this experimenter are new again.
    """
    ensure_database()
    with reading() as session:
        accounts.find_user(session, name)
    if not yes:
        click.confirm(f"Remove {name}?", abort=True, err=True)
    with writing() as session:
        accounts.remove_user(session, name)
        left = [each for each in inbox(session, state=ASSIGNED, most=None) if each.assigned_to == name]
        for each in left:
            reopen_report(session, each.event.id, "command line")
    click.echo(f"Removed {name}." + (f" Reports that are new again: {len(left)}." if left else ""))
