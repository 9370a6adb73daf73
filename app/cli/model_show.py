"""`flask model show`: one model, and whether people withdrew data that it was trained on."""

import click

from app.cli.base import Command, ensure_database, json_option, print_json, settings
from app.cli.model_format import in_full
from app.core.extensions import reading
from app.lineage import models_of
from app.registry import get_model
from app.registry.description import described


@click.command(cls=Command)
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show all that is known of a model."""
    ensure_database()
    with reading() as session:
        row = get_model(session, name)
        withdrawn = [each.id for each in models_of(session).get(row.id, ())]
        found = {**described(row, settings().home), "learned_withdrawn": withdrawn}
        lines = list(in_full(row, found))
    if withdrawn:
        lines.append(("learned from", f"data that people withdrew, of dataset {', '.join(map(str, withdrawn))}"))
    if as_json:
        print_json(found)
        return
    width = max(len(field) for field, _ in lines)
    for field, value in lines:
        click.echo(f"{field.ljust(width)}  {value}")
