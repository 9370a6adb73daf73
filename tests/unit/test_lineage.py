"""What a model's origin says without a look into the database."""

from typing import Any

import pytest

from app.lineage import ADDED, SHIPPED, TRAINED, DatasetSource, ModelOrigin, origin_of
from app.models import LanguageModel, TrainingJob
from app.registry import BASELINE, MODELS


def model(number: int, kind: str = "local", name: str = "mine", **options: Any) -> LanguageModel:
    return LanguageModel(id=number, kind=kind, name=name, options=options)


def source(*players: LanguageModel) -> DatasetSource:
    return DatasetSource(round=None, models=players, people=False, rows=1)


@pytest.mark.parametrize(
    ("row", "job", "origin"),
    [
        (model(1), TrainingJob(id=1), TRAINED),
        (model(1, path=str(MODELS / "tiny")), None, SHIPPED),
        (model(1, path="checkpoints/tiny"), None, ADDED),
        (model(1, "scripted", BASELINE), None, SHIPPED),
        (model(1, "scripted", "scripted-hard"), None, ADDED),
        (model(1, "api", BASELINE), None, ADDED),
    ],
)
def test_a_model_was_trained_or_came_with_parlor_or_was_added(
    row: LanguageModel, job: TrainingJob | None, origin: str
) -> None:
    assert origin_of(row, job) == origin


def test_a_models_parents_are_its_base_and_who_played_what_it_learned_from_each_once() -> None:
    base, first, second = (model(number, name=f"m{number}") for number in (1, 2, 3))
    sources = [source(first, base), source(second, first)]
    parents = ModelOrigin(model(4), TRAINED, base=base, sources=sources).parents
    assert [each.name for each in parents] == ["m1", "m2", "m3"]


def test_a_model_from_nothing_has_those_alone_who_played_for_it() -> None:
    player = model(1)
    assert ModelOrigin(model(2), TRAINED, sources=[source(player)]).parents == [player]
    assert ModelOrigin(model(2), ADDED).parents == []
