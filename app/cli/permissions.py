"""`flask model permit` and `flask dataset permit`: record the origin and licence of models and datasets."""

from collections.abc import Callable
from typing import Any

import click
from sqlalchemy.orm import Session

from app.cli.base import Command, ensure_database, json_option, print_result
from app.core.extensions import writing
from app.datasets.store import find_dataset
from app.models import Dataset, LanguageModel
from app.publication.licences import LICENCES
from app.publication.permissions import declare
from app.registry import get_model

_HELP = "Where it is from, and why it may be passed on."
_options = (
    click.option("--licence", required=True, metavar="LICENCE", help=f"Its own: {', '.join(LICENCES)}."),
    click.option("--reason", required=True, metavar="TEXT", help=_HELP),
    json_option,
)


def _permit_command(metavar: str, find: Callable[[Session, str], LanguageModel | Dataset], text: str) -> click.Command:
    def permit(called: str, licence: str, reason: str, as_json: bool) -> None:
        ensure_database()
        with writing() as session:
            row = find(session, called)
            said = declare(session, row, licence=licence, reason=reason, by=None)
            name = row.name if isinstance(row, LanguageModel) else row.reference
            described: dict[str, Any] = {"name": name, "licence": said.licence, "reason": said.reason}
        line = f"{name} may be passed on under {licence}, as far as people of studies are not in it."
        print_result(as_json, described, line)

    call: Callable[..., Any] = permit
    for option in reversed((click.argument("called", metavar=metavar), *_options)):
        call = option(call)
    return click.command("permit", cls=Command, help=text)(call)


permit_model = _permit_command(
    "NAME",
    get_model,
    "Declare the licence of a model that was added by hand, so that it, and what is made from it, may be pushed."
    "\n\nThe declaration is kept with its time. It takes the place of nobody's consent.",
)
permit_dataset = _permit_command(
    "DATASET",
    find_dataset,
    "Declare the licence of a dataset with rows from elsewhere, so that it, and what is trained on it, may be pushed."
    "\n\nThe declaration is kept with its time. It takes the place of nobody's consent.",
)
