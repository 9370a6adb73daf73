"""Campaigns and alignments as recipes: what they write can be run as a file, and comes to the same."""

import json
import uuid
import zipfile
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, select

from app.campaigns import lifecycle
from app.campaigns import steps as campaign_steps
from app.campaigns.material import split_material
from app.campaigns.spec import CampaignSpec
from app.core.config import Settings
from app.core.extensions import reading, writing
from app.finetuning.job import TRAINING
from app.jobs.chained import AwaitedJob
from app.jobs.context import JobContext
from app.models import (
    Assessment,
    Dataset,
    LanguageModel,
    RoundMaterial,
    RoundRow,
    Society,
    SocietyInteraction,
    TrainingJob,
)
from app.players.scripted.taboo import words_with_clues
from app.recipes import lifecycle as runs
from app.recipes import steps as recipe_steps
from app.recipes.reader import load_recipe
from app.recipes.spec import RecipeSpec
from app.rounds.lifecycle import Material
from tests.campaigns import pretend_trained, sit_in
from tests.experimenter import signed_in
from tests.integration.test_alignments import DEMONSTRATIONS, base, files, line  # noqa: F401  fixtures
from tests.integration.test_cli_society import flask

WORDS = Material("a test", list(words_with_clues())[:40])


@pytest.fixture(autouse=True)
def _small_models(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMALL_MODELS", "true")


def unpacked(archive: Path) -> Path:
    """The recipe in an archive, beside its files."""
    with zipfile.ZipFile(archive) as content:
        content.extractall(archive.parent)
        [recipe] = [name for name in content.namelist() if name.endswith(".yaml")]
    return archive.parent / recipe


def carry_on(engine: Engine, settings: Settings, take_steps: Any, number: int) -> None:
    """Go through the steps; scripted players sit in for the models, and trainings give their base's weights."""
    part: AwaitedJob | None
    while (part := take_steps(JobContext(engine, settings, uuid.uuid4().hex), number)) is not None:
        if part.kind is TRAINING:
            pretend_trained(engine, part.number)
        else:
            sit_in(engine, settings, part.number)


def came_of(engine: Engine, name: str) -> dict[str, Any]:
    """What was played, kept and trained under a name, with models and rounds by what they are called within it."""
    with reading(engine) as session:
        models = {row.id: row.name.replace(name, "NAME") for row in session.scalars(select(LanguageModel))}
        rounds = {row.id: row for row in session.scalars(select(RoundRow)) if row.name.startswith(name)}
        material = {row.round_id: row.items for row in session.scalars(select(RoundMaterial))}
        data = {row.id: row for row in session.scalars(select(Dataset)) if row.name.startswith(name)}
        trained = [row for row in session.scalars(select(TrainingJob)) if row.name.startswith(name)]
        return {
            "rounds": sorted(
                [row.name.replace(name, "NAME"), row.seed, row.matches, row.config, row.sampling, row.swap_seats,
                 models[row.model_0_id or 0], models[row.model_1_id or 0], row.pick,
                 material[row.id][: row.matches] if row.pick == "in-order" else material[row.id]]
                for row in rounds.values()
            ),
            "datasets": sorted(
                [row.name.replace(name, "NAME"), row.rows, row.words, row.spec["rewards"], row.spec["filter"],
                 [models_of.replace(name, "NAME") for models_of in row.spec.get("models", ())],
                 sorted(rounds[number].name.replace(name, "NAME") for number in row.spec["rounds"])]
                for row in data.values()
            ),
            "trainings": sorted(
                [row.name.replace(name, "NAME"), row.method, models[row.base_id or 0], data[row.dataset_id].rows,
                 {key: str(value).replace(name, "NAME") for key, value in row.config.items()}]
                for row in trained
            ),
        }  # fmt: skip


@pytest.mark.either_database
def test_a_campaigns_recipe_plays_the_same_matches_and_learns_from_the_same_rows(
    app: Flask, engine: Engine, settings: Settings, tmp_path: Path
) -> None:
    wanted = CampaignSpec.read({
        "game": "taboo", "base": "tiny-base", "name": "loop", "seed": 5, "preset": "spag", "teacher": "scripted",
        "iterations": 2, "matches": 12, "evaluation": 6, "play_with": {"scripted": 0.5}, "partners": ["tiny"],
        "evaluation_temperature": 0.5, "start": "base",
    })  # fmt: skip
    with writing(engine) as session:
        both = split_material("taboo", WORDS, wanted.evaluation, wanted.seed)
        number = lifecycle.create(session, wanted, both, queued=False).id
    carry_on(engine, settings, campaign_steps.take_steps, number)
    archive = tmp_path / "loop.zip"
    said = flask(app, "campaign", "export", str(number), "--out", str(archive))
    assert said.stdout == f"The recipe of campaign {number} in {archive}.\n", said.stderr
    downloaded = signed_in(app).get(f"/admin/campaigns/{number}/recipe.zip")
    assert downloaded.data == archive.read_bytes()
    recipe = unpacked(archive)
    with reading(engine) as session:
        new = runs.prepare(session, load_recipe(recipe, {}), RecipeSpec(name="twin"))
    with writing(engine) as session:
        run = runs.create(session, new, queued=False).id
    carry_on(engine, settings, recipe_steps.take_steps, run)
    first, second = came_of(engine, "loop"), came_of(engine, "twin")
    assert (
        len(first["rounds"]) == 4 * 3 + 1 + 2 * 2
    )  # evaluations of four models, the teacher's round, two rounds in two iterations
    assert len(first["trainings"]) == 3
    assert first == second
    refused = flask(app, "campaign", "export", str(number), "--out", str(archive))
    assert refused.exit_code == 2
    assert "--out: expected a file that is not there yet" in refused.stderr


@pytest.mark.either_database
def test_an_alignments_recipe_lives_in_the_same_societies_and_trains_the_same_weights(
    app: Flask,
    engine: Engine,
    base: str,  # noqa: F811
    files: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    done = flask(app, *line(files, "--import", str(files / "alpaca.json"), "--format", "alpaca"))
    assert done.exit_code == 0, done.output
    archive = tmp_path / "mine.zip"
    assert flask(app, "alignment", "export", "1", "--out", str(archive)).exit_code == 0
    assert signed_in(app).get("/admin/alignments/1/recipe.zip").data == archive.read_bytes()
    ran = flask(app, "recipe", "run", str(unpacked(archive)), "--name", "again")
    assert ran.exit_code == 0, ran.output
    with reading(engine) as session:
        made = {row.name: row.options.get("sha256") for row in session.scalars(select(LanguageModel))}
        lived = [
            [
                (row.iteration, row.agent, row.question, row.draft)
                for row in session.scalars(
                    select(SocietyInteraction)
                    .where(SocietyInteraction.society_id == society)
                    .order_by(SocietyInteraction.iteration, SocietyInteraction.agent)
                )
            ]
            for society in session.scalars(select(Society.id).order_by(Society.id))
        ]
        asked = [json.dumps(each) for each in session.scalars(select(Assessment.questions).order_by(Assessment.id))]
    assert made["again-sft"] == made["mine-sft"] != made[base]
    assert made["again-aligned"] == made["mine-aligned"] != made["mine-sft"]
    assert len(lived) == 4
    assert lived[0] == lived[2]
    assert lived[1] == lived[3]
    assert asked[0] == asked[1]
