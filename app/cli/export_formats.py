"""`flask export lm-selfplay|spag`: a round in a published format. `app/cli/export.py` puts both into its group."""

from collections.abc import Callable, Iterable

import click

from app.cli.base import WHOLE, Command, counted, ensure_database, print_result, progress
from app.core.extensions import reading
from app.datasets import rounds as service
from app.datasets.exporters.lm_selfplay import write_lm_selfplay
from app.datasets.exporters.spag import write_spag
from app.datasets.records import ImportedMatch
from app.games.negotiation.rules import NEGOTIATION
from app.games.taboo.rules import TABOO

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
