"""What a study is played on is held out: no partner was trained on it, and no dataset is cut from it."""

from datetime import UTC, datetime

import pytest
from flask import Flask
from sqlalchemy import Engine, select, update

from app.cleanup.remove import remove
from app.core.config import Settings
from app.core.errors import Conflict, FieldError
from app.core.extensions import reading, writing
from app.models import DatasetRow, LanguageModel, MatchRow, Wave
from app.rounds.lifecycle import Material
from tests.campaigns import add_local, dataset_of, job_of, round_of
from tests.waves import changed, loaded_study, new_wave, store_study


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


def study_of(engine: Engine, model: str, **keys: object) -> None:
    """A study with people against that model."""
    with writing(engine) as session:
        design = changed(loaded_study(), conditions={"model": {"a": "scripted", "b": model}}, **keys)
        store_study(session, design)


@pytest.fixture
def study_material() -> Material:
    return Material("the study's", loaded_study().material)


def test_a_wave_is_refused_whose_model_was_trained_on_its_material(
    engine: Engine, settings: Settings, study_material: Material
) -> None:
    add_local(engine, "base", "data/models/base")
    elsewhere = dataset_of(engine, settings, round_of(engine, settings, "base"), name="elsewhere")
    job_of(engine, elsewhere, "innocent", "base")
    same = dataset_of(engine, settings, round_of(engine, settings, "base", material=study_material), name="same")
    job_of(engine, same, "learned", "base")
    job_of(engine, elsewhere, "learned-before", "learned")
    line = "of: expected models that were trained on none of the study's material, got {}, which learned from 6 matches"
    for name in ("learned", "learned-before"):
        study_of(engine, name)
        with pytest.raises(FieldError, match=line.format(name)), writing(engine) as session:
            new_wave(session)
        with reading(engine) as session:
            assert session.query(Wave).count() == 0
    study_of(engine, "learned", material={"held_out": False})
    with writing(engine) as session:
        new_wave(session, wave="not-held-out")
    study_of(engine, "innocent")
    with writing(engine) as session:
        new_wave(session)


def test_a_wave_is_refused_whose_model_was_removed_or_learned_from_matches_that_were(
    engine: Engine, settings: Settings, study_material: Material
) -> None:
    add_local(engine, "base", "data/models/base")
    played = round_of(engine, settings, "base", material=study_material)
    same = dataset_of(engine, settings, played, name="same")
    job_of(engine, same, "learned", "base")
    study_of(engine, "learned")
    with pytest.raises(Conflict, match="kept because of same@1"):
        remove(settings, engine, "round", played, "ann")
    remove(settings, engine, "dataset", same.id, "ann")
    remove(settings, engine, "round", played, "ann")
    with (
        pytest.raises(FieldError, match=rf"learned, which learned from .* \(round {played}\), which was"),
        writing(engine) as session,
    ):
        new_wave(session)
    with writing(engine) as session:
        session.execute(
            update(LanguageModel).where(LanguageModel.name == "learned").values(removed_at=datetime.now(UTC))
        )
    with pytest.raises(FieldError, match="got learned, which was removed on"), writing(engine) as session:
        new_wave(session)


def test_no_dataset_is_cut_from_the_material_of_a_study_with_a_wave(
    engine: Engine, settings: Settings, study_material: Material
) -> None:
    mixed = Material("mixed", [*study_material.items[:3], *Material("others", OTHERS).items])
    number = round_of(engine, settings, "scripted", matches=6, material=mixed)
    assert dataset_of(engine, settings, number, name="before").rows == 12
    with writing(engine) as session:
        new_wave(session)
    after = dataset_of(engine, settings, number, name="after")
    assert after.rows == 6
    with reading(engine) as session:
        rows = select(MatchRow.config).join(DatasetRow, DatasetRow.match_id == MatchRow.id)
        played = session.scalars(rows.where(DatasetRow.dataset_id == after.id)).all()
        assert all([config["counts"], *config["values"]] in OTHERS for config in played)
    all_held = round_of(engine, settings, "scripted", matches=6, material=study_material)
    with pytest.raises(FieldError, match="matches on material that no study holds out: expected to keep at least one"):
        dataset_of(engine, settings, all_held, name="none")


# Contexts that are not in the example.
OTHERS = [[[1, 1, 4], [2, 4, 1], [4, 2, 1]], [[1, 1, 3], [3, 4, 1], [5, 2, 1]], [[4, 1, 1], [1, 3, 3], [2, 1, 1]]]
