"""`flask play`: whole matches at a terminal, against scripts and API models, however they end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result
from flask import Flask
from sqlalchemy import Engine, select

from app.core.extensions import reading, writing
from app.matches.stored import StoredMatch, load
from app.models import GenerationRow, MatchRow
from app.registry import add_api_model
from tests.stack import PATIENCE
from tests.stub_openai import Reply, StubServer

ROOT = Path(__file__).resolve().parents[2]
FLASK = str(Path(sys.executable).with_name("flask"))
NEGOTIATION = ("negotiation", "--config", "counts=[3, 2, 1]", "values=[[1, 3, 1], [2, 0, 4]]", "first=0", "--seed", "4")
DEFENDER = ("taboo", "--role", "defender", "--config", "word=cat")
ATTACKER = ("taboo", "--role", "attacker", "--config", "word=cat")
Run = Callable[..., Result]


@pytest.fixture
def run(app: Flask) -> Run:
    def invoke(*arguments: str, typed: str | bytes = "", against: str = "scripted") -> Result:
        full = ["play", *arguments, "--against", against]
        return app.test_cli_runner().invoke(args=full, input=typed)

    return invoke


@pytest.fixture
def stub(engine: Engine) -> Iterator[StubServer]:
    """A server whose models are registered under their own names."""
    with StubServer() as server:
        with writing(engine) as session:
            for name in ("stub-negotiator", "stub-taboo", "stub-broken", "scripted-here"):
                options = {"model": name, "base_url": server.url, "key_env": "", "retries": 0}
                add_api_model(session, name, None, [], options)
        yield server


def only_match(engine: Engine) -> tuple[MatchRow, StoredMatch]:
    with reading(engine) as session:
        row = session.scalars(select(MatchRow)).one()
        return row, load(session, row.id)


def test_a_defender_wins_against_the_script_and_the_match_is_stored(run: Run, engine: Engine) -> None:
    result = run(*DEFENDER, typed="hello\n/guess cat\n")
    assert result.exit_code == 0, result.output
    assert "You are the defender." in result.stdout
    assert "The defender wins. The word was “cat”." in result.stdout
    assert "Your score: 1. Your partner’s: -1." in result.stdout
    row, record = only_match(engine)
    assert (row.source, row.status, row.reason, row.ply) == ("terminal", "over", "defender wins", 4)
    assert [seat.kind for seat in record.seats] == ["model", "person"]
    assert row.id in result.stdout


def test_a_negotiation_shows_the_table_takes_offers_and_reveals_the_partners(run: Run, engine: Engine) -> None:
    result = run(*NEGOTIATION, typed="hi, I would like the hats\n/offer 1 2 0\n/offer 1 2 0\n")
    assert "books  3 on the table" in result.stdout
    row, record = only_match(engine)
    person = next(number for number, seat in enumerate(record.seats) if seat.kind == "person")
    values = row.config["values"][person]
    assert f"books  3 on the table, each worth {values[0]} to you" in result.stdout
    assert row.reason in ("deal", "no deal"), result.stdout
    assert "partner: takes (" in result.stdout


def test_a_refused_move_is_one_line_and_the_turn_stays(run: Run, engine: Engine) -> None:
    result = run(*ATTACKER, typed=b"hi \xff\n\n/nope\n/guess cat\nsomething \xf0\x9f\x98\x80 furry\n/quit\n")
    assert "cannot be shown (U+DCFF)" in result.stdout
    assert "There is no /nope here" in result.stdout
    row, _ = only_match(engine)
    assert (row.reason, row.violations, row.ply) == ("resigned", 1, 2)


def test_a_text_that_is_too_long_is_refused_like_in_the_browser(run: Run, engine: Engine) -> None:
    result = run(*ATTACKER, typed="x" * 100_000 + "\n/quit\n")
    assert "2000 characters at most, got 100000" in result.stdout
    assert only_match(engine)[0].violations == 0


def test_the_end_of_the_input_leaves_the_game_cleanly(run: Run, engine: Engine) -> None:
    result = run(*ATTACKER, typed="a small pet\n")
    assert result.exit_code == 0
    assert "The input has ended, so you leave the game." in result.stdout
    assert only_match(engine)[0].reason == "resigned"


def test_json_is_one_object_and_the_conversation_goes_elsewhere(run: Run, engine: Engine) -> None:
    result = run(*DEFENDER, "--json", typed="/guess cat\n")
    ended = json.loads(result.stdout)
    assert ended == {
        "match": only_match(engine)[0].id, "game": "taboo", "role": "defender", "seat": 1, "against": "scripted",
        "seed": ended["seed"], "moves": 2, "reason": "defender wins", "winner": 1, "utility": 1,
        "partner_utility": -1, "detail": None,
    }  # fmt: skip
    assert "You are the defender." in result.stderr


def test_the_same_seed_gives_the_same_match(run: Run) -> None:
    arguments = ("negotiation", "--seed", "11", "--json")
    first, second = (run(*arguments, typed="hi\nlet me have the books\n/quit\n") for _ in range(2))
    assert first.stderr.partition("Match ")[0] == second.stderr.partition("Match ")[0]


def test_a_contexts_file_lays_the_table(run: Run, engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "contexts.txt").write_text("1 4 4 1 1 2\n1 0 4 2 1 2\n")
    run("negotiation", "--contexts", str(tmp_path / "contexts.txt"), typed="/quit\n")
    row, _ = only_match(engine)
    assert (row.config["counts"], row.config["values"]) == ([1, 4, 1], [[4, 1, 2], [0, 2, 2]])


@pytest.mark.parametrize(
    "arguments",
    [
        ("chess",),
        ("taboo", "--role", "negotiator"),
        ("taboo", "--config", "word=two words"),
        ("taboo", "--config", "wrod=cat"),
        ("taboo", "--contexts", "x.txt"),
        ("negotiation", "--contexts", "/nowhere.txt"),
        ("negotiation", "--config", "objective=2"),
        ("negotiation", "--seed", "one"),
        ("negotiation", "--seed", str(2**63)),
        ("negotiation", "taboo"),
    ],
)
def test_bad_input_is_one_line_and_stores_nothing(run: Run, engine: Engine, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    with reading(engine) as session:
        assert session.scalars(select(MatchRow)).all() == []


def test_an_unknown_model_is_answered_with_the_known_ones(run: Run) -> None:
    result = run("taboo", against="nobody")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "(scripted), got 'nobody'" in result.stderr


def test_a_broken_contexts_file_is_named_with_its_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "contexts.txt").write_text("1 4 4 1 1 2\n1 0 4 2\n")
    result = run("negotiation", "--contexts", str(tmp_path / "contexts.txt"))
    assert "line 2" in result.stderr


# ---- Against models behind an API -------------------------------------------


@pytest.mark.usefixtures("stub")
def test_an_api_model_plays_in_this_process_without_a_broker(run: Run, engine: Engine) -> None:
    typed = "hello\n/offer 1 1 1\n" * 5
    result = run(*NEGOTIATION, typed=typed, against="stub-negotiator")
    assert result.exit_code == 0, result.output
    row, record = only_match(engine)
    assert row.status == "over"
    with reading(engine) as session:
        calls = session.scalars(select(GenerationRow)).all()
    model_moves = [logged for logged in record.log if logged.move_id and logged.move_id.startswith("model-")]
    assert len(calls) == len(model_moves) > 0


def test_a_model_that_fails_ends_the_match_and_says_why(run: Run, engine: Engine, stub: StubServer) -> None:
    stub.script("scripted-here", Reply("out of order", status=500))
    result = run(*ATTACKER, typed="a small pet\nmore\n", against="scripted-here")
    assert result.exit_code == 0, result.output
    assert "The model could not go on, so nobody scores." in result.stdout
    assert "HTTP 500" in result.stdout
    assert only_match(engine)[0].reason == "aborted"


@pytest.mark.usefixtures("stub")
def test_a_model_that_never_moves_legally_is_stopped(run: Run, engine: Engine) -> None:
    result = run(*NEGOTIATION, typed="hello\nhello\n", against="stub-broken")
    assert "5 refused attempts" in result.stdout
    assert only_match(engine)[0].violations == 5


# ---- As it is really started ------------------------------------------------


def test_ctrl_c_leaves_the_game_with_one_line_and_130(home: Path) -> None:
    process = subprocess.Popen(
        [FLASK, "play", "taboo", "--against", "scripted", "--role", "attacker"],
        cwd=ROOT,
        env={**os.environ, "PARLOR_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    shown = b""
    while b"> " not in shown:
        piece = os.read(process.stdout.fileno(), 1000)
        assert piece, shown
        shown += piece
    time.sleep(0.5)  # the prompt is there a little before the program reads
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert err.decode().strip().startswith("Interrupted: you have left match ")
    matches = subprocess.check_output(
        [FLASK, "export", "matches"], cwd=ROOT, env={**os.environ, "PARLOR_HOME": str(home)}
    )
    assert b",over,resigned," in matches
