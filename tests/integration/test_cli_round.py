"""`flask round`: rounds from the command line, and what it says of those that cannot be."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from flask import Flask
from sqlalchemy import Engine, func, select

from app.core.extensions import reading
from app.models import MatchRow, RoundMaterial, RoundRow
from app.rounds.job import ROUND
from tests.rounds import add_models, facts, row_of
from tests.stub_openai import Reply, StubServer

CONTEXTS = "1 10 2 0 2 0\n1 0 2 3 2 2\n3 1 1 4 1 3\n3 2 1 1 1 3\n"


def flask(app: Flask, *arguments: str) -> Result:
    return app.test_cli_runner().invoke(args=["round", *arguments])


def run(app: Flask, *arguments: str) -> dict[str, Any]:
    result = flask(app, "run", *arguments, "--json")
    assert result.exit_code in (0, 3), result.output
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def test_a_round_on_a_file_of_contexts_takes_them_in_order(app: Flask, engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "contexts.txt"
    path.write_text(CONTEXTS)
    told = run(
        app, "negotiation", "--models", "scripted", "scripted", "--matches", "5", "--contexts", str(path),
        "--config", "objective=coop", "limit=30", "--seed", "1",
    )  # fmt: skip
    assert (told["round_id"], told["status"], told["matches"], told["finished"]) == (1, "done", 5, 5)
    assert told["moves"] > 5
    configs = [match["config"] for _, match in sorted(facts(engine, 1).items())]
    assert [config["counts"] for config in configs] == [[1, 2, 2], [3, 1, 1], [1, 2, 2], [3, 1, 1], [1, 2, 2]]
    assert all((config["objective"], config["limit"]) == ("coop", 30) for config in configs)


def test_the_same_seed_gives_the_same_round(app: Flask, engine: Engine) -> None:
    for _ in range(2):
        run(app, "negotiation", "--models", "scripted", "--matches", "8", "--seed", "4")
    run(app, "negotiation", "--models", "scripted", "--matches", "8", "--seed", "5")
    assert facts(engine, 1) == facts(engine, 2) != facts(engine, 3)


def test_a_file_of_words_is_played_once_each_unless_told_otherwise(app: Flask, engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("# some words\nlemon\nriver\n\ncandle\n")
    assert run(app, "taboo", "--models", "scripted", "--words", str(path), "--swap-seats")["matches"] == 6
    words = [match["config"]["word"] for _, match in sorted(facts(engine, 1).items())]
    assert words[::2] == words[1::2]
    assert sorted(words[::2]) == ["candle", "lemon", "river"]


def test_cross_play_makes_a_round_for_every_pair(app: Flask, engine: Engine, stub: StubServer) -> None:
    add_models(engine, stub.url, "stub-taboo", "stub-negotiator")
    told = run(app, "negotiation", "--models", "scripted", "stub-negotiator", "--matches", "2", "--cross-play")
    assert [each["models"] for each in told["rounds"]] == [
        ["scripted", "scripted"],
        ["scripted", "stub-negotiator"],
        ["stub-negotiator", "stub-negotiator"],
    ]
    assert {each["matrix_id"] for each in told["rounds"]} == {1}
    told = run(app, "taboo", "--models", "scripted", "stub-taboo", "--matches", "1", "--cross-play")
    assert len(told["rounds"]) == 4  # attacker and defender are not the same


def test_a_cross_play_is_one_line_and_is_stopped_and_resumed_as_one(app: Flask, engine: Engine) -> None:
    runner = app.test_cli_runner()
    runner.invoke(args=["model", "add-scripted", "casual", "--manner", "casual"])
    told = run(app, "negotiation", "--models", "scripted", "casual", "--matches", "4", "--cross-play", "--queue")
    assert told["round_ids"] == [1, 2, 3]
    listed = runner.invoke(args=["round", "list"]).stdout
    assert re.search(r"^scripted, casual +1 +waiting +0/12 +negotiation ", listed, re.MULTILINE), listed
    assert len(listed.splitlines()) == 2
    assert len(json.loads(runner.invoke(args=["round", "list", "--json"]).stdout)) == 3
    stopped = runner.invoke(args=["round", "cancel", "2", "--cross-play"])
    assert stopped.stdout == "Cross-play 1: 3 rounds cancelled; `flask round resume 1 --cross-play` plays the rest.\n"
    again = runner.invoke(args=["round", "cancel", "2", "--cross-play"])
    assert (again.exit_code, again.stderr.count("\n")) == (2, 1)
    resumed = runner.invoke(args=["round", "resume", "1", "--cross-play", "--json"])
    assert [each["status"] for each in json.loads(resumed.stdout)["rounds"]] == ["done"] * 3
    alone = runner.invoke(args=["round", "cancel", "4", "--cross-play"])
    assert (alone.exit_code, "round: expected the number of one" in alone.stderr) == (2, True)


def test_a_round_for_training_is_sampled_as_the_games_paper_did_unless_it_is_said(app: Flask) -> None:
    run = app.test_cli_runner()
    for flags, sampling in (
        ((), {}),
        (("--for-training",), {"temperature": 1.2, "top_k": 50}),
        (("--for-training", "--greedy", "--max-tokens", "64"), {"temperature": 0, "top_k": 50, "max_tokens": 64}),
    ):
        done = run.invoke(args=["round", "run", "taboo", "--models", "scripted", "--matches", "1", *flags, "--json"])
        assert json.loads(done.stdout)["sampling"] == sampling
    assert "taboo: temperature 1.2, top_k 50" in " ".join(run.invoke(args=["round", "run", "--help"]).stdout.split())


def test_the_temperature_of_a_round_is_the_one_that_is_asked_for(app: Flask, engine: Engine, stub: StubServer) -> None:
    add_models(engine, stub.url, "stub-negotiator", temperature=0.7)
    for arguments in (["--temperature", "1.2", "--top-k", "50"], ["--greedy", "--max-tokens", "64"], []):
        run(app, "negotiation", "--models", "stub-negotiator", "--matches", "1", *arguments)
    bodies = [request.body for request in stub.requests]
    sent = {(body["temperature"], body.get("top_k"), body["max_tokens"]) for body in bodies}
    assert sent == {(1.2, 50, 200), (0, None, 64), (0.7, None, 200)}


def test_matches_that_a_model_aborted_are_exit_code_3(app: Flask, engine: Engine, stub: StubServer) -> None:
    add_models(engine, stub.url, "stub-broken")
    result = flask(app, "run", "negotiation", "--models", "scripted", "stub-broken", "--matches", "3")
    assert result.exit_code == 3
    assert "Round 1: 3 of 3 matches over" in result.stdout
    assert "; all aborted." in result.stdout


def test_a_round_that_a_model_stops_is_exit_code_1_and_says_how_to_go_on(
    app: Flask, engine: Engine, stub: StubServer
) -> None:
    stub.script("locked", Reply("Incorrect API key.", status=401))
    add_models(engine, stub.url, "locked")
    result = flask(app, "run", "negotiation", "--models", "locked", "--matches", "3")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: round 1 stopped: locked at http://127.0.0.1:")
    assert result.stderr.endswith("; `flask round resume 1` plays the rest\n")
    stub.script("locked", Reply("Still locked.", status=403))
    assert flask(app, "resume", "1").exit_code == 1


def test_a_queued_round_waits_for_a_worker_and_can_be_cancelled(app: Flask) -> None:
    ROUND.enqueue(app.config["SETTINGS"].broker_url, 1)  # nobody hears; and what is logged of it has been logged before
    result = flask(app, "run", "negotiation", "--models", "scripted", "--matches", "3", "--queue", "--json")
    assert json.loads(result.stdout) == {"round_id": 1, "queued": True}
    assert "waiting" in flask(app, "list").stdout
    shown = json.loads(flask(app, "show", "1", "--json").stdout)
    assert (shown["status"], shown["queued"], shown["finished"]) == ("waiting", True, 0)
    assert flask(app, "cancel", "1").stdout.startswith("Round 1 is cancelled, 0 of 3 matches over;")
    resumed = flask(app, "resume", "1", "--json")
    assert (resumed.exit_code, json.loads(resumed.stdout)["finished"]) == (0, 3)


def test_an_export_of_a_round_holds_its_matches_in_order(app: Flask) -> None:
    for seed in ("1", "2"):
        run(app, "negotiation", "--models", "scripted", "--matches", "12", "--seed", seed)
    exported = app.test_cli_runner().invoke(args=["export", "matches", "--round", "2"])
    rows = list(csv.DictReader(io.StringIO(exported.stdout)))
    assert [(row["round_id"], row["index"]) for row in rows] == [("2", str(index)) for index in range(12)]
    moves = app.test_cli_runner().invoke(args=["export", "moves", "--round", "2"])
    seen = list(dict.fromkeys(row["match_id"] for row in csv.DictReader(io.StringIO(moves.stdout))))
    assert seen == [row["match_id"] for row in rows]
    missing = app.test_cli_runner().invoke(args=["export", "matches", "--round", "9"])
    assert (missing.exit_code, missing.stderr) == (
        2,
        "Error: round: expected the number of one that exists, got 9; `flask round list` shows them\n",
    )


MODEL = "--models scripted"
RANGE = "matches: expected a whole number from 1 to 1000000, got"
OBJECTIVE = "config.objective: expected self, coop, comp or a number from -1 to 1, got 'mean'"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (f"chess {MODEL}", "game: expected negotiation or taboo, got 'chess'"),
        (
            "negotiation --models nobody",
            "models: expected one that plays negotiation and is usable in rounds (scripted), got 'nobody'",
        ),
        (f"negotiation {MODEL} --matches 0", f"{RANGE} '0'"),
        (f"negotiation {MODEL} --matches 1000000000", f"{RANGE} '1000000000'"),
        (f"negotiation {MODEL} --matches many", f"{RANGE} 'many'"),
        ("negotiation --models a b c", "models: expected one or two names, or a cross-play with more, got 3"),
        (f"negotiation {MODEL} --cross-play", "models: expected 2 to 20 different ones, got scripted"),
        (f"negotiation {MODEL} --words all", "--words: expected only with taboo, got it with negotiation"),
        (f"taboo {MODEL} --contexts x", "--contexts: expected only with negotiation, got it with taboo"),
        (f"negotiation {MODEL} --greedy --temperature 1", "--greedy: expected it or a temperature, got both"),
        (f"negotiation {MODEL} --seed -3", f"seed: expected a whole number from 0 to {2**63 - 1}, got '-3'"),
        (f"negotiation {MODEL} --config objective=mean", OBJECTIVE),
        ("negotiation", "models: expected a value, got none"),
    ],
)
def test_what_cannot_be_played_is_one_line_and_exit_code_2(app: Flask, arguments: str, line: str) -> None:
    result = flask(app, "run", *arguments.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"Error: {line}\n"
    with reading() as session:
        assert session.scalar(select(func.count()).select_from(RoundRow)) == 0
        assert session.scalar(select(func.count()).select_from(MatchRow)) == 0


@pytest.mark.parametrize(
    ("game", "option", "text", "line"),
    [
        (
            "negotiation",
            "--contexts",
            "1 10 2 0 2 0\n1 1 2 3 2 2\n",
            "line 2: expected values of seat 1 that make 10 points",
        ),
        ("negotiation", "--contexts", "", "expected two lines a context, got an empty file"),
        ("taboo", "--words", "lemon\nlemon\n", "line 2: expected each word once, got 'lemon' again"),
        ("taboo", "--words", "two words\n", "line 1: word: expected"),
        ("taboo", "--words", "\n", "expected 1 to 100000 words, one a line, got 0"),
    ],
)
def test_a_file_that_cannot_be_played_is_refused_with_its_line(
    app: Flask, tmp_path: Path, game: str, option: str, text: str, line: str
) -> None:
    path = tmp_path / "given.txt"
    path.write_text(text)
    result = flask(app, "run", game, "--models", "scripted", option, str(path))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {path}")
    assert line in result.stderr
    assert result.stderr.count("\n") == 1


def test_rounds_that_do_not_exist_are_said_so(app: Flask) -> None:
    for command in ("show", "resume", "cancel"):
        result = flask(app, command, "7")
        assert (result.exit_code, result.stderr) == (
            2,
            "Error: round: expected the number of one that exists, got 7; `flask round list` shows them\n",
        )
    assert flask(app, "list").stdout.startswith("No rounds yet: ")


def test_a_round_is_asked_for_in_a_file(app: Flask, engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "round.yaml"
    text = "game: taboo\nmodels: [scripted, scripted]\nmatches: 2\nswap_seats: true\nseed: 3\n"
    text += "sampling:\n  temperature: {}\n"
    file.write_text(text.format(3))
    refused = flask(app, "run", "--spec", str(file))
    line = "round.yaml:7: sampling.temperature: expected a number from 0 to 2, got 3\n"
    assert (refused.exit_code, refused.stderr.endswith(line)) == (2, True), refused.stderr
    file.write_text(text.format(0.5))
    words = tmp_path / "words.txt"
    words.write_text("lemon\nriver\n")
    done = flask(app, "run", "--spec", str(file), "--words", str(words), "--seed", "4", "--json")
    row = row_of(engine, json.loads(done.stdout)["round_id"])
    assert (row.game, row.matches, row.swap_seats, row.seed, row.sampling) == (
        "taboo",
        2,
        True,
        4,
        {"temperature": 0.5},
    )
    with reading(engine) as session:
        assert session.get_one(RoundMaterial, row.id).items == ["lemon", "river"]
