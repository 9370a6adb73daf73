"""`flask dataset`: building, listing and writing datasets, and what it says of those that cannot be."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from flask import Flask

from tests.stack import PATIENCE, ROOT, wait_until


def flask(app: Flask, *arguments: str) -> Result:
    return app.test_cli_runner().invoke(args=list(arguments))


def build(app: Flask, *arguments: str) -> dict[str, Any]:
    result = flask(app, "dataset", "build", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    told: dict[str, Any] = json.loads(result.stdout)
    return told


@pytest.fixture
def played(app: Flask) -> None:
    result = flask(app, "round", "run", "negotiation", "--models", "scripted", "--matches", "20", "--seed", "4")
    assert result.exit_code == 0, result.stderr


def test_a_dataset_is_built_listed_shown_and_written(app: Flask, played: None, tmp_path: Path) -> None:
    assert flask(app, "dataset", "list").stdout.startswith("No datasets yet: ")
    out = tmp_path / "rows.jsonl"
    told = build(app, "--round", "1", "--filter", "above_avg", "--rewards", "none", "--out", str(out))
    assert (told["dataset_id"], told["name"], told["version"]) == (1, "round 1 above_avg", 1)
    content = out.read_bytes()
    assert content == Path(told["file"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == told["sha256"]
    assert (content.count(b"\n"), len(content)) == (told["rows"], told["size"])
    assert 0 < told["rows"] < 40
    assert json.loads(flask(app, "dataset", "list", "--json").stdout)[0]["sha256"] == told["sha256"]
    shown = flask(app, "dataset", "show", "round 1 above_avg").stdout
    assert f"rows              {told['rows']}\n" in shown
    assert flask(app, "dataset", "export", "1").stdout_bytes == content
    again = tmp_path / "again.jsonl"
    assert (
        json.loads(flask(app, "dataset", "export", "1", "--out", str(again), "--json").stdout)["rows"] == told["rows"]
    )
    assert again.read_bytes() == content


def test_a_dataset_takes_the_choice_of_matches_that_an_export_takes(app: Flask, played: None) -> None:
    choice = ("--source", "selfplay", "--player", "scripted", "--reason", "deal")
    exported = flask(app, "export", "matches", *choice).stdout.splitlines()
    told = build(app, *choice, "--filter", "all")
    assert told["name"] == "player scripted, reason deal, source selfplay all"
    assert told["matches"] == len(exported) - 1 > 1
    assert build(app, *choice, "--match", exported[1].split(",")[0], "--filter", "all")["matches"] == 1
    shown = flask(app, "dataset", "show", "1").stdout
    assert "matches: source   selfplay\n" in shown
    refused = flask(app, "dataset", "build", "--source", "selfplay", "--player", "nobody")
    assert (refused.exit_code, refused.stderr.startswith("Error: --player: expected person or the name")) == (2, True)


def test_who_was_named_as_source_before_are_speakers_now(app: Flask, played: None) -> None:
    hashes = {build(app, "--round", "1", option, "models")["sha256"] for option in ("--source", "--speakers")}
    assert len(hashes) == 1
    nobody = flask(app, "dataset", "build", "--round", "1", "--source", "people")
    assert nobody.stderr.startswith("Error: speakers people: expected to keep at least one transcript")


def test_a_name_again_is_its_next_version(app: Flask, played: None) -> None:
    versions = [build(app, "--round", "1", "--filter", each, "--name", "mine") for each in ("all", "above_avg", "all")]
    assert [each["version"] for each in versions] == [1, 2, 3]
    assert versions[0]["file"] == versions[2]["file"] != versions[1]["file"]
    for called, number in (("mine", 3), ("mine@2", 2), ("1", 1)):
        assert json.loads(flask(app, "dataset", "show", called, "--json").stdout)["dataset_id"] == number
    listed = flask(app, "dataset", "list").stdout.splitlines()[1:]
    assert [line.split()[:3] for line in listed] == [["mine", "3", "3"], ["mine", "2", "2"], ["mine", "1", "1"]]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            "build",
            "--round: expected the number of a round or a campaign, or a game for its matches outside rounds, got",
        ),
        ("build --round one", f"--round: expected a whole number from 1 to {2**31 - 1}, got 'one'"),
        (
            "build --round 7",
            "--round: expected the number of one that exists, got 7; `flask round list` shows them",
        ),
        ("build --round 1 --game chess", "--game: expected negotiation or taboo, got 'chess'"),
        ("build --round 1 --since soon", "--since: expected a day such as 2026-01-31, got 'soon'"),
        (
            "build --round 1 --model nobody",
            "--model: expected one of scripted, scripted-agent, scripted-observer, got 'nobody'",
        ),
        ("build --round 1 --style sung", "prompt style of negotiation: expected"),
        ("build --round 1 --game taboo", "round 1: expected matches that are over, got none"),
        ("build --round 1 --reason checkmate", "reason checkmate: expected to keep at least one transcript, got none"),
        (
            "build --round 1 --filter best",
            "filter: expected above_avg or above_avg_nonzero or nonzero or all, got 'best'",
        ),
        ("build --round 1 --out /", "--out: expected a file, got the folder /"),
        (
            "show 7",
            "dataset: expected the number of one that exists, got 7; `flask dataset list` shows them",
        ),
        ("export mine@1", "dataset: expected the number, name or name@version of one that exists, got 'mine@1'"),
        ("export 1 --json", "--json: expected --out FILE with it"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_2(app: Flask, played: None, arguments: str, line: str) -> None:
    result = flask(app, "dataset", *arguments.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {line}")
    assert result.stderr.count("\n") == 1
    assert flask(app, "dataset", "list").stdout.startswith("No datasets yet: ")
    assert not [*app.config["SETTINGS"].home.glob("datasets/*")]


def test_a_build_that_is_interrupted_while_its_rows_are_written_elsewhere_leaves_no_file(
    app: Flask, played: None, home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "pipe"
    os.mkfifo(out)  # which nobody reads, so that the command waits there
    env = {**os.environ, "DATABASE_URL": app.config["SETTINGS"].database_url}
    line = ("dataset", "build", "--round", "1", "--out", str(out))
    process = subprocess.Popen([sys.executable, "-m", "flask", *line], cwd=ROOT, env=env, stderr=subprocess.DEVNULL)
    wait_until(lambda: [*home.glob("datasets/*.jsonl")], "a file of rows")
    time.sleep(0.5)  # until it waits at the pipe
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 130
    assert not [*home.glob("datasets/*")]
    assert flask(app, "dataset", "list").stdout.startswith("No datasets yet: ")


def test_a_full_disk_leaves_no_half_of_a_dataset(app: Flask, played: None, home: Path) -> None:
    (home / "datasets").write_text("a file where a folder has to be")
    result = flask(app, "dataset", "build", "--round", "1")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {home / 'datasets'}: expected a folder that can be written to, got ")
    assert flask(app, "dataset", "list").stdout.startswith("No datasets yet: ")
