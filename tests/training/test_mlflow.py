"""Trainings as runs of MLflow: what is handed on, and that nothing of it keeps a training from its end."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.core.config import ROOT
from tests.own_environment import make_environment
from tests.stack import free_port
from tests.training.conftest import events_in
from tests.training.test_tiny import SMALL
from training.errors import TrainingFailed
from training.trainer import TokenTrainer

MLFLOW = "mlflow-skinny==3.17.2"
_STAND_IN = """
    import json, types
    class MlflowClient:
        def __init__(self, uri):
            self.uri = uri
        def __getattr__(self, name):
            def call(*given, **named):
                with open(self.uri, "a") as file:
                    file.write(json.dumps([name, given, named], default=vars) + "\\n")
                if name == "log_batch" and self.uri.endswith("full"):
                    raise OSError("no space on http://me:secret@host/mlflow")
                return types.SimpleNamespace(experiment_id="3", info=types.SimpleNamespace(run_id="r1"))
            return call
"""
_ENTITIES = """
    class Param:
        def __init__(self, key, value): self.key, self.value = key, value
    RunTag = Param
    class Metric:
        def __init__(self, key, value, timestamp, step): self.key, self.value, self.step = key, value, step
"""

Train = Callable[..., int]
Write = Callable[..., Path]


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that takes the calls of MLflow's client down, which is not installed beside Parlor."""
    package = tmp_path / "stand-in" / "mlflow"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(textwrap.dedent(_STAND_IN))
    (package / "entities.py").write_text(textwrap.dedent(_ENTITIES))
    monkeypatch.syspath_prepend(package.parent)
    yield
    for name in ("mlflow", "mlflow.entities"):
        sys.modules.pop(name, None)


def calls_in(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def warnings_in(events: Path) -> list[str]:
    return [each["message"] for each in events_in(events) if each["event"] == "warning"]


@pytest.mark.usefixtures("stand_in")
def test_settings_steps_and_the_end_of_a_training_are_handed_on(
    config_file: Write, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", str(tmp_path / "calls"))
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "loops")
    config = config_file(**SMALL, max_steps=4, log_every=2, eval_share=0.1, eval_every=4, learning_rate=0.01)
    assert train("tiny", config, tmp_path / "events") == 0
    found, made, params, *metrics, tags, ended = calls_in(tmp_path / "calls")
    assert found[:2] == ["get_experiment_by_name", ["loops"]]
    assert (made[0], made[1], made[2]["run_name"]) == ("create_run", ["3"], "model")
    assert set(made[2]["tags"]) == {"method", "data_sha256"}
    assert {each["key"]: each["value"] for each in params[2]["params"]}["learning_rate"] == "0.01"
    logged = [each for call in metrics for each in call[2]["metrics"]]
    events = events_in(tmp_path / "events")
    told = [(each["step"], each["loss"]) for each in events if each["event"] == "step"]
    assert [(each["step"], each["value"]) for each in logged if each["key"] == "loss"] == told
    assert [each["step"] for each in logged if each["key"] == "eval_loss"] == [4]
    assert {each["key"]: each["value"] for each in tags[2]["tags"]} == {
        "output": events[-1]["output"], "checkpoint_sha256": events[-1]["checkpoint_sha256"],
    }  # fmt: skip
    assert ended[:2] == ["set_terminated", ["r1", "FINISHED"]]


@pytest.mark.usefixtures("stand_in")
def test_a_training_that_failed_goes_on_in_its_run(
    config_file: Write, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", str(tmp_path / "calls"))
    config = config_file(max_steps=6, save_every=2, log_every=2)
    check = TokenTrainer.check_step

    def failing(trainer: TokenTrainer) -> None:
        check(trainer)
        if trainer.state.global_step == 5:
            raise TrainingFailed("no more")

    with monkeypatch.context() as patch:
        patch.setattr(TokenTrainer, "check_step", failing)
        assert train("sft", config) == 1
    assert train("sft", config) == 0
    calls = calls_in(tmp_path / "calls")
    assert [name for name, *_ in calls].count("create_run") == 1
    assert [given for name, given, _ in calls if name == "set_terminated"] == [["r1", "FAILED"], ["r1", "FINISHED"]]


@pytest.mark.usefixtures("stand_in")
def test_a_store_that_fails_is_one_warning_without_its_password(
    config_file: Write, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", str(tmp_path / "full"))
    assert train("tiny", config_file(**SMALL, max_steps=4, log_every=1), tmp_path / "events") == 0
    [said] = warnings_in(tmp_path / "events")
    assert said == "MLFLOW_TRACKING_URI: the training goes on without MLflow: no space on http://host/mlflow"
    assert [name for name, *_ in calls_in(tmp_path / "full")] == ["get_experiment_by_name", "create_run", "log_batch"]


def test_without_the_package_a_training_says_so_and_without_the_setting_nothing(
    config_file: Write, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train("tiny", config_file("one", **SMALL, max_steps=1), tmp_path / "one.jsonl") == 0
    assert warnings_in(tmp_path / "one.jsonl") == []
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///nowhere.db")
    assert train("tiny", config_file("two", **SMALL, max_steps=1), tmp_path / "two.jsonl") == 0
    [said] = warnings_in(tmp_path / "two.jsonl")
    assert "expected the package mlflow-skinny or mlflow beside Parlor" in said


_READ = """
import json, sys
from mlflow import MlflowClient
client = MlflowClient(sys.argv[1])
[run] = client.search_runs([client.get_experiment_by_name("parlor").experiment_id])
print(json.dumps({
    "status": run.info.status, "name": run.info.run_name, "params": run.data.params, "tags": run.data.tags,
    "losses": [[each.step, each.value] for each in client.get_metric_history(run.info.run_id, "loss")],
}))
"""


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_real_mlflow_keeps_runs_in_a_file_and_in_a_database(config_file: Write, tmp_path: Path) -> None:
    python = make_environment(tmp_path / "environment", MLFLOW, beside_parlor=True)

    def run(*command: object, uri: str) -> str:
        env = {"PATH": "/usr/bin:/bin", "MLFLOW_TRACKING_URI": uri, "MLFLOW_ALLOW_FILE_STORE": "true"}
        done = subprocess.run(
            [str(python), *map(str, command)],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    stores = {"files": f"file://{tmp_path}/runs", "database": f"sqlite:///{tmp_path}/runs.db"}
    for name, uri in {**stores, "away": f"http://127.0.0.1:{free_port()}"}.items():
        config = config_file(name, **SMALL, max_steps=4, log_every=1)
        events = tmp_path / f"{name}.jsonl"
        run("-m", "training", "tiny", "--config", config, "--progress", events, uri=uri)
        if name == "away":
            [said] = warnings_in(events)
            assert "the training goes on without MLflow" in said
            continue
        assert warnings_in(events) == []
        found = json.loads(run("-c", _READ, uri, uri=uri))
        steps = [[each["step"], each["loss"]] for each in events_in(events) if each["event"] == "step"]
        assert (found["status"], found["name"], found["losses"]) == ("FINISHED", "model", steps)
        assert found["params"]["width"] == "32"
        assert found["tags"]["checkpoint_sha256"] == events_in(events)[-1]["checkpoint_sha256"]
