"""`flask import` makes a round of published games."""

import click

from app.cli.base import WHOLE, Group, ensure_database, print_json, progress, read_value, settings
from app.core import write_priority
from app.core.errors import check_name
from app.core.extensions import db, transact
from app.datasets import rounds as service
from app.datasets.lm_folder import LIMIT
from app.datasets.records import check
from app.games.taboo.judges import RULES

imports = Group("import", help="Take published games in as a round. docs/formats.md says what is kept.")

_as_json = click.option("--json", "as_json", is_flag=True, help="Print {round_id, matches} as JSON.")
_player = click.option(
    "--player", default="imported", show_default=True, metavar="NAME", help="What the models are called, if unnamed."
)


@imports.command("lm-selfplay")
@click.argument("folder", metavar="DIR")
@click.option("--objective", default="self", show_default=True, help="self, coop, comp, or λ from -1 to 1.")
@click.option("--limit", type=WHOLE, default=LIMIT, show_default=True, help="The move that ended a game at the latest.")
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
    """Import games of Adversarial Taboo, and judge them again.

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
        number = check(found)
    ensure_database()
    with progress(wanted.source, lambda: number) as found:
        write_priority.give_way()
        round_id = service.take_in(transact(db.engine), wanted, found, number, player, settings().ROUND_LEASE)
    if as_json:
        print_json({"round_id": round_id, "matches": number})
    else:
        click.echo(
            f"Round {round_id}: {number} match{'' if number == 1 else 'es'} of {wanted.game} from {wanted.path}."
        )
