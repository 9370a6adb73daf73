"""Alignments of a tiny model: every job once, whatever is killed, and a model that answers in the end."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, func, select

from app.alignments import steps
from app.alignments.job import ALIGNMENT
from app.cli.jobs import run_job_here
from app.core.extensions import reading, writing
from app.finetuning.job import TRAINING
from app.jobs import states
from app.jobs.context import JobContext
from app.models import Alignment, Assessment, GenerationRow, LanguageModel, Society, TrainingJob
from app.registry import CHAT_USE, add_local_model
from tests.checkpoints import word_model
from tests.experimenter import signed_in
from tests.integration.test_cli_society import flask
from tests.stack import ROOT, wait_until

QUESTIONS = [f"What can {who} do about {what}?" for who in ("I", "you", "us") for what in ("a cat", "the hat", "a dog")]
WORDS = ("on", "no", "as")
DEMONSTRATIONS = [
    {"instruction": f"What is {word}?", "input": "", "output": f"{word} is a word for you."} for word in WORDS
]
PREFERRED = [
    {
        "chosen": f"\n\nHuman: What is {word}?\n\nAssistant: {word} is a word for you.",
        "rejected": f"\n\nHuman: What is {word}?\n\nAssistant: no.",
    }
    for word in WORDS
]
QUICK = ("max_steps=2", "threads=1")


@pytest.fixture
def base(home: Path, engine: Engine) -> str:
    sha256 = word_model(home / "checkpoints" / "base")
    with writing(engine) as session:
        options = {"path": "checkpoints/base", "sha256": sha256}
        add_local_model(session, "base", None, ["negotiation"], options, prompt_style="compact")
    return "base"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "questions.txt").write_text("\n".join(QUESTIONS))
    (tmp_path / "alpaca.json").write_text(json.dumps(DEMONSTRATIONS))
    (tmp_path / "hh.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in PREFERRED))
    return tmp_path


def line(files: Path, *more: str, iterations: int = 2) -> list[str]:
    """The command, without demonstrations."""
    world = ("size=2", f"iterations={iterations}", "critics=2", "first_memories=2", "max_tokens=12", "setting=all_bad")
    return [
        "alignment", "run", "--base", "base", "--agents", "scripted-agent=3", "--observers", "scripted-observer",
        "--questions", str(files / "questions.txt"), "--config", *world, "--sft", *QUICK,
        "--train", *QUICK, "batch=4", "max_length=128", "--max-tokens", "12", "--seed", "3", "--name", "mine", *more,
    ]  # fmt: skip


def told(app: Flask, *arguments: str) -> Any:
    return json.loads(flask(app, *arguments, "--json").stdout)


def test_a_chain_ends_with_a_model_that_raters_have_compared_and_that_answers(
    app: Flask, engine: Engine, base: str, files: Path
) -> None:
    done = flask(app, *line(files, "--import", str(files / "alpaca.json"), "--format", "alpaca"))
    assert done.exit_code == 0, done.output
    assert "Alignment 1 is done." in done.stdout
    facts = told(app, "alignment", "show", "1")
    assert [(each["part"], each["status"], each["made"]) for each in facts["jobs"]] == [
        ("demonstrations", "done", "mine-sft"),
        ("society", "done", None),
        ("training", "done", "mine-aligned"),
        ("society again", "done", None),
        ("assessment", "done", None),
    ]
    with reading(engine) as session:
        learner = session.scalars(select(LanguageModel).where(LanguageModel.name == "mine-sft")).one()
        aligned = session.scalars(select(LanguageModel).where(LanguageModel.name == "mine-aligned")).one()
        assert CHAT_USE in aligned.uses
        first, second = session.scalars(select(Society).order_by(Society.id))
        assert [each["model"] for each in first.agents] == ["mine-sft", "scripted-agent"]
        assert [each["model"] for each in second.agents] == ["mine-aligned", "scripted-agent"]
        assert first.config == second.config
        assert not set(first.questions).intersection(session.scalars(select(Assessment.questions)).one())
        training = session.scalars(select(TrainingJob).where(TrainingJob.name == "mine-aligned")).one()
        assert (training.base_id, training.dataset_id) == (learner.id, facts["dataset_id"])
        assert training.config.get("sft_data") == facts["realignment_id"]
        assert (training.config["margin"], training.config["ratio"], training.config["epochs"]) == (10, 0.2, 7)
    client = signed_in(app)
    for path, said in (
        ("alignments", "mine"),
        ("alignments/1", "mine"),
        ("assessments/1", "scripted-observer"),
    ):
        page = client.get(f"/admin/{path}")
        assert page.status_code == 200
        assert said in page.text
    answered = flask(app, "model", "ask", "mine-aligned", QUESTIONS[0])
    assert answered.exit_code == 0
    assert re.search(r"^alignment +scripted-observer +\d", flask(app, "assessment", "show", "1").stdout, re.MULTILINE)


def test_rated_demonstrations_are_learnt_as_their_best_responses(
    app: Flask, engine: Engine, home: Path, base: str, files: Path
) -> None:
    given = ("--import", str(files / "hh.jsonl"), "--format", "hh", "--queue")
    assert flask(app, *line(files, *given)).exit_code == 0
    flask(app, "alignment", "cancel", "1")
    with writing(engine) as session:
        ALIGNMENT.resume(session, 1, queued=False)
    part = steps.take_steps(JobContext(engine, app.config["SETTINGS"], "test"), 1)
    assert part is not None
    assert part.kind is TRAINING
    facts = told(app, "alignment", "show", "1")
    exported = flask(app, "dataset", "export", str(facts["demonstrations_id"])).stdout
    learnt = [json.loads(row)["messages"][-1]["content"] for row in exported.splitlines()]
    assert learnt == [f"{word} is a word for you." for word in WORDS]
    # Cancelling reaches the training that the alignment waits for, and so does resuming.
    flask(app, "alignment", "cancel", "1")
    assert told(app, "training", "show", str(part.number))["status"] == states.CANCELLED
    with writing(engine) as session:
        ALIGNMENT.resume(session, 1, queued=True)
    assert told(app, "training", "show", str(part.number))["status"] == states.WAITING


def test_a_chain_that_was_killed_goes_on_with_every_job_once_whoever_takes_the_next_step(
    app: Flask, engine: Engine, home: Path, base: str, files: Path
) -> None:
    # So small a share gives the base no agent, and the process that is killed loads no torch.
    started = flask(app, *line(files, "--share", "0.01", "--queue", iterations=30))
    assert started.exit_code == 0, started.output
    url = engine.url.render_as_string(hide_password=False)
    env = {**os.environ, "PARLOR_HOME": str(home), "DATABASE_URL": url, "REDIS_URL": "", "ROUND_LEASE": "1.5",
           "PYTHONPATH": str(ROOT), "FLASK_APP": "wsgi"}  # fmt: skip
    command = [sys.executable, "-m", "flask", "alignment", "resume", "1"]
    killed = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: _made(engine) > 4, "some interactions of the first society")
    killed.kill()
    killed.wait()
    wait_until(lambda: told(app, "alignment", "show", "1")["status"] == states.INTERRUPTED, "the end of its lease")
    assert 4 < _made(engine) < 120
    with writing(engine) as session:
        ALIGNMENT.resume(session, 1, queued=False)
    met = []
    while (part := steps.take_steps(JobContext(engine, app.config["SETTINGS"], f"owner {len(met)}"), 1)) is not None:
        assert part == steps.take_steps(JobContext(engine, app.config["SETTINGS"], "somebody else"), 1)
        met.append(part.kind.name)
        run_job_here(part.kind, part.number)
    assert met == ["society", "training", "society", "assessment"]
    with reading(engine) as session:
        assert session.get_one(Alignment, 1).status == states.DONE
        assert session.scalars(select(TrainingJob.name)).all() == ["mine-aligned"]
        assert [row.interactions for row in session.scalars(select(Society))] == [120, 120]
        called = select(GenerationRow.interaction_id, GenerationRow.answer_id, GenerationRow.call)
        calls = session.execute(called).all()
        assert len(set(calls)) == len(calls) == 2 * 120 * 8 + 2 * 2 * 3


def _made(engine: Engine) -> int:
    with reading(engine) as session:
        return session.scalar(select(func.coalesce(func.sum(Society.interactions), 0))) or 0


def test_what_cannot_be_is_refused_before_anything_is_written(app: Flask, base: str, files: Path) -> None:
    held = files / "held.txt"
    held.write_text(QUESTIONS[0])
    for more, said in (
        (("--train", "margins=3"), "margins: expected a field of stable-alignment"),
        (("--observers", "scripted"), "observers: expected a model that answers chats"),
        (("--raters", "nobody"), "raters: expected one of"),
        (("--demonstrations", "7"), "demonstrations: expected"),
        (
            ("--held-out", str(held)),
            "--held-out: expected questions that the societies are not asked, got 'What can I do about a cat?'",
        ),
        (("--import", "x.json"), "--import: expected --import FILE and --format beside each other"),
    ):
        refused = flask(app, *line(files, *more))
        assert refused.exit_code == 2, more
        assert said in refused.stderr
    assert told(app, "alignment", "list") == []
