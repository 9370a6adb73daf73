"""`flask import` makes a round of published games; `flask export lm-selfplay|spag` writes a round in their formats."""

from collections.abc import Callable, Iterable

import click

from app.cli.base import Group, ensure_database, print_json, progress, read_value
from app.cli.export import export
from app.datasets import rounds as service
from app.datasets.exporters.lm_selfplay import write_lm_selfplay
from app.datasets.exporters.spag import write_spag
from app.datasets.lm_folder import LIMIT
from app.datasets.records import ImportedMatch, check
from app.errors import check_name
from app.extensions import reading, writing
from app.games.words import RULES

imports = Group("import", help="Take published games in as a round. docs/formats.md says what is kept.")

_as_json = click.option("--json", "as_json", is_flag=True, help="Print {round_id, matches} as JSON.")
_player = click.option(
    "--player", default="imported", show_default=True, metavar="NAME", help="What the models are called, if unnamed."
)
_round = click.option("--round", "round_id", type=int, required=True, metavar="N", help="Which round.")


@imports.command("lm-selfplay")
@click.argument("folder", metavar="DIR")
@click.option("--objective", default="self", show_default=True, help="self, coop, comp, or λ from -1 to 1.")
@click.option("--limit", type=int, default=LIMIT, show_default=True, help="The move that ended a game at the latest.")
@_player
@_as_json
def lm_selfplay(folder: str, objective: str, limit: int, player: str, as_json: bool) -> None:
    """Take in self-play on Deal or No Deal.

    DIR is an output folder with json_logs, results, text_logs, p0_scores and p1_scores.
    """
    _take_in(service.lm_selfplay(folder, read_value(objective), limit), player, as_json)


@imports.command()
@click.argument("file")
@click.option("--rule", type=click.Choice(list(RULES)), default="strict", show_default=True, help="Which judge.")
@_player
@_as_json
def spag(file: str, rule: str, player: str, as_json: bool) -> None:
    """Take in games of Adversarial Taboo, and judge them anew.

    FILE is a JSON list of {history: [{role, content}], target_word, max_turns}.
    """
    _take_in(service.spag(file, rule), player, as_json)


@imports.command()
@click.argument("file")
@_as_json
def dialogues(file: str, as_json: bool) -> None:
    """Take in human dialogues on Deal or No Deal, and score them from the choices.

    FILE has one perspective of a dialogue a line.
    """
    _take_in(service.dialogues(file), "person", as_json)


def _take_in(wanted: service.Import, player: str, as_json: bool) -> None:
    """Read everything once before anything is written; then all of it goes into the database, or nothing does."""
    check_name("--player", player)
    with progress(wanted.source, lambda: None) as found:
        matches = check(found)
    ensure_database()
    with writing() as session, progress(wanted.source, lambda: matches) as found:
        row = service.take_in(session, wanted, found, player)
        round_id, matches = row.id, row.matches
    if as_json:
        print_json({"round_id": round_id, "matches": matches})
    else:
        click.echo(
            f"Round {round_id}: {matches} match{'' if matches == 1 else 'es'} of {wanted.game} from {wanted.path}."
        )


@export.command("lm-selfplay")
@_round
@click.option("--out", required=True, metavar="DIR", help="A new or an empty folder.")
@click.option("--json", "as_json", is_flag=True, help="Print {round_id, matches, folder} as JSON.")
def export_lm_selfplay(round_id: int, out: str, as_json: bool) -> None:
    """A round of Deal or No Deal as the published self-play writes it."""
    _write_out(round_id, "negotiation", lambda matches: write_lm_selfplay(matches, out), {"folder": out}, as_json)


@export.command("spag")
@_round
@click.option("--out", required=True, metavar="FILE", help="Where to write.")
@click.option("--json", "as_json", is_flag=True, help="Print {round_id, matches, file} as JSON.")
def export_spag(round_id: int, out: str, as_json: bool) -> None:
    """A round of Adversarial Taboo as a JSON list of its games."""
    _write_out(round_id, "taboo", lambda matches: write_spag(matches, out), {"file": out}, as_json)


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
    if as_json:
        print_json({"round_id": round_id, "matches": written, **place})
    else:
        click.echo(
            f"Wrote {written} match{'' if written == 1 else 'es'} of round {round_id} to {next(iter(place.values()))}."
        )
