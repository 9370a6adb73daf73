"""The datasets that a campaign is given: checked before it is created."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.campaigns.spec import CampaignSpec, needs_rewards
from app.core.errors import Invalid, Phrase, refusals_of
from app.datasets import store
from app.datasets.removed import removed_rounds
from app.finetuning.config import SFT_DATA, check_policies, check_rows
from app.finetuning.lifecycle import find_supervised
from app.games import find_game
from app.jobs.page import job_references
from app.models import Dataset, DatasetRow, MatchRow
from app.registry import find_round_model
from app.rounds.held_out import is_held_out
from app.rounds.job import ROUND

FIELD = "start_data"
_AT_ONCE = 5_000  # matches in memory


class StartData(NamedTuple):
    """A dataset to start from, with the number of its matches, and of those played on held-out material.

    Rows made elsewhere belong to no match here, and what they were played on is unknown.
    """

    number: int
    matches: int
    held_out: int


def with_dataset_numbers(session: Session, spec: CampaignSpec) -> CampaignSpec:
    """The spec with the numbers of its datasets, as later versions may get their names. Raises NotFound."""
    named = {name: getattr(spec, name) for name in (FIELD, SFT_DATA)}
    numbers = {name: str(store.find_dataset(session, called, name).id) for name, called in named.items() if called}
    return spec.model_copy(update=numbers)


def read_start_data(session: Session, home: Path, spec: CampaignSpec) -> StartData | None:
    """The dataset that a campaign starts from; None for one without.

    Raises NotFound for a missing dataset, and Invalid for one that the first iteration cannot learn from, or whose rows
    its method cannot mix in. As reading the matches of a large dataset takes up to a second, this is done before a
    transaction.
    """
    find_supervised(session, home, spec.method, spec.sft_data)
    if spec.start_data is None:
        return None
    with refusals_of(FIELD, subject=None):
        row = store.find_dataset(session, spec.start_data)
        _check_start(session, home, spec, row)
    kind, held, matches = find_game(spec.game).material, 0, 0
    for config in _configs(session, row.id, spec.game):
        piece = None if kind is None else kind.piece_of(config)
        held += kind is not None and piece is not None and is_held_out(kind, piece)
        matches += 1
    return StartData(row.id, matches, held)


def _check_start(session: Session, home: Path, spec: CampaignSpec, row: Dataset) -> None:
    called = row.reference
    if gone := removed_rounds(session, [row.id]):
        of = job_references(session, ROUND, gone)[gone[0]]
        raise Invalid(
            FIELD,
            expected=Phrase("rows of existing matches"),
            got=Phrase("%(name)s, which has rows of %(round)s, which was removed", name=called, round=of.words),
            remedy=Phrase("put that round back"),
        )
    check_rows(spec.start_method, row.kind, store.first_row(home, row), called)
    games = row.spec.get("prompts")  # unknown for rows made elsewhere
    if games is not None and spec.game not in games:
        raise Invalid(
            FIELD,
            expected=Phrase("matches of %(game)s in it", game=spec.game),
            got=Phrase("%(name)s, which is of %(games)s", name=called, games=", ".join(sorted(games))),
        )
    base = find_round_model(session, spec.game, spec.base, "base")
    if row.spec.get("style") not in (None, base.prompt_style):  # without one, rows are phrased as models were prompted
        raise Invalid(
            FIELD,
            expected=Phrase("rows with the prompt style of the base, %(style)s", style=base.prompt_style),
            got=Phrase("%(name)s with %(style)s", name=called, style=row.spec["style"]),
            remedy=Phrase("build it with that style"),
        )
    if needs_rewards(spec.start_method):
        policies = [policy for policy, _ in row.figures.get("rewards", {}).get("policies", ())]
        check_policies(policies, str(base.options.get("sha256")), called, base.name)


def _configs(session: Session, dataset_id: int, game: str) -> Iterator[Any]:
    """The configs of the game's matches that have rows in the dataset."""
    matches = select(DatasetRow.match_id).where(DatasetRow.dataset_id == dataset_id).distinct()
    found = select(MatchRow.config).where(MatchRow.id.in_(matches), MatchRow.game == game)
    yield from session.scalars(found, execution_options={"yield_per": _AT_ONCE})
