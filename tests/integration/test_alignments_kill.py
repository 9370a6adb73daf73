"""`kill -9` of a worker in both trainings of an alignment: it ends with the models of an undisturbed one."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select

from app.alignments.job import ALIGNMENT
from app.core.extensions import reading, writing
from app.jobs import states
from app.models import Alignment, LanguageModel, Society, TrainingJob
from app.registry import add_local_model
from tests.checkpoints import word_model
from tests.integration.test_alignments import DEMONSTRATIONS, QUESTIONS
from tests.jobs import events_of
from tests.societies import facts
from tests.stack import ROOT, Stack, alive, running_parlor, wait_until
from tests.tables import database

ENV = {"TRAIN_LEASE": "1.5", "ROUND_LEASE": "2", "UPKEEP_EVERY": "0.4", "WORKER_QUEUES": "batch,train"}
STEPS = ("max_steps=200", "save_every=10", "log_every=1", "threads=1", "batch=4", "max_length=128")
WORLD = ("size=2", "iterations=6", "critics=2", "first_memories=2", "max_tokens=12", "setting=all_bad")


@pytest.fixture
def running() -> Iterator[Stack]:
    with running_parlor(**ENV) as parlor:
        sha256 = word_model(parlor.home / "checkpoints" / "base")
        with database(parlor) as engine, writing(engine) as session:
            options = {"path": "checkpoints/base", "sha256": sha256}
            add_local_model(session, "base", None, ["negotiation"], options, prompt_style="compact")
        yield parlor


@pytest.mark.long
def test_a_worker_that_is_killed_in_both_trainings_changes_nothing_of_what_comes_of_them(
    running: Stack, tmp_path: Path
) -> None:
    with database(running) as engine:
        calm = begin(running, tmp_path, "calm")
        wait_until(lambda: alignment(engine, calm).status == states.DONE, "the end of the undisturbed one", seconds=300)
        killed = begin(running, tmp_path, "killed")
        for step in ("demonstrations", "training"):
            wait_until(lambda step=step: job_of(engine, killed, step), f"its {step}", seconds=120)  # type: ignore[misc]
            number = job_of(engine, killed, step)
            wait_until(lambda number=number: len(events_of(engine, number, "step")) > 15, "some steps", seconds=120)  # type: ignore[misc]
            orphan = int((running.home / "training" / str(number) / "lock").read_text())
            running.kill("train")
            wait_until(lambda orphan=orphan: not alive(orphan), "the end of the training without a worker")  # type: ignore[misc]
        wait_until(
            lambda: alignment(engine, killed).status == states.DONE, "the end of the one that was killed", seconds=300
        )
        assert alignment(engine, killed).error is None
        for step in ("demonstrations", "training"):
            begun = events_of(engine, job_of(engine, killed, step), "started")
            assert [each["resumed_from"] is None for each in begun] == [True, False], step
        one, other = (came_of(engine, number) for number in (calm, killed))
        assert one == other
        with reading(engine) as session:
            names = session.scalars(select(TrainingJob.name).order_by(TrainingJob.id)).all()
        assert names == ["calm-sft", "calm-aligned", "killed-sft", "killed-aligned"]  # each once


def begin(parlor: Stack, folder: Path, name: str) -> int:
    """Queue an alignment, whose agents are scripted: what they say does not depend on who is asked beside them."""
    (folder / "questions.txt").write_text("\n".join(QUESTIONS))
    (folder / "alpaca.json").write_text(json.dumps(DEMONSTRATIONS))
    line = [
        "alignment", "run", "--base", "base", "--agents", "scripted-agent=3", "--share", "0.01",
        "--observers", "scripted-observer", "--questions", folder / "questions.txt", "--config", *WORLD,
        "--sft", *STEPS, "--train", *STEPS, "--max-tokens", "12", "--temperature", "0", "--seed", "3", "--name", name,
        "--import", folder / "alpaca.json", "--format", "alpaca", "--queue", "--json",
    ]  # fmt: skip
    command = [sys.executable, "-m", "flask", "--app", "wsgi", *map(str, line)]
    done = subprocess.run(command, cwd=ROOT, env=parlor.env, capture_output=True, text=True, check=True)
    return int(json.loads(done.stdout)["alignment_id"])


def alignment(engine: Engine, number: int) -> Alignment:
    with reading(engine) as session:
        return ALIGNMENT.get(session, number)


def job_of(engine: Engine, number: int, step: str) -> int:
    """The number of the job of a step; 0 before that was begun."""
    with reading(engine) as session:
        return next((each.number or 0 for each in ALIGNMENT.steps_of(session, number) if each.name == step), 0)


def came_of(engine: Engine, number: int) -> dict[str, Any]:
    """The models of an alignment by their weights, what its societies said, and on which datasets it trained."""
    trainings = [job_of(engine, number, step) for step in ("demonstrations", "training")]
    lived = [job_of(engine, number, step) for step in ("society", "society_again")]
    with reading(engine) as session:
        jobs = [session.get_one(TrainingJob, job) for job in trainings]
        weights = [session.get_one(LanguageModel, job.model_id).options["sha256"] for job in jobs]
        societies = [session.get_one(Society, society) for society in lived]
        counts = [(each.status, each.interactions, each.calls, each.ratings) for each in societies]
    return {
        "weights": weights,
        "steps": [(job.status, job.step, job.steps) for job in jobs],
        "counts": counts,
        "societies": [facts(engine, each.id) for each in societies],
    }
