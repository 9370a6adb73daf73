"""`flask model test`: a call of a model that belongs to no match, made here."""

import click

from app.cli.base import Command, CommandFailed, ensure_database, print_json, settings
from app.core.extensions import db, writing
from app.model_calls.request_runner import make_here
from app.model_calls.test_call import request_test
from app.registry import get_model


@click.command(cls=Command)
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def test(name: str, as_json: bool) -> None:
    """Have a model make the first move of a match that nobody stores, and keep how that went.

    The call is made here, with the keys of this environment. Exit code 0: it answered; 1: it did not.
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
    if not result["ok"]:
        raise CommandFailed(f"{name} did not answer: {result['error']}")
