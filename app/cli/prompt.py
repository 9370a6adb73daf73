"""`flask prompt`: system prompts and personas, by name and version."""

from pathlib import Path
from typing import Any

import click

from app.cli.base import Group, ensure_database, json_option, print_json
from app.cli.lists import list_options, print_list
from app.core.errors import Invalid, Verbatim
from app.core.extensions import reading, writing
from app.core.yaml_reader import read_text_file
from app.models import PromptRow
from app.registry.prompts import COMMAND_LINE, LIST, add_prompt, find_prompt

prompt = Group("prompt", help="Add, list and show system prompts and personas.")


@prompt.command()
@click.argument("name")
@click.option("--text", help="Its text.")
@click.option("--file", "path", type=Path, metavar="FILE", help="A file with its text.")
@json_option
def add(name: str, text: str | None, path: Path | None, as_json: bool) -> None:
    """Add a prompt, or the next version of one: a version never changes. The newest text again adds nothing."""
    if (text is None) == (path is None):
        raise Invalid("--text", expected="it or --file", got=Verbatim("none" if text is None else "both"))
    ensure_database()
    given = text if path is None else read_text_file(path, "a text file that can be read", path.name)
    with writing() as session:
        found = _prompt_json(add_prompt(session, name, given or "", COMMAND_LINE))
    if as_json:
        print_json(found)
    else:
        click.echo(found["prompt"])


@prompt.command("list")
@list_options
def list_(**given: Any) -> None:
    """Show the prompts with all their versions, the latest first."""
    print_list(LIST, "flask prompt list", "None yet: flask prompt add NAME --text TEXT", **given)


@prompt.command()
@click.argument("named", metavar="PROMPT")
@json_option
def show(named: str, as_json: bool) -> None:
    """Show the text of a prompt: NAME, which is the newest version, or NAME@VERSION."""
    ensure_database()
    with reading() as session:
        found = _prompt_json(find_prompt(session, named))
    if as_json:
        print_json(found)
    else:
        click.echo(found["text"])


def _prompt_json(row: PromptRow) -> dict[str, Any]:
    return {"prompt": row.reference, "sha256": row.sha256, "text": row.text, "created_by": row.created_by}
