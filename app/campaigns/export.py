"""A campaign as a recipe file, which plays the same matches wherever it is run."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.campaigns.lifecycle import spec_of
from app.campaigns.recipe import document_of
from app.games import find_game
from app.models import Campaign, LanguageModel
from app.recipes.export import written_recipe

_PLAYED, _HELD_OUT = "played.txt", "held-out.txt"  # files with the material of rounds and evaluations


def recipe_archive(session: Session, row: Campaign) -> bytes:
    """A zip archive with a campaign's recipe and the files of its material."""
    style = session.get_one(LanguageModel, row.base_id).prompt_style
    document, kind = document_of(spec_of(row.spec), row.name, style), find_game(row.game).material
    files = {}
    if kind is not None and row.material["play"]:
        pieces = {_PLAYED: row.material["play"], _HELD_OUT: _shortest_repeated_list(row.material["held_out"])}
        files = {name: "".join(f"{line}\n" for line in kind.lines_of(found)) for name, found in pieces.items()}
        for step in document["steps"]:
            if step["do"] in ("round", "evaluate"):
                step["with"]["material"] = _PLAYED if step["do"] == "round" else _HELD_OUT
    return written_recipe(row.name, f"The steps of campaign {row.id}, {row.name}.", document, files)


def _shortest_repeated_list(items: Sequence[Any]) -> Sequence[Any]:
    """The list that `items` repeats."""
    length = next(each for each in range(1, len(items) + 1) if all(
        item == items[place % each] for place, item in enumerate(items)
    ))  # fmt: skip
    return items[:length]
