"""`flask export lm-selfplay|spag|inspect`: matches in the formats of other programs.

`app/cli/export.py` adds them to its group.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from app.analysis.inspect_log import FORMS, inspect_log
from app.cli.base import WHOLE, Command, counted, ensure_database, print_result, progress
from app.cli.match_filter import filter_options, read_filter
from app.cli.output import write_out
from app.core.errors import Invalid, Verbatim
from app.core.extensions import reading
from app.datasets import rounds as service
from app.datasets.exporters.lm_selfplay import write_lm_selfplay
from app.datasets.exporters.spag import write_spag
from app.datasets.records import ImportedMatch
from app.games.negotiation.rules import NEGOTIATION
from app.games.taboo.rules import TABOO
from app.matches.export import MATCHES, count

_round = click.option("--round", "round_id", type=WHOLE, required=True, metavar="N", help="Which round.")


@click.command("lm-selfplay", cls=Command)
@_round
@click.option("--out", required=True, metavar="DIR", help="A new or an empty folder.")
@click.option("--json", "as_json", is_flag=True, help="Print {round_id, matches, folder} as JSON.")
def lm_selfplay(round_id: int, out: str, as_json: bool) -> None:
    """A round of Deal or No Deal as the published self-play writes it."""
    _write_out(round_id, NEGOTIATION.name, lambda matches: write_lm_selfplay(matches, out), {"folder": out}, as_json)


@click.command("spag", cls=Command)
@_round
@click.option("--out", required=True, metavar="FILE", help="Where to write.")
@click.option("--json", "as_json", is_flag=True, help="Print {round_id, matches, file} as JSON.")
def spag(round_id: int, out: str, as_json: bool) -> None:
    """A round of Adversarial Taboo as a JSON list of its games."""
    _write_out(round_id, TABOO.name, lambda matches: write_spag(matches, out), {"file": out}, as_json)


@click.command("inspect", cls=Command)
@click.option("--out", required=True, metavar="FILE", help="Where to write: FILE.eval, which is small, or FILE.json.")
@click.option("--json", "as_json", is_flag=True, help="Print {matches, file} as JSON.")
@filter_options()
def inspect(out: str, as_json: bool, **given: Any) -> None:
    """Matches of one game as a log for the Inspect viewer: a sample per match, with its messages, calls and scores."""
    form = Path(out).suffix.removeprefix(".")
    if form not in FORMS:
        raise Invalid("--out", expected=Verbatim(" or ".join(f"FILE.{each}" for each in FORMS)), got=out)
    choice = read_filter(given)
    ensure_database()
    with reading() as session:
        matches = count(session, MATCHES, choice)
        pieces = inspect_log(session, choice, form)
        with progress(pieces, lambda: matches) as found:
            write_out(found, out)
    print_result(
        as_json,
        {"matches": matches, "file": out},
        f"Wrote {counted(matches, 'match', 'matches')} to {out}.",
    )


def _write_out(
    round_id: int,
    game: str,
    write: Callable[[Iterable[ImportedMatch]], int],
    place: dict[str, str],
    as_json: bool,
) -> None:
    ensure_database()
    with reading() as session:
        number, games = service.games_of(session, round_id, game)
        with progress(games, lambda: number) as found:
            written = write(found)
    print_result(
        as_json,
        {"round_id": round_id, "matches": written, **place},
        f"Wrote {counted(written, 'match', 'matches')} of round {round_id} to {next(iter(place.values()))}.",
    )
