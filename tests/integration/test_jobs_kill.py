"""`kill -9` of a training, of its worker, and a worker that is asked to stop: the job goes on, and makes one model."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from app.core.config import load_settings
from app.core.extensions import reading
from app.finetuning.job import TRAINING
from app.jobs import states
from tests.jobs import SMALL, events_of, make_dataset, make_job, model_of, models, row_of
from tests.shell import Shell
from tests.stack import PATIENCE, ROOT, Stack, alive, another_worker, put_to_sleep, running_parlor, wait_until
from tests.tables import database, settings_of

ENV = {"TRAIN_LEASE": "1.5", "UPKEEP_EVERY": "0.4", "WORKER_QUEUES": "train"}
FLASK = [sys.executable, "-m", "flask", "--app", "wsgi"]


@pytest.fixture
def running() -> Iterator[Stack]:
    with running_parlor(**ENV) as parlor:
        yield parlor


def training_of(home: Path, job_id: int) -> int:
    """The process number of a job's training."""
    return int((home / "training" / str(job_id) / "lock").read_text())


def wait_for_step(engine: Engine, job_id: int, more: int, life: int) -> None:
    """Wait until that life of the training has told of so many steps."""

    def there() -> bool:
        told = [each["event"] for each in events_of(engine, job_id)]
        begun = [at for at, kind in enumerate(told) if kind == "started"]
        return len(begun) == life and told[begun[-1] :].count("step") >= more

    wait_until(there, f"{more} steps of life {life}")


@pytest.mark.long
def test_a_job_outlives_its_training_and_its_workers(running: Stack) -> None:
    with database(running) as engine:
        dataset = make_dataset(engine, settings_of(running))
        job_id = make_job(engine, dataset, queued=True, max_steps=300, save_every=10, log_every=1)
        TRAINING.enqueue(settings_of(running).broker_url, job_id)
        wait_for_step(engine, job_id, 15, life=1)
        os.kill(training_of(running.home, job_id), signal.SIGKILL)
        wait_for_step(engine, job_id, 15, life=2)
        orphan = training_of(running.home, job_id)
        running.kill("train")
        wait_until(lambda: not alive(orphan), "the end of the training without a worker")
        wait_for_step(engine, job_id, 15, life=3)
        os.kill(running.pid("train"), signal.SIGTERM)
        wait_until(lambda: row_of(engine, job_id).status == states.DONE, "the end of the job")
        row, model = row_of(engine, job_id), model_of(engine, "small")
        assert (row.step, row.steps, row.error, row.model_id) == (300, 300, None, model.id if model else 0)
        assert models(engine) == 2
        steps = [each["step"] for each in events_of(engine, job_id, "step")]
        assert set(steps) == set(range(1, 301))
        assert all(later <= earlier + 1 for earlier, later in pairwise(steps))  # nothing was left out on the way
        places = [each["resumed_from"] for each in events_of(engine, job_id, "started")]
        assert places[0] is None
        assert len(places) == 4
        resumed = [int(place.removeprefix("checkpoint-")) for place in places[1:]]
        assert resumed == sorted(resumed)
        assert resumed[0] >= 10
        assert events_of(engine, job_id)[-1]["event"] == "finished"
    assert not alive(training_of(running.home, job_id))


@pytest.mark.long
def test_a_worker_that_slept_while_another_took_its_training_writes_nothing(running: Stack) -> None:
    with database(running) as engine, another_worker(running, "train") as second:
        put_to_sleep(engine, second.pid)  # so that it is the other one who begins
        job_id = make_job(engine, make_dataset(engine, settings_of(running)), queued=True, max_steps=150, log_every=1)
        TRAINING.enqueue(settings_of(running).broker_url, job_id)
        wait_for_step(engine, job_id, 5, life=1)
        sleeper, its = running.pid("train"), row_of(engine, job_id).lease_owner
        put_to_sleep(engine, sleeper)
        os.killpg(second.pid, signal.SIGCONT)
        wait_until(lambda: row_of(engine, job_id).lease_owner not in (None, its), "the other worker at the job")
        os.killpg(sleeper, signal.SIGCONT)
        wait_until(lambda: row_of(engine, job_id).status == states.DONE, "the end of the job")
        assert (row_of(engine, job_id).step, models(engine)) == (150, 2)
        told = [each["event"] for each in events_of(engine, job_id)]
        assert (told[0], told[-1], told.count("finished")) == ("started", "finished", 1)
        steps = [each["step"] for each in events_of(engine, job_id, "step")]
        assert set(steps) == set(range(1, 151))
        assert all(later <= earlier + 1 for earlier, later in pairwise(steps))  # from a checkpoint on, if it was ended


@pytest.mark.long
def test_ctrl_c_leaves_a_job_that_can_be_resumed_and_its_model_can_be_trained_on(home: Path, shell: Shell) -> None:
    environment = {"PARLOR_HOME": str(home), **ENV}
    flask = lambda *line: shell.flask(line, env=environment)  # noqa: E731
    assert flask("job", "list").stdout.startswith("No jobs yet: flask train ")  # and makes the database
    engine = create_engine(f"sqlite:///{home / 'parlor.db'}")
    make_dataset(engine, load_settings({"PARLOR_HOME": home}))
    config = [f"{name}={value}" for name, value in SMALL.items()]
    fields = [*config, "max_steps=150", "save_every=25"]
    train = ["train", "tiny", "--dataset", "rows", "--name", "small", "--config", *fields]
    first = subprocess.Popen(
        [*FLASK, *train], cwd=ROOT, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: list(home.glob("training/1/run/tensorboard")), "a training that has begun")
    wait_until(lambda: row_of(engine, 1).step, "a step")
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=PATIENCE)
    assert first.returncode == 130
    assert said.strip().startswith("Interrupted job 1 at step ")
    assert said.strip().endswith("; `flask training resume 1` goes on from its last checkpoint.")
    with reading(engine) as session:
        assert TRAINING.state_of(session, TRAINING.get(session, 1)) == states.INTERRUPTED
    second = flask("job", "retry", "1", "--json")
    assert second.exit_code == 0, second.stderr
    told = json.loads(second.stdout)
    assert (told["status"], told["model"], told["step"]) == ("done", "small", 150)
    assert [each["resumed_from"] for each in events_of(engine, 1, "started")][1].startswith("checkpoint-")

    sft = ["train", "sft", "--dataset", "rows@1", "--base", "small", "--name", "second", "--config", "max_steps=2"]
    third = flask(*sft)
    assert third.exit_code == 0, third.stderr
    assert third.stdout.startswith("Job 2 made second, step 2 of 2, loss ")
    made, base = model_of(engine, "second"), model_of(engine, "small")
    assert made is not None
    assert base is not None
    assert (made.games, made.prompt_style) == (base.games, base.prompt_style)
    provenance = json.loads((home / "checkpoints" / "second" / "parlor.json").read_text())
    assert provenance["base_sha256"] == base.options["sha256"]
    engine.dispose()
