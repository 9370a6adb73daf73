"""A training that was killed goes on as if nothing had happened: the weights are the same, bit by bit."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fork_server import Forked
from tests.stack import PATIENCE
from tests.training.conftest import events_in
from tests.trainings import trainings
from training.errors import TrainingFailed
from training.trainer import TokenTrainer, is_over

STEPS = {"batch": 4, "accumulation": 2, "epochs": 25, "save_every": 20, "eval_share": 0.1, "eval_every": 50}


def started(config: Path, events: Path) -> Forked:
    command = ["training", "sft", "--config", str(config), "--progress", str(events)]
    with open(os.devnull, "wb") as output:  # noqa: PTH123 - not a path of the project
        return trainings.fork(command, os.environ, (output.fileno(),))


def wait_for_step(step: int, events: Path, process: Forked) -> None:
    until = time.monotonic() + PATIENCE
    while not any(each.get("step", 0) >= step for each in _whole_lines(events)):
        assert process.poll() is None, "the training ended before it could be killed"
        assert time.monotonic() < until
        time.sleep(0.002)


def _whole_lines(events: Path) -> list[dict[str, int]]:
    try:
        return events_in(events)
    except ValueError:  # a line that is being written
        return []


def test_a_killed_training_ends_with_the_weights_of_an_undisturbed_one(
    config_file: Callable[..., Path], train: Callable[..., int], tmp_path: Path
) -> None:
    assert train("sft", config_file("undisturbed", **STEPS), tmp_path / "undisturbed.jsonl") == 0

    config, events = config_file("killed", **STEPS), tmp_path / "killed.jsonl"
    process = started(config, events)
    wait_for_step(47, events, process)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed" / "model").exists()
    (tmp_path / "killed" / "model.run" / ".checkpoint-60.part").mkdir()  # as a kill while it saves would leave it

    assert train("sft", config, events) == 0
    assert [each["resumed_from"] for each in events_in(events) if each["event"] == "started"] == [None, "checkpoint-40"]
    one, other = (tmp_path / name / "model" for name in ("undisturbed", "killed"))
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    losses = [
        {each["step"]: each["loss"] for each in events_in(tmp_path / f"{name}.jsonl") if each["event"] == kind}
        for kind in ("step", "eval")
        for name in ("undisturbed", "killed")
    ]
    assert losses[0] == losses[1]
    assert losses[2] == losses[3] != {}


def test_a_training_that_is_told_to_stop_saves_and_goes_on_when_it_is_started_again(
    config_file: Callable[..., Path], train: Callable[..., int], tmp_path: Path
) -> None:
    config, events = config_file(**(STEPS | {"epochs": 2000})), tmp_path / "events.jsonl"
    process = started(config, events)
    wait_for_step(7, events, process)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(timeout=PATIENCE) == 130
    said = events_in(events)
    assert said[-1]["event"] == "interrupted"
    assert said[-2]["event"] == "saved"
    [checkpoint] = (tmp_path / "config" / "model.run").glob("checkpoint-*")
    assert checkpoint.name == f"checkpoint-{said[-2]['step']}" == said[-2]["checkpoint"]
    assert not is_over(checkpoint)


@pytest.mark.parametrize(
    "steps",
    [
        {"max_steps": 3, "batch": 4, "eval_share": 0.1},
        *(
            pytest.param(steps, marks=pytest.mark.long)
            for steps in (
                {"max_steps": 3, "batch": 4},
                {"epochs": 2},
                {"epochs": 300, "learning_rate": 0.1, "schedule": "constant", "eval_share": 0.1, "patience": 2},
            )
        ),
    ],
)
def test_a_training_that_was_killed_after_its_last_step_only_writes_its_output(
    steps: dict[str, float],
    config_file: Callable[..., Path],
    train: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert train("sft", config_file("undisturbed", **steps), tmp_path / "undisturbed.jsonl") == 0
    config, events = config_file("killed", **steps), tmp_path / "killed.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr("training.recipe._finish", lambda *_: (_ for _ in ()).throw(TrainingFailed("killed")))
        assert train("sft", config, events) == 1
    before = len(events_in(events))
    assert train("sft", config, events) == 0
    assert [each["event"] for each in events_in(events)[before:]] == ["started", "finished"]
    one, other = (tmp_path / name / "model" for name in ("undisturbed", "killed"))
    for name in ("model.safetensors", "parlor.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes()


def test_evaluations_without_gain_are_counted_on_after_a_resume(
    config_file: Callable[..., Path], train: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = {"epochs": 300, "learning_rate": 0.1, "schedule": "constant", "eval_share": 0.1, "patience": 3, "batch": 4}
    assert train("sft", config_file("undisturbed", **steps), tmp_path / "undisturbed.jsonl") == 0
    evaluations = [each["step"] for each in events_in(tmp_path / "undisturbed.jsonl") if each["event"] == "eval"]
    config, events = config_file("killed", **steps), tmp_path / "killed.jsonl"
    check = TokenTrainer.check_step

    def killed(trainer: TokenTrainer) -> None:
        check(trainer)
        if trainer.state.global_step == evaluations[-2] + 2:
            raise TrainingFailed("killed")

    with monkeypatch.context() as patch:
        patch.setattr(TokenTrainer, "check_step", killed)
        assert train("sft", config, events) == 1
    assert train("sft", config, events) == 0
    assert [each["step"] for each in events_in(events) if each["event"] == "eval"] == evaluations
    one, other = (tmp_path / name / "model" / "parlor.json" for name in ("undisturbed", "killed"))
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("change", [{"learning_rate": 1e-3}, pytest.param({"seed": 4}, marks=pytest.mark.long)])
def test_another_training_is_not_gone_on_with_unless_it_begins_anew(
    change: dict[str, float],
    config_file: Callable[..., Path],
    train: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = str(tmp_path / "run")
    steps = {"max_steps": 2, "save_every": 1, "learning_rate": 1e30, "warmup": 0, "run": run}
    assert train("sft", config_file(**steps)) == 1  # leaves a checkpoint behind
    capsys.readouterr()
    assert train("sft", config_file(**(steps | change))) == 2
    assert f"got another {next(iter(change))}; name another run folder" in capsys.readouterr().err
    assert train("sft", config_file(**(steps | {"learning_rate": 1e-3, "resume": False}))) == 0


def test_a_run_that_was_begun_with_clip_is_gone_on_with_by_as_many_processes(
    config_file: Callable[..., Path],
    train: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A config file and a run folder of before `clip` was renamed to `max_grad_norm`."""
    config, events = config_file(max_steps=2, clip=0.5), tmp_path / "events.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr("training.recipe._finish", lambda *_: (_ for _ in ()).throw(TrainingFailed("killed")))
        assert train("sft", config, events) == 1
    [kept] = (tmp_path / "config" / "model.run").glob("checkpoint-*/parlor.json")
    provenance = json.loads(kept.read_text())
    assert provenance["config"]["max_grad_norm"] == 0.5
    provenance["config"]["clip"] = provenance["config"].pop("max_grad_norm")
    kept.write_text(json.dumps(provenance | {"processes": 2}))
    capsys.readouterr()
    assert train("sft", config) == 2
    assert "expected 2 processes, as the run was begun with, got 1; start as many" in capsys.readouterr().err
    kept.write_text(json.dumps(provenance))
    assert train("sft", config, events) == 0
    assert [each["resumed_from"] for each in events_in(events) if each["event"] == "started"] == [None, "checkpoint-2"]
