"""Builds a dataset again from its own spec: the same rows, except those that may no longer be used for training."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Engine

from app.core.errors import Conflict, Phrase
from app.core.extensions import Transact, reading
from app.datasets import build, register, store
from app.datasets.build import DatasetBuild
from app.datasets.spec import read_spec
from app.games.base import JSON
from app.models import Dataset
from app.players.prompts import rendered_as


def rebuild(transact: Transact, database: Engine, home: Path, row: Dataset) -> int:
    """Build a dataset again and register it as the next version of its name; return its number.

    Raises Conflict for a dataset that was imported or built from a society, and what `build.prepare` and `store.write`
    raise.
    """
    return register.save(transact, draft(database, home, row), row.name)


def draft(
    database: Engine, home: Path, row: Dataset, check: Callable[[DatasetBuild], None] = lambda _: None
) -> store.UnregisteredDataset:
    """The rows of a dataset, built again into a file. `check` may refuse before they are read."""
    if "filter" not in row.spec:
        society = row.spec.get("society")
        others = {
            "imported": Phrase("one that was imported"),
            "society": Phrase("one that was cut from a society"),
            "best_of": Phrase("the best responses of another one"),
        }
        again = society and Phrase("`flask society data %(number)s` makes it again", number=society["society_id"])
        raise Conflict(
            "dataset",
            expected=Phrase("one that was cut from matches"),
            got=next(got for name, got in others.items() if name in row.spec),
            remedy=again,
            subject=Phrase("dataset %(number)s", number=row.id),
        )
    with reading(database) as session:
        found = _as_told_before(build.prepare(session, read_spec(row.spec)), row.spec["prompts"])
        check(found)
        return store.write(home, found, build.training_rows(session, found))


def _as_told_before(found: DatasetBuild, prompts: Mapping[str, JSON]) -> DatasetBuild:
    """The build with the version of the renderer that was used before for each game of the dataset."""

    def told(game: str, prompt: JSON) -> JSON:
        return rendered_as(prompt, prompts.get(game, prompt))

    return replace(
        found,
        prompts={game: told(game, prompt) for game, prompt in found.prompts.items()},
        wordings={game: [told(game, each) for each in wordings] for game, wordings in found.wordings.items()},
    )
