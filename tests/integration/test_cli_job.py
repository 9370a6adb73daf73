"""`flask train` and `flask job`: what they say of jobs, and of those that cannot be.

tests/integration/test_jobs_kill.py trains with them.
"""

import json
import re

import pytest
from click.testing import Result
from flask import Flask
from sqlalchemy import Engine, update

from app.core.extensions import writing
from app.finetuning.job import TRAINING
from app.jobs import states
from app.models import Dataset, TrainingJob
from tests.jobs import make_dataset, make_job, tell
from training import processor
from training.methods import all_methods


@pytest.fixture
def dataset(app: Flask, engine: Engine) -> Dataset:
    return make_dataset(engine, app.config["SETTINGS"])


def flask(app: Flask, *arguments: str) -> Result:
    return app.test_cli_runner().invoke(args=list(arguments))


def test_a_queued_job_waits_for_a_worker_and_can_be_cancelled_and_resumed(app: Flask, dataset: Dataset) -> None:
    TRAINING.enqueue(
        app.config["SETTINGS"].broker_url, 1
    )  # nobody hears; and what is logged of it has been logged before
    train = ["train", "tiny", "--dataset", "rows@1", "--name", "small", "--config", "width=32", "epochs=2.5", "--queue"]
    assert json.loads(flask(app, *train, "--json").stdout) == {"job_id": 1, "queued": True}
    told = json.loads(flask(app, "job", "show", "1", "--json").stdout)
    assert (told["status"], told["queued"], told["dataset"]) == ("waiting", True, "rows@1")
    assert (told["config"], told["base"], told["model"]) == ({"width": 32, "epochs": 2.5}, None, None)
    listed = flask(app, "job", "list").stdout
    assert listed.splitlines()[1].split() == ["small", "1", "waiting", "0/?", "tiny", "rows@1"]
    assert flask(app, "job", "cancel", "1").stdout.startswith(
        "Job 1 is cancelled at no step yet; `flask training resume 1`"
    )
    assert flask(app, "job", "resume", "1", "--queue").stdout.startswith("Job 1 waits for a worker; ")
    assert json.loads(flask(app, "job", "list", "--json").stdout)[0]["status"] == "waiting"


@pytest.mark.parametrize(("precision", "warned"), [("bfloat16", True), ("float32", False)])
def test_a_precision_that_the_processor_imitates_is_warned_of_before_the_start(
    app: Flask, dataset: Dataset, monkeypatch: pytest.MonkeyPatch, precision: str, warned: bool
) -> None:
    monkeypatch.setattr(processor, "lacks_bfloat16", lambda: True)
    train = [
        "train",
        "tiny",
        "--dataset",
        "rows@1",
        "--name",
        "small",
        "--config",
        f"precision={precision}",
        "device=cpu",
    ]
    result = flask(app, *train, "--queue", "--json")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: precision: the processor of this machine has no ") is warned


def test_a_job_that_fails_is_exit_code_1_and_says_how_to_go_on(app: Flask, engine: Engine, dataset: Dataset) -> None:
    (app.config["SETTINGS"].home / "datasets" / f"{dataset.sha256}.jsonl").unlink()
    job_id = make_job(engine, dataset)
    result = flask(app, "job", "resume", str(job_id))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: job 1 stopped: dataset 1: expected its file ")
    assert result.stderr.endswith(
        "after that is repaired, `flask training resume 1` goes on from its last checkpoint\n"
    )
    shown = flask(app, "job", "show", "1").stdout
    assert re.search(r"^status +failed$", shown, re.MULTILINE)


def test_a_job_says_what_was_done_with_rows_that_are_too_long(app: Flask, engine: Engine, dataset: Dataset) -> None:
    job_id = make_job(engine, dataset)
    told = json.loads(flask(app, "training", "show", str(job_id), "--json").stdout)
    assert [told[name] for name in ("shortened", "cut", "skipped")] == [None, None, None]
    tell(engine, job_id, 3, 9)
    shown = flask(app, "training", "show", str(job_id)).stdout
    assert re.search(r"^shortened +2\ncut +3\nskipped +1$", shown, re.MULTILINE)
    assert "40 rows, 2 shortened, 3 cut, 1 left out as too long" in shown


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("train ppo --dataset rows --name x", f"method: expected {' or '.join(all_methods())}"),
        ("train sft --dataset rows --name x", "base: expected the local model that sft starts from, got none"),
        ("train sft --dataset rows --name x --base scripted", "base: expected a local model, which has weights"),
        ("train tiny --dataset rows --name x --config lr=1", "config.lr: expected a field of tiny ("),
        ("train tiny --dataset rows --name x --config epochs=", "config.epochs: expected a number above 0, got ''"),
        ("train tiny --dataset other --name x", "dataset: expected the number, name or name@version"),
        ("train tiny --dataset rows --name a/b", "name: expected 1 to 80 letters, digits, dots, dashes"),
        ("train tiny --dataset rows", "name: expected a value, got none"),
        ("train tiny --dataset rows --name x --backend moon", "backend: expected local or openai or tinker or toget"),
        ("job show 9", "training: expected the number of one that exists, got 9; `flask training list` shows them"),
        ("job cancel 1", "job 1: expected one that is waiting or running, got one that is failed"),
        ("job resume nine", "Invalid value for 'TRAINING': 'nine' is not a valid integer"),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_is_one_line_and_exit_code_2(
    app: Flask, engine: Engine, dataset: Dataset, arguments: str, line: str
) -> None:
    job_id = make_job(engine, dataset)
    with writing(engine) as session:
        session.execute(update(TrainingJob).where(TrainingJob.id == job_id).values(status=states.FAILED))
    result = flask(app, *arguments.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {line}")
    assert result.stderr.count("\n") == 1
    assert len(json.loads(flask(app, "job", "list", "--json").stdout)) == 1
