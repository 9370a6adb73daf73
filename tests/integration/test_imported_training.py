"""A model learns from an imported dataset, and its lineage leads to the file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine

from app.core.extensions import writing
from app.finetuning import lifecycle as jobs
from app.finetuning.backends import find_backend
from app.finetuning.files import JobFiles
from app.finetuning.job import TRAINING
from tests.checkpoints import register, word_model
from tests.experimenter import signed_in
from tests.integration.test_cli_dataset import flask
from tests.training.conftest import train  # noqa: F401 - a fixture

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # the rows are the same on all

RATED = [
    {"query": f"what do you want {number}", "responses": ["i want a book", "no"], "scores": [7, 2]}
    for number in range(4)
]


@pytest.fixture
def base(engine: Engine, home: Path) -> str:
    folder = home / "checkpoints" / "base"
    register(engine, "base", folder, word_model(folder))
    return "base"


def test_an_imported_comparison_trains_a_model_whose_lineage_has_the_file(
    app: Flask,
    engine: Engine,
    home: Path,
    base: str,
    tmp_path: Path,
    train: Callable[..., int],  # noqa: F811
) -> None:
    file = tmp_path / "rated.json"
    file.write_text(json.dumps(RATED))
    assert flask(app, "dataset", "import", str(file), "--format", "stable-alignment").exit_code == 0
    config: dict[str, Any] = {"epochs": 1, "batch": 2, "threads": 1, "device": "cpu", "accumulation": 1}
    spec = jobs.TrainingSpec(method="stable-alignment", dataset="rated", name="taught", base=base, config=config)
    with writing(engine) as session:
        job_id = jobs.create(session, spec, queued=False, home=home).id
        assert TRAINING.take(session, job_id, "me", 600)
        files, row = JobFiles(home, job_id, "taught"), TRAINING.get(session, job_id)
        files.prepare()
        find_backend(row.backend).prepare(session, row, files)
    assert train("stable-alignment", files.config, files.progress) == 0
    with writing(engine) as session:
        jobs.finish(session, files, "me")
        number = TRAINING.get(session, job_id).model_id
    lineage = json.loads(flask(app, "model", "lineage", "taught", "--json").stdout)
    imported = lineage["ancestors"][0]["dataset"]["imported"]
    assert (imported["file"], imported["format"], imported["size"]) == (
        "rated.json", "stable-alignment", file.stat().st_size,
    )  # fmt: skip
    said = flask(app, "model", "lineage", "taught").stdout
    assert f"imported from rated.json (format stable-alignment, sha256 {imported['sha256']})" in said
    page = signed_in(app).get(f"/admin/models/{number}/lineage").text
    for words in ("which was imported from", "rated.json", "format stable-alignment", imported["sha256"]):
        assert words in page
    assert "which was cut from" not in page


def test_a_method_takes_the_imported_rows_that_fit(app: Flask, base: str, tmp_path: Path) -> None:
    chat = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "t"}]}
    move = {"query": "q", "target": "t"}
    kinds = "which holds"
    for method, row_format, row, line in (
        (
            "sft",
            "stable-alignment",
            RATED[0],
            f"conversations, as sft needs, got rated@1, {kinds} comparisons",
        ),
        ("stable-alignment", "spag-rows", move, "comparisons, as stable-alignment needs, got moves@1, which"),
        (
            "offline-po",
            "openai",
            chat,
            "moves with a reward each, which offline-po needs, got chats@1, whose first row",
        ),
        ("offline-po", "spag-rows", {**move, "reward": 0.5}, None),
        ("sft-kl", "openai", chat, None),
    ):
        file = tmp_path / "rows.jsonl"
        file.write_text(json.dumps(row))
        name = {"stable-alignment": "rated", "spag-rows": "moves", "openai": "chats"}[row_format]
        imported = flask(app, "dataset", "import", str(file), "--format", row_format, "--name", name)
        assert imported.exit_code == 0, imported.stderr
        result = flask(app, "training", "run", method, "--dataset", name, "--base", base, "--name", method, "--queue")
        if line is None:
            assert result.exit_code == 0, result.stderr
        else:
            assert result.exit_code == 2
            assert line in result.stderr
