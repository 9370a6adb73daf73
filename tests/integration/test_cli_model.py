"""`flask model`: what is registered, and that no key is ever stored or shown."""

import json
from collections.abc import Callable

import pytest
from flask import Flask
from sqlalchemy import Engine, select

from app.core.extensions import reading
from app.models import LanguageModel
from app.registry import SCRIPTED_CHATS
from tests.shell import Finished
from tests.stub_openai import StubServer

ADD = ("add-api", "mine", "--model", "vendor-1", "--base-url", "http://127.0.0.1:9/v1")
Run = Callable[..., Finished]


@pytest.fixture
def run(flask: Run) -> Run:
    return lambda *arguments: flask("model", *arguments)


def stored(engine: Engine, name: str) -> LanguageModel | None:
    with reading(engine) as session:
        return session.scalar(select(LanguageModel).where(LanguageModel.name == name))


def test_the_list_begins_with_the_baseline(run: Run) -> None:
    result = run("list")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1].split() == [
        "scripted", "House", "partner", "scripted", "negotiation,", "taboo", "rounds", "and", "people",
    ]  # fmt: skip


def test_an_api_model_is_stored_with_all_that_was_said_of_it(run: Run, engine: Engine) -> None:
    more = (
        "--organisation",
        "org",
        "--key-env",
        "MY_API_KEY",
        "--label",
        "Robin",
        "--game",
        "taboo",
        "--temperature",
        "0.7",
    )
    limits = (
        "--max-tokens",
        "99",
        "--timeout",
        "5",
        "--retries",
        "1",
        "--in-flight",
        "9",
        "--option",
        "top_p=0.9",
        "seed=3",
    )
    result = run(*ADD, *more, *limits)
    assert result.exit_code == 0, result.stderr
    assert "MY_API_KEY is not set here" in result.stdout
    assert result.stdout.splitlines()[-2] == "Try it: flask play taboo --against mine"
    row = stored(engine, "mine")
    assert row is not None
    assert (row.label, row.kind, row.games, row.usable_in_rounds, row.offered_to_people) == (
        "Robin", "api", ["taboo"], True, False,
    )  # fmt: skip
    assert row.options == {
        "model": "vendor-1", "base_url": "http://127.0.0.1:9/v1", "organisation": "org", "key_env": "MY_API_KEY",
        "temperature": 0.7, "max_tokens": 99, "timeout": 5, "retries": 1, "top_p": 0.9, "seed": 3, "in_flight": 9,
        "key_host": "127.0.0.1",
    }  # fmt: skip


def test_a_model_that_takes_no_temperature_is_sent_none(run: Run, engine: Engine) -> None:
    assert run(*ADD, "--temperature", "none").exit_code == 0
    row = stored(engine, "mine")
    assert row is not None
    assert row.options["temperature"] is None


def test_json_says_whether_the_key_is_there_and_never_what_it_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret")
    added = run(*ADD, "--key-env", "MY_API_KEY", "--json")
    assert json.loads(added.stdout)["key_set"] is True
    listed = run("list", "--json")
    assert [row["name"] for row in json.loads(listed.stdout)] == ["scripted", *SCRIPTED_CHATS, "mine"]
    assert "sk-very-secret" not in added.output + listed.output + run("list").output


def test_several_games_may_follow_one_option(run: Run, engine: Engine) -> None:
    assert run(*ADD, "--game", "taboo", "negotiation").exit_code == 0
    row = stored(engine, "mine")
    assert row is not None
    assert sorted(row.games) == ["negotiation", "taboo"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--key-env", "sk-abcdefgh12345678"),
        ("--option", "sk-abcdefgh12345678"),
        ("--option", "api_key=sk-abcdefgh12345678"),
        ("--base-url", "http://me:sk-abcdefgh12345678@host/v1"),
    ],
)
def test_a_key_in_the_wrong_place_is_neither_stored_nor_shown(
    run: Run, engine: Engine, arguments: tuple[str, ...]
) -> None:
    result = run(*ADD, *arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "sk-abcdefgh12345678" not in result.output
    assert stored(engine, "mine") is None


@pytest.mark.parametrize(
    "arguments",
    [
        ("add-api", "mine"),
        ("add-api", "scripted", "--model", "x"),
        (*ADD, "--label", "House partner"),
        (*ADD, "--game", "chess"),
        (*ADD, "--temperature", "hot"),
        (*ADD, "--max-tokens", "0"),
        (*ADD, "--timeout", "none"),
        (*ADD, "--prompt-style", "sung"),
        (*ADD, "--option", "model=other"),
        (*ADD, "--base-url", "ftp://host"),
        (*ADD, "--base-url", "http://169.254.169.254/v1"),
        (*ADD, "--key-env", "HOME"),
        (*ADD, "--option", "key_host=elsewhere"),
        ("set", "nobody", "--rounds", "on"),
        ("set", "scripted"),
        ("set", "scripted", "--people", "maybe"),
        ("test", "nobody"),
        ("test", "scripted"),
        ("list", "--game", "chess"),
    ],
)
def test_bad_input_is_one_line_and_stores_nothing(run: Run, engine: Engine, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert stored(engine, "mine") is None


def test_the_two_uses_of_a_model_are_switched_apart(run: Run, engine: Engine) -> None:
    assert run("set", "scripted", "--rounds", "off").stdout == "scripted is used for people.\n"
    assert run("set", "scripted", "--people", "off").stdout == "scripted is used for nothing.\n"
    found = json.loads(run("list", "--json").stdout)[0]
    assert (found["usable_in_rounds"], found["offered_to_people"]) == (False, False)
    assert run("set", "scripted", "--rounds", "on", "--people", "on").stdout == (
        "scripted is used for rounds and people.\n"
    )


def test_a_model_is_offered_to_people_only_after_its_test_call_has_passed(run: Run, engine: Engine) -> None:
    with StubServer() as stub:
        stub.script("vendor-1", "[message] Hello there!")
        run(*ADD, "--base-url", stub.url, "--key-env", "", "--retries", "0")
        early = run("set", "mine", "--rounds", "off", "--people", "on")
        assert (early.exit_code, early.stderr.count("\n")) == (2, 1)
        assert "expected one whose test call has passed, got 'mine', whose test call has not passed yet" in early.stderr
        assert stored(engine, "mine").usable_in_rounds  # type: ignore[union-attr]
        tested = run("test", "mine")
        assert (tested.exit_code, "mine answered in" in tested.stdout) == (0, True)
    assert run("set", "mine", "--people", "on").stdout == "mine is used for rounds and people.\n"
    failed = run("test", "mine")  # the stub is gone
    assert failed.exit_code == 1
    assert failed.stderr.startswith("Error: mine did not answer: ")
    assert stored(engine, "mine").offered_to_people  # type: ignore[union-attr]
    run("set", "mine", "--people", "off")
    late = run("set", "mine", "--people", "on")
    assert (late.exit_code, "whose test call has failed" in late.stderr) == (2, True)


def test_a_scripted_player_with_a_manner_is_added_and_an_unknown_manner_is_refused(run: Run) -> None:
    assert json.loads(run("add-scripted", "casual", "--manner", "casual", "--json").stdout)["options"] == {
        "manner": "casual"
    }
    refused = run("add-scripted", "rude", "--manner", "rude")
    assert refused.exit_code == 2
    assert refused.stderr == "Error: manner: expected plain or casual or careless, got 'rude'\n"


def test_scripted_members_of_societies_are_there_and_answer_chats_alone(run: Run) -> None:
    shipped = {each["name"]: each for each in json.loads(run("list", "--json").stdout)}["scripted-agent"]
    assert (shipped["uses"], shipped["games"], shipped["usable_in_rounds"]) == (["chat"], [], False)
    asked = run("ask", "scripted-agent", "How do I make bread?")
    assert asked.exit_code == 0
    assert "bread" in asked.stdout
    refused = [run("set", "scripted-agent", option, "on").stderr for option in ("--rounds", "--people")]
    refused.append(run("test", "scripted-agent").stderr)
    assert all("model: expected one that plays a game, got 'scripted-agent'" in each for each in refused)


def test_a_scripted_observer_whose_ratings_cannot_be_read_is_added(run: Run) -> None:
    added = run("add-scripted", "mute", "--chat", "observer", "--unreadable", "1")
    assert "Societies can use it." in added.stdout
    shown = json.loads(run("show", "mute", "--json").stdout)
    assert (shown["options"], shown["uses"]) == ({"chat": "observer", "unreadable": 1}, ["chat"])
    assert "Rating: " not in run("ask", "mute", "How well does this answer fit?").stdout
    for wrong in (["--chat", "observer", "--manner", "plain"], ["--unreadable", "1"], []):
        refused = run("add-scripted", "wrong", *wrong)
        assert (refused.exit_code, refused.stderr.startswith("Error: expected --manner, or --chat")) == (2, True)


def test_a_scripted_player_plays_rounds_in_its_manner(app: Flask, run: Run) -> None:
    run("add-scripted", "careless", "--manner", "careless")
    play = ["round", "run", "negotiation", "--models", "careless", "--matches", "60", "--seed", "1"]
    assert app.test_cli_runner().invoke(args=play).exit_code == 0
    shown = app.test_cli_runner().invoke(args=["analyze", "--round", "1", "--json"])
    [told] = json.loads(shown.stdout)["rounds"]
    assert 0 < told["columns"]["agreement_rate"]["value"] < 0.4
