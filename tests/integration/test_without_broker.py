"""A Parlor on a machine without a Redis server: workers and pages look into the database."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from flask import Flask

from app.core.config import ROOT
from tests.participant import Participant
from tests.shell import Shell
from tests.stack import PATIENCE, Stack, running_parlor, wait_until
from tests.tables import negotiation


@pytest.fixture(scope="module")
def parlor() -> Iterator[Stack]:
    with running_parlor(REDIS_URL="none", SMALL_MODELS="true", API_KEY_OF_NOBODY="x") as running:
        yield running


def test_it_says_so_in_the_greeting_and_to_the_doctor(parlor: Stack, shell: Shell) -> None:
    assert "Without a Redis server: workers look into the database" in parlor.output()
    assert not (parlor.home / "run" / "broker.pid").exists()

    def found() -> dict[str, list[str]]:
        # As in another terminal, where nobody has set REDIS_URL.
        done = shell.flask(["doctor", "--json"], env={**parlor.env, "REDIS_URL": ""})
        checks: dict[str, list[str]] = {}
        for each in json.loads(done.stdout)["checks"]:
            checks.setdefault(each["check"], []).append(each["state"])
        return checks

    wait_until(lambda: found()["workers"] == ["ok"] * 3, "three workers")
    assert found()["broker"] == ["ok"]


def test_a_match_against_a_model_is_played_and_the_page_sees_it_move(parlor: Stack) -> None:
    with Participant(negotiation(parlor, opponent="House partner 2")) as person:
        assert person.move("[message] Hello.")["ok"]
        wait_until(lambda: person.view["ply"] >= 2, "the model's answer")


def test_a_queued_round_and_a_queued_training_are_done(parlor: Stack, shell: Shell) -> None:
    env = {**parlor.env, "REDIS_URL": ""}
    line = ["round", "run", "negotiation", "--models", "scripted", "scripted", "--matches", "20", "--seed", "1"]
    assert shell.flask([*line, "--queue"], env=env).exit_code == 0

    def is_done(kind: str) -> bool:
        listed = json.loads(shell.flask([kind, "list", "--json"], env=env).stdout)
        return [each["status"] for each in listed] == ["done"]

    wait_until(lambda: is_done("round"), "the end of the round")
    built = shell.flask(["dataset", "build", "--round", "1", "--style", "compact"], env=env)
    assert built.exit_code == 0, built
    train = ["train", "tiny", "--dataset", "1", "--name", "small", "--config", "max_steps=1", "--queue"]
    done = shell.flask(train, env=env)
    assert done.exit_code == 0, done
    wait_until(lambda: is_done("training"), "the end of the training")


def test_a_worker_that_is_a_job_of_a_cluster_does_what_waits_and_ends_by_itself(app: Flask) -> None:
    flask = app.test_cli_runner()
    line = [
        "round",
        "run",
        "negotiation",
        "--models",
        "scripted",
        "scripted",
        "--matches",
        "4",
        "--seed",
        "1",
        "--queue",
    ]
    assert flask.invoke(args=line).exit_code == 0
    env = {**os.environ, **{name: str(value) for name, value in app.config["SETTINGS"]}, "REDIS_URL": "none"}
    worker = [sys.executable, "-m", "workers.polling", "batch", "2", "--until-idle", "1"]
    done = subprocess.run(worker, cwd=ROOT, env=env, capture_output=True, encoding="utf-8", timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(flask.invoke(args=["round", "show", "1", "--json"]).stdout)["status"] == "done"
