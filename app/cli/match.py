"""`flask match`: list and search matches, and act on single ones."""

from collections.abc import Sequence
from typing import Any

import click
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from app.cli.base import WHOLE, Group, counted, ensure_database, json_option, print_result, settings
from app.cli.lists import list_options, print_list
from app.cli.match_filter import filter_options, read_filter
from app.core.extensions import db, transact, writing
from app.matches import codings
from app.matches.blinding import blinded_conditions
from app.matches.coding_list import LIST as CODINGS
from app.matches.counts import recount
from app.matches.filter import NAMES, check_known
from app.matches.listing import LIST
from app.matches.measuring import measure_again
from app.matches.text_index import rebuild_index
from app.studies.forget import forget_match_for_good

_SHOWN = 20  # differences

match = Group("match", help="List and search matches; delete what people wrote in one.")


@match.command("list")
@filter_options()
@list_options
def list_(**given: Any) -> None:
    """Show matches, the latest first, by what they are, by what was said in them and by their figures."""
    choice = read_filter({name: given.pop(name) for name in NAMES})

    def where(session: Session) -> Sequence[ColumnElement[bool]]:
        check_known(session, choice)
        return blinded_conditions(choice, given["sort"])

    print_list(LIST, "flask match list", "No such match.", where=where, **given)


@match.command("index")
@json_option
def index(as_json: bool) -> None:
    """Rebuild the search index from the logs of all finished matches, while Parlor runs.

    It is kept by itself; this mends one that somebody has damaged.
    """
    ensure_database()
    done = rebuild_index(transact(db.engine))
    print_result(as_json, {"matches": done}, f"Rebuilt the search index over {counted(done, 'match', 'matches')}.")


@match.command("measure")
@click.option("--round", "round_id", metavar="R", type=WHOLE, help="Only the matches of this round.")
@json_option
def measure_(round_id: int | None, as_json: bool) -> None:
    """Recompute the measures of finished matches: what their talk says of their proposals.

    After an update that measures more, or reads words differently. Figures that campaigns have kept stay as they are.
    """
    ensure_database()
    done = measure_again(transact(db.engine), round_id)
    print_result(as_json, {"matches": done}, f"Recomputed the measures of {counted(done, 'match', 'matches')}.")


@match.command("recount")
@json_option
def recount_(as_json: bool) -> None:
    """Recount all finished matches while Parlor runs, and correct wrong counts.

    Pages read these counts, which are kept as matches end; this checks them, and mends what somebody has damaged.
    """
    ensure_database()
    found = recount(db.engine)
    lines = [
        f"{', '.join(f'{name} {value}' for name, value in each.of.items() if value is not None)}: "
        f"{each.counted[0]:g} matches instead of {each.kept[0]:g}"
        for each in found.differences[:_SHOWN]
    ]
    if len(found.differences) > _SHOWN:
        lines.append(f"… and {len(found.differences) - _SHOWN} more.")
    verdict = "The counts were right." if not lines else "These counts were wrong, and are right now:"
    report = {"matches": found.matches, "differences": [each._asdict() for each in found.differences]}
    print_result(as_json, report, f"Counted {counted(found.matches, 'match', 'matches')}. {verdict}", *lines)


@match.command("codings")
@list_options
def codings_(**given: Any) -> None:
    """Show the codings, the latest first, with their matches and coders."""
    print_list(CODINGS, "flask match codings", "There is no coding yet.", **given)


@match.command("end-coder")
@click.argument("number", metavar="CODING", type=WHOLE)
@click.argument("coder")
@click.option("--drop", is_flag=True, help="Delete the codes that they gave.")
@json_option
def end_coder(number: int, coder: str, drop: bool, as_json: bool) -> None:
    """Close the unfinished coding of a coder whose account was removed: keep the codes, or --drop them."""
    ensure_database()
    with writing() as session:
        given = codings.end_left(session, codings.find_coding(session, number), coder, drop=drop)
    said = {"coding": number, "coder": coder, "codes": given, "dropped": drop}
    print_result(as_json, said, f"{'Dropped' if drop else 'Kept'} {counted(given, 'code')} of {coder}.")


@match.command()
@click.argument("match_id", metavar="MATCH")
@json_option
def erase(match_id: str, as_json: bool) -> None:
    """Delete what the people in a match wrote, and report what changed. Run again, it completes a broken deletion.

    The match stays, marked, with its result and with the moves of models. Datasets with rows of it become unusable.
    """
    ensure_database()
    report = forget_match_for_good(db.engine, settings().home, match_id)
    print_result(as_json, report.to_json(), "\n".join(report.lines()))
