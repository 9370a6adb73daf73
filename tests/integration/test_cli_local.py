"""`flask model add-local`, and what is told of a local model on the command line and the admin pages."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from flask import Flask
from sqlalchemy import Engine, select

from app.core.extensions import reading
from app.matches.turns import WorkerContext
from app.model_calls.request_runner import make_request
from app.models import LanguageModel, ModelRequest
from tests.checkpoints import bytes_model, register, word_model
from tests.experimenter import signed_in
from tests.model_requests import generation_of, latest

Run = Callable[..., Result]


@pytest.fixture
def run(app: Flask) -> Run:
    return lambda *arguments: app.test_cli_runner().invoke(args=arguments)


def stored(engine: Engine, name: str) -> LanguageModel | None:
    with reading(engine) as session:
        return session.scalar(select(LanguageModel).where(LanguageModel.name == name))


@pytest.mark.parametrize("database_url", [""])
def test_a_folder_becomes_a_model_once_it_was_loaded(run: Run, engine: Engine, home: Path) -> None:
    folder = home / "checkpoints" / "small"
    sha256 = word_model(folder)
    flags = ("--prompt-style", "compact", "--game", "taboo", "--temperature", "0.5", "--top-k", "9", "--in-flight", "4")
    added = run("model", "add-local", "mine", "--path", str(folder), *flags, "--json")
    assert added.exit_code == 0, added.stderr
    told = json.loads(added.stdout)
    assert told["checkpoint"]["architecture"] == "LlamaForCausalLM"
    assert told["parameters"] == told["checkpoint"]["parameters"]
    assert (told["checkpoint"]["length"], told["checkpoint"]["chat_template"]) == (256, True)
    row = stored(engine, "mine")
    assert row is not None
    assert (row.kind, row.games, row.prompt_style) == ("local", ["taboo"], "compact")
    assert row.options == {
        "path": "checkpoints/small", "sha256": sha256, "temperature": 0.5, "top_k": 9, "in_flight": 4,
    }  # fmt: skip
    assert re.search(rf"mine +Partner \d+ +local +taboo +rounds +checkpoints/small, .* {sha256[:12]}", run_list(run))
    shown = run("model", "show", "mine").stdout
    assert re.search(r"^folder +/.*/checkpoints/small$", shown, re.MULTILINE)
    assert re.search(r"^top k +9$", shown, re.MULTILINE)
    assert json.loads(run("model", "show", "mine", "--json").stdout)["options"] == row.options


@pytest.mark.parametrize("database_url", [""])
def test_a_model_has_arguments_for_its_template_which_a_clone_can_change(run: Run, engine: Engine, home: Path) -> None:
    word_model(home / "small")
    given = (
        "--reasoning",
        "low",
        "--reasoning-room",
        "70",
        "--template-arguments",
        '{"enable_thinking": false}',
        "--stop",
        '["User:"]',
    )
    added = run("model", "add-local", "mine", "--path", str(home / "small"), *given)
    assert added.exit_code == 0, added.stderr
    row = stored(engine, "mine")
    assert row is not None
    assert row.options["template_arguments"] == {"enable_thinking": False}
    assert row.options["stop"] == ["User:"]
    assert re.search(
        r"^template arguments +\{.*'thinking': True.*\}$", run("model", "show", "mine").stdout, re.MULTILINE
    )
    assert run("model", "clone", "mine", "other", "--template-arguments", '{"style": 2}').exit_code == 0
    assert run("model", "edit", "mine", "--reasoning-room", "90").exit_code == 0
    row, other = stored(engine, "mine"), stored(engine, "other")
    assert row is not None
    assert other is not None
    assert (row.options["reasoning_room"], other.options["reasoning_room"]) == (90, 70)
    assert other.options["template_arguments"] == {"style": 2}
    for wrong, line in (
        ("[1]", 'template_arguments: expected a JSON object such as {"enable_thinking": false}, got'),
        ("{no", 'template_arguments: expected a JSON object such as {"enable_thinking": false}, got'),
        ('{"tools": []}', "template_arguments: expected variables of the model’s chat template, got tools"),
    ):
        refused = run("model", "clone", "mine", "third", "--template-arguments", wrong)
        assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
        assert line in refused.stderr, refused.stderr


def run_list(run: Run) -> str:
    return run("model", "list").stdout


@pytest.mark.parametrize("database_url", [""])
def test_a_folder_that_cannot_be_loaded_is_refused_with_the_reason(run: Run, engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    refused = run("model", "add-local", "mine", "--path", str(tmp_path))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"Error: path: {tmp_path}: expected weights as .safetensors, got none")
    assert refused.stderr.count("\n") == 1
    assert stored(engine, "mine") is None


def test_the_model_is_shown_and_tested_on_its_page(
    app: Flask, engine: Engine, desk: Callable[..., WorkerContext]
) -> None:
    folder = Path(app.config["SETTINGS"].home) / "small"
    sha256 = bytes_model(folder)
    register(engine, "mine", Path("small"), sha256, top_k=7)
    row = stored(engine, "mine")
    assert row is not None
    client = signed_in(app)
    page = f"/admin/models/{row.id}"
    told = client.get(page).get_data(as_text=True)
    assert sha256 in told
    assert "not on this machine" not in told
    assert client.post(page, data={"action": "test"}).status_code == 303
    make_request(desk(), latest(engine))
    with reading(engine) as session:
        request = session.get_one(ModelRequest, latest(engine))
        assert request.result is not None
        assert request.result["ok"], request.result
        assert request.result["model"] == f"mine@{sha256[:12]}"
        call = generation_of(session, request.id)
        assert call is not None
        assert (call.match_id, call.prompt, call.language_model_id) == (None, request.messages, row.id)
    assert "Calls itself" in client.get(page).get_data(as_text=True)
    folder.rename(folder.with_name("elsewhere"))
    assert "not on this machine" in client.get(page).get_data(as_text=True)
