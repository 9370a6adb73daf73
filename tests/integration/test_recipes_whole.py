"""A recipe with every kind of steps, run for real: a model plays, learns, is scored and is judged."""

from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine

from app.core.extensions import reading, writing
from app.jobs import states
from app.models import Assessment, Dataset, LanguageModel, RecipeRun, Society, TrainingJob
from app.recipes.job import RECIPE as KIND
from app.recipes.reader import load_recipe
from app.recipes.step_kinds import STEP_KINDS
from app.registry import add_local_model, get_model
from app.registry.playing import playing
from tests.checkpoints import word_model
from tests.recipes import carry_on, make_run_of_file, row_of

RECIPE = """\
recipe: whole
version: 1
about: Every kind of steps with a model that learns, so short that a test can run it.
inputs: {base: base, seed: 3}
steps:
  - name: before
    do: evaluate
    with: {game: negotiation, model: "${base}", matches: 4, seed: 5, sampling: {max_tokens: 16}}
  - name: teach
    do: round
    with: {game: negotiation, models: [scripted], matches: 6}
  - name: taught
    do: keep
    with: {rounds: ["${teach.round}"], filter: all, style: compact}
  - name: rows
    do: import
    with: {file: rows.jsonl, format: alpaca}
  - name: imitate
    do: training
    with: {method: sft, dataset: "${rows}", base: "${base}", config: {max_steps: 1, threads: 1}}
  - name: train
    do: training
    for: turn in 1..2
    with:
      method: sft
      dataset: ${taught.dataset}
      base: ${previous.train.model or imitate.model}
      config: {max_steps: 3, batch: 2, threads: 1, learning_rate: 0.05, warmup: 0}
  - name: measure
    do: evaluate
    for: turn in 1..2
    with:
      game: negotiation
      model: ${train.model}
      matches: 4
      beside: ${before.figures}
      seed: 5
      sampling: {max_tokens: 16}
  - name: score
    do: benchmark
    with: {model: "${last.train.model}", tasks: everyday-reasoning, item_limit: 4}
  - name: world
    do: society
    with:
      agents: {scripted-agent: 1}
      observers: [scripted-observer]
      questions: questions.txt
      config: {size: 2, iterations: 2, critics: 2, first_memories: 2, max_tokens: 12, setting: all_bad}
  - name: ratings
    do: comparisons
    with: {society: "${world.society}"}
  - name: best
    do: best-responses
    with: {dataset: "${ratings.dataset}"}
  - name: prefer
    do: training
    with:
      method: stable-alignment
      dataset: ${ratings.dataset}
      sft_data: ${ratings.realignment}
      base: ${last.train.model}
      config: {max_steps: 2, batch: 2, threads: 1, max_length: 128}
  - name: judge
    do: assessment
    with:
      model: ${prefer.model}
      base: ${base}
      raters: [scripted-observer]
      questions: held-out.txt
      sampling: {max_tokens: 12}
  - name: games
    do: compare
    with: {of: ["${before}", "${all.measure}"]}
  - name: all_else
    do: compare
    with: {of: ["${score}", "${judge}"]}
"""
QUESTIONS = [f"What can {who} do about {what}?" for who in ("I", "you", "us") for what in ("a cat", "the hat", "a dog")]
ROWS = '{"instruction": "What is on?", "input": "", "output": "on is a word for you."}\n'


@pytest.fixture
def recipe(home: Path, engine: Engine, tmp_path: Path) -> Path:
    """The file, beside those that it names; its base is registered."""
    sha256 = word_model(home / "checkpoints" / "base")
    with writing(engine) as session:
        options = {"path": "checkpoints/base", "sha256": sha256}
        add_local_model(session, "base", None, ["negotiation"], options, prompt_style="compact")
    (tmp_path / "whole.yaml").write_text(RECIPE)
    (tmp_path / "questions.txt").write_text("\n".join(QUESTIONS[:6]))
    (tmp_path / "held-out.txt").write_text("\n".join(QUESTIONS[6:]))
    (tmp_path / "rows.jsonl").write_text(ROWS)
    return tmp_path / "whole.yaml"


@pytest.mark.either_database
def test_every_kind_of_steps_is_run(app: Flask, engine: Engine, recipe: Path) -> None:
    assert {step.kind.name for step in load_recipe(recipe).plan.steps} == {*STEP_KINDS}
    number = make_run_of_file(engine, recipe)
    carry_on(engine, app.config["SETTINGS"], number)
    row = row_of(engine, number)
    assert (row.status, row.error) == (states.DONE, None)
    with reading(engine) as session:
        found = {step.key: step for step in KIND.steps_of(session, number)}
        trained = {
            name: session.get_one(LanguageModel, session.get_one(TrainingJob, step.number).model_id)
            for name, step in found.items()
            if step.kind == "training"
        }
        assert {name: model.name for name, model in trained.items()} == {
            "imitate": "whole-1-imitate", "train turn=1": "whole-1-train-1", "train turn=2": "whole-1-train-2",
            "prefer": "whole-1-prefer",
        }  # fmt: skip
        second = session.get_one(TrainingJob, found["train turn=2"].number)
        assert second.base_id == trained["train turn=1"].id
        preferred = session.get_one(TrainingJob, found["prefer"].number)
        assert (preferred.base_id, preferred.dataset_id) == (trained["train turn=2"].id, found["ratings"].dataset_id)
        assert session.get_one(Dataset, preferred.dataset_id).kind == "comparisons"
        society = session.get_one(Society, found["world"].number)
        assert [*society.questions] == QUESTIONS[:6]
        judged = session.get_one(Assessment, found["judge"].number)
        assert (judged.model_id, judged.base_id) == (trained["prefer"].id, get_model(session, "base").id)
        assert [*judged.questions] == QUESTIONS[6:]
        games, others = found["games"].figures, found["all_else"].figures
        measures = [found[key].figures for key in ("before", "measure turn=1", "measure turn=2")]
    assert games is not None
    assert others is not None
    assert [(each["step"], each["values"], each["model"]) for each in games["rows"]] == [
        ("before", {}, "base"),
        ("measure", {"turn": 1}, "whole-1-train-1"),
        ("measure", {"turn": 2}, "whole-1-train-2"),
    ]
    assert [each["figures"] for each in games["rows"]] == measures
    assert measures[0] is not None
    assert measures[0]["abort_rate"]["n"] == 4
    assert [each["step"] for each in others["rows"]] == ["score", "judge"]
    score, verdict = (each["figures"] for each in others["rows"])
    assert 0 <= score["everyday-reasoning"]["value"] <= 1
    assert score["everyday-reasoning"]["n"] == 4
    assert {*verdict} >= {"alignment", "alignment_model", "alignment_base", "engagement"}
    with writing(engine) as session:
        assert playing(session) == set()
        session.get_one(RecipeRun, number).status = states.RUNNING
        session.flush()
        assert {model.id for model in trained.values()} < playing(session)
