"""`flask society run|list|show|cancel|resume`, with scripted members."""

import json
import re
from pathlib import Path

from click.testing import Result
from flask import Flask
from sqlalchemy import Engine

from tests.societies import add_chat_models, row_of

SMALL = ("--config", "size=2", "iterations=2", "critics=2", "first_memories=2", "setting=mixed_half_half")
RUN = ("society", "run", "--agents", "scripted-agent", "--observers", "scripted-observer", *SMALL)


def flask(app: Flask, *arguments: str) -> Result:
    return app.test_cli_runner().invoke(args=list(arguments))


def test_a_society_of_scripted_members_is_run_and_shown_with_its_ratings(app: Flask) -> None:
    assert flask(app, "society", "list").stdout.startswith("No societies yet: flask society run ")
    done = flask(app, *RUN, "--seed", "7", "--name", "mine")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "Society 1 is done.")
    assert re.search(r"^mine +1  done +8/8 ", flask(app, "society", "list").stdout, re.MULTILINE)
    shown = flask(app, "society", "show", "1").stdout
    assert re.search(r"^agents +scripted-agent \(share 1\)$", shown, re.MULTILINE)
    assert [line.split()[:2] for line in shown.splitlines()[-3:]] == [
        ["iteration", "interactions"],
        ["0", "4"],
        ["1", "4"],
    ]
    told = json.loads(flask(app, "society", "show", "1", "--json").stdout)
    assert (told["config"]["seed"], told["calls"], told["done"]) == (7, 64, 8)
    assert told["drafts"] == 8
    assert 0 <= told["recalls"] <= 8
    assert all(1 <= each[name] <= 7 for each in told["means"] for name in ("alignment_before", "alignment_after"))
    again = flask(app, "society", "resume", "1")
    assert (again.exit_code, again.stderr) == (
        2,
        "Error: society 1: expected one with something left to do, got one that is done\n",
    )


def test_the_same_seed_gives_the_same_society_and_none_draws_one(app: Flask) -> None:
    for seed in (("--seed", "3"), ("--seed", "3"), (), ()):
        assert flask(app, *RUN, *seed).exit_code == 0
    told = [json.loads(flask(app, "society", "show", str(number), "--json").stdout) for number in (1, 2, 3, 4)]
    assert told[0]["means"] == told[1]["means"]
    assert told[2]["seed"] != told[3]["seed"]


def test_what_a_row_keeps_runs_the_same_society_once_more(app: Flask, engine: Engine, tmp_path: Path) -> None:
    assert flask(app, *RUN, "--seed", "3").exit_code == 0
    kept = row_of(engine, 1).spec
    assert kept is not None
    assert (kept["questions"], kept["config"]["size"], kept["seed"]) == ("shipped", 2, 3)
    (tmp_path / "again.json").write_text(json.dumps(kept))
    assert flask(app, "society", "run", "--spec", str(tmp_path / "again.json")).exit_code == 0
    told = [json.loads(flask(app, "society", "show", str(number), "--json").stdout) for number in (1, 2)]
    assert told[0]["means"] == told[1]["means"]
    assert row_of(engine, 2).spec == kept


def test_an_estimate_runs_nothing(app: Flask, engine: Engine) -> None:
    add_chat_models(engine, "http://127.0.0.1:9/v1", "paid", price_in=1, price_out=2)
    paid = ("society", "run", "--agents", "scripted-agent", "--observers", "paid", *SMALL, "--estimate")
    told = json.loads(flask(app, *paid, "--json").stdout)
    assert (told["interactions"], told["calls"], told["basis"]) == (8, 64, {"paid": 0})
    assert told["cost"] == (told["prompt_tokens"] + 2 * told["completion_tokens"]) / 1e6 > 0
    assert flask(app, *paid).stdout.endswith("\npaid: from typical figures, as it was never called in a society\n")
    assert json.loads(flask(app, "society", "list", "--json").stdout) == []


def test_a_queued_society_waits_and_can_be_cancelled_and_resumed(app: Flask) -> None:
    assert json.loads(flask(app, *RUN, "--queue", "--json").stdout) == {"society_id": 1, "queued": True}
    cancelled = flask(app, "society", "cancel", "1")
    assert cancelled.stdout == "Society 1 is cancelled, 0 of 8 interactions over; `flask society resume 1` goes on.\n"
    assert flask(app, "society", "resume", "1").stdout.startswith("Society 1 is done.\n")


def test_what_cannot_be_is_refused_with_exit_code_2_before_anything_is_written(app: Flask, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.touch()
    for more, line in (
        (("--questions", str(empty)), f"{empty}: expected at least one question, got an empty file"),
        (("--seed", "x"), "seed: expected a whole number from 0 to 4294967295, got 'x'"),
        (("--config", "dropout=1"), "config.dropout: expected a number from 0 to below 1, got 1"),
        (("--agents", "scripted-agent"), "agents: expected each model once, got 'scripted-agent'"),
    ):
        refused = flask(app, *RUN, *more)
        assert (refused.exit_code, refused.stderr) == (2, f"Error: {line}\n")
    assert json.loads(flask(app, "society", "list", "--json").stdout) == []
