"""`flask match`: what can be done with single matches."""

import click

from app.cli.base import Group, ensure_database, print_result, settings
from app.core.extensions import db
from app.studies.forget import forget_match_for_good

match = Group("match", help="Delete what people wrote in a match.")


@match.command()
@click.argument("match_id", metavar="MATCH")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def erase(match_id: str, as_json: bool) -> None:
    """Delete what the people in a match wrote, and say what that touches; once more, it completes what was broken off.

    The match stays, marked, with its result and with the moves of models. Datasets with rows of it become unusable.
    """
    ensure_database()
    report = forget_match_for_good(db.engine, settings().home, match_id)
    print_result(as_json, report.to_json(), "\n".join(report.lines()))
