"""`flask model test` and `flask model ask`: calls of a model that belong to no match, made here."""

import sys
from typing import Any

import click

from app.cli.base import Command, CommandFailed, ensure_database, print_json, read_value, settings
from app.cli.model_options import given_options, number_options
from app.errors import Invalid, Verbatim
from app.extensions import db, writing
from app.model_requests import lifecycle
from app.model_requests.runner import make_here
from app.model_requests.test_call import request_test
from app.players.base import ChatSampling
from app.registry import get_model
from app.validation import real_number, whole_number


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


@click.command(cls=Command)
@click.argument("name")
@click.argument("message")
@click.option("--system", metavar="TEXT", help="A system message before it.")
@number_options(
    temperature="0 to 2. [default: the model's own]",
    top_p="0 to 1. [default: the model's own]",
    top_k="Of local models. [default: the model's own]",
    max_tokens="Most tokens of the answer. [default: the model's own, or 256]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def ask(name: str, message: str, system: str | None, as_json: bool, **given: Any) -> None:
    """Ask a model anything, and print its answer. MESSAGE - is read from standard input.

    The call is made here, with the keys of this environment, and kept like all calls. Exit code 0: it answered;
    1: it did not.
    """
    sampling = _sampling({option: read_value(value) for option, value in given_options(given).items()})
    content = sys.stdin.read() if message == "-" else message
    if not content.strip():
        raise Invalid("MESSAGE", expected="something to ask", got=Verbatim("nothing"))
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": content})
    ensure_database()
    with writing() as session:
        number = lifecycle.create(session, get_model(session, name), lifecycle.QUESTION, messages, sampling).id
    result = make_here(db.engine, settings(), number)
    if as_json:
        print_json({"request": number, **result})
    elif result["ok"]:
        click.echo(result["text"])
    if not result["ok"]:
        raise CommandFailed(f"{name} did not answer: {result['error']}")


def _sampling(given: dict[str, Any]) -> ChatSampling:
    """Raises Invalid, which names the option."""
    temperature, top_p, top_k, most = (given.get(name) for name in ChatSampling._fields)
    return ChatSampling(
        None if temperature is None else real_number(temperature, "--temperature", 0, 2),
        None if top_p is None else real_number(top_p, "--top-p", 0, 1),
        None if top_k is None else whole_number(top_k, "--top-k", 1, 1_000_000),
        None if most is None else whole_number(most, "--max-tokens", 1, 1_000_000),
    )
