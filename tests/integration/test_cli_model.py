"""`flask model`: what is registered, and that no key is ever stored or shown."""

import json
from collections.abc import Callable

import pytest
from flask import Flask
from sqlalchemy import Engine, select

from app.extensions import reading
from app.models import LanguageModel
from tests.shell import Finished

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
        "scripted", "House", "partner", "scripted", "negotiation,", "taboo", "enabled",
    ]  # fmt: skip


def test_an_api_model_is_stored_with_all_that_was_said_of_it(run: Run, engine: Engine) -> None:
    more = (
        "--organisation",
        "org",
        "--key-env",
        "MY_KEY",
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
    assert "MY_KEY is not set here" in result.stdout
    assert result.stdout.splitlines()[-1] == "Try it: flask play taboo --against mine"
    row = stored(engine, "mine")
    assert row is not None
    assert (row.label, row.kind, row.games, row.enabled) == ("Robin", "api", ["taboo"], True)
    assert row.options == {
        "model": "vendor-1", "base_url": "http://127.0.0.1:9/v1", "organisation": "org", "key_env": "MY_KEY",
        "temperature": 0.7, "max_tokens": 99, "timeout": 5, "retries": 1, "top_p": 0.9, "seed": 3, "in_flight": 9,
    }  # fmt: skip


def test_a_model_that_takes_no_temperature_is_sent_none(run: Run, engine: Engine) -> None:
    assert run(*ADD, "--temperature", "none").exit_code == 0
    row = stored(engine, "mine")
    assert row is not None
    assert row.options["temperature"] is None


def test_json_says_whether_the_key_is_there_and_never_what_it_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    added = run(*ADD, "--key-env", "MY_KEY", "--json")
    assert json.loads(added.stdout)["key_set"] is True
    listed = run("list", "--json")
    assert [row["name"] for row in json.loads(listed.stdout)] == ["scripted", "mine"]
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
        ("enable", "nobody"),
        ("list", "--game", "chess"),
    ],
)
def test_bad_input_is_one_line_and_stores_nothing(run: Run, engine: Engine, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert stored(engine, "mine") is None


def test_a_model_can_be_switched_off_and_on(run: Run, engine: Engine) -> None:
    assert run("disable", "scripted").stdout == "scripted is disabled.\n"
    row = stored(engine, "scripted")
    assert row is not None
    assert not row.enabled
    assert json.loads(run("list", "--json").stdout)[0]["enabled"] is False
    run("enable", "scripted")
    row = stored(engine, "scripted")
    assert row is not None
    assert row.enabled


def test_a_scripted_player_with_a_manner_is_added_and_an_unknown_manner_is_refused(run: Run) -> None:
    assert json.loads(run("add-scripted", "casual", "--manner", "casual", "--json").stdout)["options"] == {
        "manner": "casual"
    }
    refused = run("add-scripted", "rude", "--manner", "rude")
    assert refused.exit_code == 2
    assert refused.stderr == "Error: manner: expected plain or casual or careless, got 'rude'\n"


def test_a_scripted_player_plays_rounds_in_its_manner(app: Flask, run: Run) -> None:
    run("add-scripted", "careless", "--manner", "careless")
    play = ["round", "run", "negotiation", "--models", "careless", "--matches", "60", "--seed", "1"]
    assert app.test_cli_runner().invoke(args=play).exit_code == 0
    shown = app.test_cli_runner().invoke(args=["analyze", "--round", "1", "--json"])
    [told] = json.loads(shown.stdout)["rounds"]
    assert 0 < told["columns"]["agreement_rate"]["value"] < 0.4
