"""A training job is run by one worker at a time, and makes one model or none, whatever goes wrong with it."""

import json
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from flask import Flask
from sqlalchemy import Engine, update

from app.core.config import Settings
from app.core.errors import AppError, Conflict, Invalid
from app.core.extensions import reading, writing
from app.finetuning import backends, config, listing, runner
from app.finetuning import lifecycle as jobs
from app.finetuning.backends import local
from app.finetuning.files import JobFiles
from app.finetuning.job import TRAINING
from app.jobs import states
from app.models import Dataset, TrainingJob
from app.registry import add_local_model
from tests.experimenter import signed_in
from tests.jobs import events_of, is_internal_error, make_dataset, make_job, model_of, models, row_of, run
from tests.stack import PATIENCE
from training.methods import all_methods
from training.methods.base import Need

HASH = "0" * 64
# For what takes long, or is the same on every database.
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"].model_copy(update={"TRAIN_LEASE": 3.0})


@pytest.fixture
def dataset(engine: Engine, settings: Settings) -> Dataset:
    return make_dataset(engine, settings)


def let_the_lease_run_out(engine: Engine, job_id: int) -> None:
    with writing(engine) as session:
        past = datetime.now(UTC) - timedelta(seconds=1)
        session.execute(update(TrainingJob).where(TrainingJob.id == job_id).values(lease_until=past))


def state_of(engine: Engine, job_id: int) -> str:
    with reading(engine) as session:
        return TRAINING.state_of(session, TRAINING.get(session, job_id))


def taken(engine: Engine, job_id: int, owner: str) -> bool:
    with writing(engine) as session:
        return TRAINING.take(session, job_id, owner, 60)


# ---- Who runs it ------------------------------------------------------------------


def test_one_worker_takes_a_job_and_another_only_when_its_lease_has_run_out(engine: Engine, dataset: Dataset) -> None:
    job_id = make_job(engine, dataset)
    assert [taken(engine, job_id, owner) for owner in ("one", "other", "one")] == [True, False, False]
    row = row_of(engine, job_id)
    assert (row.status, row.lease_owner, row.lease_count) == (states.RUNNING, "one", 0)
    let_the_lease_run_out(engine, job_id)
    assert taken(engine, job_id, "other")
    assert row_of(engine, job_id).lease_count == 1
    with writing(engine) as session:
        assert TRAINING.renew(session, job_id, "one", 60) is None
        assert TRAINING.renew(session, job_id, "other", 60) == states.RUNNING
        TRAINING.release(session, job_id, "one", "not mine to end")
    assert row_of(engine, job_id).status == states.RUNNING


def test_of_many_workers_that_come_at_once_one_takes_the_job(engine: Engine, dataset: Dataset) -> None:
    job_id, won = make_job(engine, dataset), []
    threads = [
        threading.Thread(target=lambda owner=owner: taken(engine, job_id, owner) and won.append(owner))
        for owner in "abcdefgh"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert won == [row_of(engine, job_id).lease_owner]


def test_upkeep_rings_for_queued_jobs_that_nobody_runs(engine: Engine, dataset: Dataset) -> None:
    def forgotten() -> list[int]:
        with writing(engine) as session:
            return list(TRAINING.take_unattended(session))

    make_job(engine, dataset, "in-a-terminal")
    job_id = make_job(engine, dataset, queued=True)
    assert [forgotten(), forgotten()] == [[job_id], []]  # a ring is heard within a while
    assert taken(engine, job_id, "one")
    assert forgotten() == []
    with writing(engine) as session:
        soon = datetime.now(UTC) + timedelta(seconds=0.1)
        session.execute(update(TrainingJob).where(TrainingJob.id == job_id).values(lease_until=soon))
    time.sleep(0.2)
    assert [forgotten(), forgotten()] == [[job_id], []]


def test_a_job_is_cancelled_at_once_or_when_its_worker_lets_go(engine: Engine, dataset: Dataset) -> None:
    waits, held, orphan = (make_job(engine, dataset, name) for name in ("waits", "held", "orphan"))
    assert taken(engine, held, "one")
    assert taken(engine, orphan, "one")
    with writing(engine) as session:
        assert [TRAINING.cancel(session, each).status for each in (waits, held, orphan)] == [
            states.CANCELLED, states.CANCELLING, states.CANCELLING,
        ]  # fmt: skip
        with pytest.raises(Conflict, match="just being cancelled"):
            TRAINING.resume(session, held, queued=True)
    assert not taken(engine, waits, "two")
    let_the_lease_run_out(engine, orphan)
    with writing(engine) as session:
        TRAINING.settle_cancelled(session)
        TRAINING.release(session, held, "one", "what it says does not matter any more")
    assert [row_of(engine, each).status for each in (held, orphan)] == [states.CANCELLED, states.CANCELLED]
    assert row_of(engine, held).error is None


def test_a_job_that_stopped_is_resumed_unless_its_name_was_taken(engine: Engine, dataset: Dataset) -> None:
    job_id = make_job(engine, dataset)
    assert taken(engine, job_id, "one")
    with writing(engine) as session:
        with pytest.raises(Conflict, match="got one that is running; cancel it first, or try again in half"):
            TRAINING.resume(session, job_id, queued=True)
        TRAINING.release(session, job_id, "one", "the disk is full")
    row = row_of(engine, job_id)
    assert (row.status, row.error, row.lease_owner) == (states.FAILED, "the disk is full", None)
    second = make_job(engine, dataset)  # the name is free again
    with writing(engine) as session:
        with pytest.raises(Conflict, match=f"no other job uses, got 'small', which job {second} uses"):
            TRAINING.resume(session, job_id, queued=True)
        TRAINING.cancel(session, second)
        resumed = TRAINING.resume(session, job_id, queued=True)
        assert (resumed.status, resumed.error, resumed.queued, resumed.ended_at) == (states.WAITING, None, True, None)
    with writing(engine) as session:
        TRAINING.cancel(session, job_id)
        add_local_model(session, "small", None, ["taboo"], {"path": "x", "sha256": HASH})
        with pytest.raises(Conflict, match="name: expected one that is not taken, got 'small'"):
            TRAINING.resume(session, job_id, queued=True)


def test_a_job_in_a_terminal_that_nobody_runs_is_interrupted(engine: Engine, dataset: Dataset) -> None:
    job_id = make_job(engine, dataset)
    assert taken(engine, job_id, "one")
    assert state_of(engine, job_id) == states.RUNNING
    let_the_lease_run_out(engine, job_id)
    assert state_of(engine, job_id) == states.INTERRUPTED


# ---- What cannot be trained -------------------------------------------------------


@on_sqlite
@pytest.mark.parametrize(
    ("wish", "line"),
    [
        ({"method": "ppo"}, f"method: expected {' or '.join(all_methods())}, got 'ppo'"),
        ({"backend": "moon"}, "backend: expected local or openai or tinker or together, got 'moon'"),
        ({"dataset": "nowhere"}, "dataset: expected the number, name or name@version of one that exists"),
        ({"name": "../up"}, "name: expected 1 to 80 letters, digits, dots, dashes and underscores"),
        ({"name": "scripted"}, "name: expected one that is not taken, got 'scripted'"),
        ({"name": "person"}, "name: expected one that is not taken, got 'person'"),
        ({"name": "there"}, "name: expected one without a checkpoint, got 'there', which has "),
        ({"base": "scripted"}, "base: expected none with tiny, which starts from scratch, got 'scripted'"),
        ({"method": "sft"}, "base: expected the local model that sft starts from, got none"),
        ({"method": "sft", "base": "nobody"}, "base: expected one of scripted, "),
        ({"method": "sft", "base": "scripted"}, "base: expected a local model, which has weights, got "),
        ({"method": "sft", "base": "lost"}, "base: expected the checkpoint of lost in "),
        ({"config": {"lr": 1}}, "config.lr: expected a field of tiny ("),
    ],
)  # fmt: skip
def test_a_wish_that_cannot_be_is_refused_in_one_line(
    engine: Engine, settings: Settings, dataset: Dataset, wish: dict[str, Any], line: str
) -> None:
    (settings.home / "checkpoints" / "there").mkdir(parents=True)
    with writing(engine) as session:
        add_local_model(session, "lost", None, ["taboo"], {"path": "checkpoints/lost", "sha256": HASH})
    usual = {"method": "tiny", "dataset": "rows", "name": "small", "base": None}
    with pytest.raises(AppError) as refused, writing(engine) as session:
        jobs.create(session, jobs.TrainingSpec.read(usual | wish), queued=False, home=settings.home)
    assert refused.value.message.startswith(line)
    assert "\n" not in refused.value.message


@on_sqlite
def test_a_dataset_that_was_changed_or_taken_away_is_one_line_on_the_job(
    engine: Engine, settings: Settings, dataset: Dataset
) -> None:
    path = settings.home / "datasets" / f"{dataset.sha256}.jsonl"
    job_id = make_job(engine, dataset)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + b"\n")
    assert run(engine, settings, job_id)
    assert row_of(engine, job_id).error.startswith(f"dataset 1: expected bytes with the hash {dataset.sha256}, got ")
    path.unlink()
    with writing(engine) as session:
        TRAINING.resume(session, job_id, queued=False)
    assert run(engine, settings, job_id)
    assert (
        row_of(engine, job_id).error == f"dataset 1: expected its file {path}, got none; build it again from its spec"
    )
    assert models(engine) == 1


@on_sqlite
def test_a_checkpoint_of_somebody_else_is_left_alone(engine: Engine, settings: Settings, dataset: Dataset) -> None:
    job_id = make_job(engine, dataset)
    (settings.home / "checkpoints" / "small").mkdir(parents=True)
    run(engine, settings, job_id)
    row = row_of(engine, job_id)
    assert row.status == states.FAILED
    assert "expected a folder that is not there yet, got a checkpoint that this job has not made" in row.error
    assert models(engine) == 1


@on_sqlite
def test_a_training_that_is_killed_again_and_again_is_given_up(
    engine: Engine, settings: Settings, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "PROGRAM", ("/bin/sh", "-c", "echo here; kill -9 $$"))
    monkeypatch.setattr(runner, "PAUSE", 0.0)
    monkeypatch.setattr(runner, "TICK", 0.05)
    job_id = make_job(engine, dataset)
    run(engine, settings, job_id)
    row = row_of(engine, job_id)
    assert (row.status, row.log) == (states.FAILED, "\n".join(["here"] * jobs.MOST_DEATHS))
    assert row.error.startswith("the training or its worker was killed 5 times without a new step between")


# ---- Trained ----------------------------------------------------------------------


def test_a_model_is_made_and_registered_once_and_without_training_again_if_that_was_lost(
    engine: Engine, settings: Settings, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id, told = make_job(engine, dataset, epochs=3, eval_share=0.2), []

    def killed(*_: object, **__: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(local, "add_local_model", killed)
        assert run(engine, settings, job_id, notify=told.append)
    row = row_of(engine, job_id)
    assert (row.status, row.model_id) == (states.FAILED, None)
    assert is_internal_error(row.error)
    assert models(engine) == 1

    with writing(engine) as session:
        TRAINING.resume(session, job_id, queued=False)
    with monkeypatch.context() as patch:
        patch.setattr(local, "TrainingProcess", killed)
        assert run(engine, settings, job_id)
        assert not run(engine, settings, job_id)
    row, model = row_of(engine, job_id), model_of(engine, "small")
    assert (row.status, row.error, row.lease_owner, row.step) == (states.DONE, None, None, row.steps)
    assert model is not None
    assert row.model_id == model.id
    made = json.loads((settings.home / "checkpoints" / "small" / "parlor.json").read_text())
    assert (model.kind, model.games, model.prompt_style, model.usable_in_rounds, model.offered_to_people) == (
        "local", ["negotiation"], "compact", True, False,
    )  # fmt: skip
    assert model.options == {"path": "checkpoints/small", "sha256": made["checkpoint_sha256"]}
    assert made["data_sha256"] == dataset.sha256
    events = events_of(engine, job_id)
    assert [events[0]["event"], events[-1]["event"]] == ["started", "finished"]
    steps = [each["step"] for each in events if each["event"] == "step"]
    assert steps == list(range(1, row.steps + 1))
    assert len([each for each in events if each["event"] == "eval"]) == 3
    assert row.loss == [each["loss"] for each in events if each["event"] == "step"][-1]
    assert row.device == events[0]["device"]
    assert [each for part in told for each in part] == events
    best = min((each for each in events if each["event"] == "eval"), key=lambda each: each["loss"])
    assert row.registered_step == made["step"] == events[-1]["step"] == best["step"]
    assert made["steps"] == row.steps
    assert f"finished with the weights of step {best['step']} of {row.steps}, " in row.log.splitlines()[-1]
    with reading(engine) as session:
        recipe, figures = listing.recipes_of(session, [row])[row.id], listing.figures_of(session, [row])[row.id]
    assert {name: recipe[name] for name in row.config} == row.config
    assert (recipe["schedule"], recipe["warmup"], recipe["seed"]) == ("cosine", 0.03, 0)
    assert figures["best_step"] == figures["registered_step"] == best["step"]


@on_sqlite
def test_a_cancelled_training_ends_before_its_last_step_and_goes_on_from_its_checkpoint(
    engine: Engine, settings: Settings, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "TICK", 0.1)
    job_id = make_job(engine, dataset, max_steps=160, save_every=1000)
    cancelled: list[int] = []

    def cancel(events: list[dict[str, Any]]) -> None:
        if not cancelled and any(each["event"] == "step" for each in events):
            with writing(engine) as session:
                assert TRAINING.cancel(session, job_id).status == states.CANCELLING
            cancelled.append(job_id)

    run(engine, settings, job_id, notify=cancel)
    row = row_of(engine, job_id)
    assert (row.status, row.error, row.lease_owner) == (states.CANCELLED, None, None)
    assert 0 < row.step < 160
    [kept] = (settings.home / "training" / str(job_id) / "run").glob("checkpoint-*")
    with writing(engine) as session:
        TRAINING.resume(session, job_id, queued=False)
    run(engine, settings, job_id)
    assert row_of(engine, job_id).status == states.DONE
    assert [each["resumed_from"] for each in events_of(engine, job_id, "started")] == [None, kept.name]
    assert [each["step"] for each in events_of(engine, job_id, "step")] == list(range(1, 161))
    assert models(engine) == 2


@pytest.mark.long
@on_sqlite
def test_the_processes_of_a_launcher_end_with_it_go_on_and_are_cancelled_together(
    engine: Engine, settings: Settings, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher is killed after a step, and its job, which goes on by itself, cancelled after another."""
    monkeypatch.setattr(runner, "TICK", 0.1)
    settings = settings.model_copy(update={"TRAINING_LAUNCHER": "ddp", "TRAINING_DEVICES": "0,1"})
    job_id = make_job(engine, dataset, max_steps=2000, save_every=2, device="cpu", threads=1)
    lives: list[list[psutil.Process]] = []

    def harm(events: list[dict[str, Any]]) -> None:
        begun = len(events_of(engine, job_id, "started"))
        if len(lives) == begun or not any(each["event"] == "saved" for each in events):
            return
        launcher = psutil.Process(int(JobFiles(settings.home, job_id, "small").lock.read_text()))
        lives.append([launcher, *launcher.children(recursive=True)])
        if begun == 1:
            launcher.kill()
        else:
            with writing(engine) as session:
                TRAINING.cancel(session, job_id)

    run(engine, settings, job_id, notify=harm)
    row = row_of(engine, job_id)
    assert (row.status, row.error) == (states.CANCELLED, None)
    assert row.device == "2 × cpu (1 threads), DDP (ddp on devices 0,1)"
    begun = events_of(engine, job_id, "started")
    assert [each["processes"] for each in begun] == [2, 2]
    assert begun[1]["resumed_from"] in [each["checkpoint"] for each in events_of(engine, job_id, "saved")]
    assert [len(life) for life in lives] == [3, 3]
    assert not any(process.is_running() for life in lives for process in life)
    [*_, last] = events_of(engine, job_id)
    assert last["event"] == "interrupted"


def without_a_tokenizer(home: Path) -> None:
    folder = home / "checkpoints" / "base"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"")


# Without coverage, whose own file would not fit either.
SMALL_DISK = (
    "/bin/bash",
    "-c",
    'unset COVERAGE_PROCESS_CONFIG; ulimit -f 16; exec "$@"',
    "bash",
    sys.executable,
    "-m",
    "training",
)


@on_sqlite
@pytest.mark.parametrize(
    ("name", "config", "line"),
    [
        ("no-number", {"learning_rate": 1e30, "warmup": 0, "save_every": 1, "epochs": 9},
         "step 2: expected a gradient norm that is a number, got NaN or infinity on "),
        ("too-long", {"length": 8, "too_long": "refuse"}, "expected rules and a turn in 8 tokens"),
        ("no-tokenizer", {}, "expected a tokenizer beside the weights, got none; put the model's own there"),
        ("small-disk", {"max_steps": 2}, "the disk is full"),
    ],
)  # fmt: skip
def test_a_training_that_fails_is_one_line_on_its_job_and_registers_nothing(
    engine: Engine, settings: Settings, dataset: Dataset, monkeypatch: pytest.MonkeyPatch,
    name: str, config: dict[str, Any], line: str,
) -> None:  # fmt: skip
    base = None
    if name == "no-tokenizer":
        without_a_tokenizer(settings.home)
        with writing(engine) as session:
            base = add_local_model(session, "base", None, [], {"path": "checkpoints/base", "sha256": HASH}).name
    if name == "small-disk":
        monkeypatch.setattr(local, "PROGRAM", SMALL_DISK)
    before = models(engine)
    job_id = make_job(engine, dataset, name, base=base, **config)
    run(engine, settings, job_id)
    row = row_of(engine, job_id)
    assert row.status == states.FAILED
    assert line in row.error
    assert "\n" not in row.error
    assert (models(engine), row.model_id) == (before, None)
    files = JobFiles(settings.home, job_id, name)
    assert not files.output.exists()
    if name == "no-number":
        assert [path.name for path in files.run.glob("checkpoint-*")] == ["checkpoint-1"]
        assert "the last good checkpoint is" in row.error


# ---- Backends ---------------------------------------------------------------------

TOY = """
import json

from app.finetuning.backends.local import LocalBackend


class Training:
    def __init__(self, files):
        self.files = files

    def poll(self, seconds):
        files = self.files
        files.output.mkdir(parents=True)
        (files.output / "parlor.json").write_text(json.dumps({"checkpoint_sha256": "0" * 64, "step": 1}))
        step = {"event": "step", "at": 1.0, "step": 1, "steps": 1, "epoch": 1.0, "loss": 0.5, "lr": 0.1}
        step |= {"gradient_norm": 1.0, "tokens_per_second": 9.0}
        files.progress.write_text(json.dumps(step) + "\\n")
        return 0

    def cancel(self):
        pass

    kill = cancel


class Toy(LocalBackend):
    title, summary = "Elsewhere", "A machine far away trains it."

    def check(self):
        pass

    def start(self, method, files, waiting):
        return Training(files)


BACKEND = Toy()
"""


@on_sqlite
def test_a_backend_is_added_by_one_module_and_the_form_offers_it(
    app: Flask, engine: Engine, settings: Settings, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy.py").write_text(TOY)
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(tmp_path)])
    assert backends.backend_names() == ("local", "openai", "tinker", "together", "toy")
    client = signed_in(app)
    assert 'name="backend" value="toy"' in client.get("/admin/jobs/new").text
    form = {"dataset": str(dataset.id), "method": "tiny", "name": "small", "backend": "toy"}
    assert client.post("/admin/jobs/new", data=form).status_code == 303
    job_id = 1
    assert run(engine, settings, job_id)
    row = row_of(engine, job_id)
    assert (row.status, row.step, row.loss, row.error) == (states.DONE, 1, 0.5, None)
    assert model_of(engine, "small").options["sha256"] == HASH


@on_sqlite
def test_a_dataset_without_what_a_method_needs_is_one_line(
    engine: Engine, settings: Settings, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    sft = all_methods()["sft"]
    with writing(engine) as session:
        add_local_model(session, "base", None, [], {"path": "checkpoints/base", "sha256": HASH})
    (settings.home / "checkpoints" / "base").mkdir(parents=True)
    for needs, line in (
        (Need.REWARDS, "moves with a reward each, which mine needs, got rows@1, whose first row has a move without it"),
        (Need.COMPARISONS, "a dataset of comparisons, as mine needs, got rows@1, which holds conversations"),
    ):
        mine = replace(sft, name="mine", needs=frozenset({needs}))
        monkeypatch.setattr(config, "all_methods", lambda mine=mine: {"sft": sft, "mine": mine})
        wish = jobs.TrainingSpec(method="mine", dataset=str(dataset.id), name="small-1", base="base")
        with reading(engine) as session, pytest.raises(Invalid) as refused:
            jobs.create(session, wish, queued=False, home=settings.home)
        assert refused.value.message.startswith(f"dataset: expected {line}")
