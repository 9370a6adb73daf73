"""`flask import`: make a round from published games."""

import click

from app.cli.base import Group, counted, ensure_database, print_result, progress, settings
from app.cli.spec_options import spec_options
from app.core import write_priority
from app.core.extensions import db, transact
from app.datasets import rounds as service
from app.datasets.importers.spec import DialoguesImportSpec, EpisodesImportSpec, SelfplayImportSpec
from app.datasets.records import PERSON, check

imports = Group("import", help="Import published games as a round. docs/formats.md says what is kept.")

_as_json = click.option("--json", "as_json", is_flag=True, help="Print {round_id, matches} as JSON.")


@imports.command("lm-selfplay")
@spec_options(SelfplayImportSpec)
@_as_json
def lm_selfplay(spec: SelfplayImportSpec, as_json: bool) -> None:
    """Import self-play on Deal or No Deal.

    DIR is an output folder with json_logs, results, text_logs, p0_scores and p1_scores.
    """
    _import_round(service.lm_selfplay(spec.folder, spec.objective, spec.limit), spec.player, as_json)


@imports.command()
@spec_options(EpisodesImportSpec)
@_as_json
def spag(spec: EpisodesImportSpec, as_json: bool) -> None:
    """Import games of Adversarial Taboo, and judge them again.

    FILE is a JSON list of {history: [{role, content}], target_word, max_turns}.
    """
    _import_round(service.spag(spec.file, spec.rule), spec.player, as_json)


@imports.command()
@spec_options(DialoguesImportSpec)
@_as_json
def dialogues(spec: DialoguesImportSpec, as_json: bool) -> None:
    """Import human dialogues on Deal or No Deal, and score them from the choices.

    FILE has one perspective of a dialogue a line, or rows of deal_or_no_dialog at Hugging Face as JSON.
    """
    _import_round(service.dialogues(spec.file), PERSON, as_json)


def _import_round(wanted: service.Import, player: str, as_json: bool) -> None:
    """Read everything once before writing; then store all of it in the database, or nothing."""
    with progress(wanted.source, lambda: None) as found:
        number = check(found)
    ensure_database()
    with progress(wanted.source, lambda: number) as found:
        write_priority.give_way()
        round_id = service.take_in(transact(db.engine), wanted, found, number, player, settings().ROUND_LEASE)
    print_result(
        as_json,
        {"round_id": round_id, "matches": number},
        f"Round {round_id}: {counted(number, 'match', 'matches')} of {wanted.game} from {wanted.path}.",
    )
