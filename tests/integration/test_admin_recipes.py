"""Pages and commands of recipes: a run is started, estimated, followed and exported; faults are said at their line."""

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine

from app.core.config import ROOT
from app.jobs import states
from app.models import RecipeRun, RoundRow
from app.recipes.reader import load_recipe
from tests.campaigns import add_local
from tests.experimenter import signed_in
from tests.integration.test_cli_society import flask
from tests.recipes import GAMES, KEYS, carry_on, count_of, make_run, row_of


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


def form(text: str = GAMES, **more: str) -> dict[str, str]:
    given = {"recipe": "upload", "recipe_text": text, "recipe_name": "games.yaml", "inputs": "", "name": "", "like": ""}
    return {**given, "agreed": "", "budget_usd": "", "budget_tokens": "", "action": "start", **more}


def test_a_run_is_started_from_its_form_and_followed_on_its_page(
    client: FlaskClient, app: Flask, engine: Engine, enqueued_jobs: list[tuple[str, int]]
) -> None:
    assert "None has been run yet" in client.get("/admin/recipes").text
    sent = client.post("/admin/recipes/new", data=form(inputs="turns = 3\nseeds = 3, 4", name="mine"))
    assert (sent.status_code, sent.location) == (303, "/admin/recipes/1")
    assert enqueued_jobs == [("recipe", 1)]
    row = row_of(engine, 1)
    assert (row.spec["inputs"]["turns"], row.spec["inputs"]["seeds"], row.queued) == (3, [3, 4], True)
    page = client.get("/admin/recipes/1").text
    assert "not begun" in page
    assert "measure turn=3, seed=4" in page
    assert "Tables appear here" in page


def test_the_page_of_a_run_that_is_over_leads_to_its_jobs_and_shows_its_table(
    client: FlaskClient, app: Flask, engine: Engine
) -> None:
    number = make_run(engine)
    carry_on(engine, app.config["SETTINGS"], number)
    page = client.get(f"/admin/recipes/{number}").text
    for key in KEYS:
        assert key in page
    assert 'href="/admin/rounds/1"' in page
    assert 'href="/admin/datasets/1"' in page
    assert "agreement rate" in page
    assert 'href="/admin/recipes/1"' in client.get("/admin/recipes").text
    assert 'href="/admin/recipes/1/export.zip"' in page
    sent = client.get("/admin/recipes/1/export.zip")
    assert sent.headers["Content-Disposition"] == 'attachment; filename="games-1.zip"'
    with zipfile.ZipFile(io.BytesIO(sent.data)) as archive:
        assert archive.read("games-1/games.yaml").decode() == GAMES


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GAMES.replace("filter: all", "filtered: all"), "games.yaml:13: steps[2].with.filtered (turn=1)"),
        (GAMES.replace('"${player}"], m', '"nobody"], m'), "games.yaml:9: steps[1].with.models (turn=1)"),
        ("", "expected a file or lines of text"),
        (
            GAMES.replace("matches: 6", "material: words.txt"),
            "games.yaml:9: steps[1].with.material (turn=1): expected nothing that is in another file, got 'words.txt';",
        ),
    ],
)
def test_what_is_wrong_is_said_at_its_line_and_what_was_typed_stays(
    client: FlaskClient, engine: Engine, text: str, said: str
) -> None:
    refused = client.post("/admin/recipes/new", data=form(text, inputs="turns = 2"))
    assert refused.status_code in (400, 404)
    assert said in refused.text.replace("&#39;", "'")
    assert "turns = 2" in refused.text
    assert count_of(engine, RecipeRun) == 0


def test_an_input_that_there_is_not_is_said_at_the_inputs(client: FlaskClient) -> None:
    refused = client.post("/admin/recipes/new", data=form(inputs="turn = 1"))
    assert refused.status_code == 400
    assert "expected one of the inputs player, seed, seeds, turns" in refused.text


def test_the_form_says_what_a_run_will_take_and_starts_nothing(client: FlaskClient, engine: Engine) -> None:
    page = client.post("/admin/recipes/new", data=form(action="estimate")).text
    assert "By step" in page
    assert count_of(engine, RecipeRun) == count_of(engine, RoundRow) == 0


def test_a_form_is_filled_in_like_an_earlier_run(client: FlaskClient, engine: Engine) -> None:
    make_run(engine, name="mine", turns=3)
    page = client.get("/admin/recipes/new?like=1").text
    assert "turns = 3" in page
    assert "table over two seeds" in page
    assert 'value="mine"' not in page


def test_an_estimate_has_the_matches_of_all_steps(app: Flask, tmp_path: Path) -> None:
    (tmp_path / "games.yaml").write_text(GAMES)
    found = flask(app, "recipe", "run", str(tmp_path / "games.yaml"), "--estimate", "--json")
    told = json.loads(found.stdout)
    assert (told["matches"], told["jobs"], told["cost"], told["unknown"]) == (2 * 6 + 2 * 12, 4, 0.0, [])
    assert [(each["name"], each["times"]) for each in told["steps"]] == [
        ("play", 2), ("rows", 2), ("measure", 2), ("table", 1)
    ]  # fmt: skip


def test_an_estimate_takes_new_models_for_those_that_they_come_from(app: Flask, engine: Engine) -> None:
    path = ROOT / "data" / "recipes" / "stable-alignment" / "stable-alignment.yaml"
    add_local(engine, "base")
    told = json.loads(flask(app, "recipe", "run", str(path), "--set", "base=base", "--estimate", "--json").stdout)
    amounts = {each["name"]: each["amount"] for each in told["steps"]}
    # 16 held-out questions: two answers each, and by one rater two ratings of either.
    assert amounts["judge"]["calls"] == 16 * (2 + 4)
    # 50 iterations of 100 agents: a draft, 4 critiques, a revision and 4 ratings.
    assert amounts["world"]["calls"] == amounts["world_again"]["calls"] == 50 * 100 * (2 + 4 + 4)
    assert told["unknown"] == ["align"]
    assert told["cost"] == 0.0


def test_an_export_is_run_again_and_has_the_table_as_csv(app: Flask, engine: Engine, tmp_path: Path) -> None:
    number = make_run(engine)
    carry_on(engine, app.config["SETTINGS"], number)
    done = flask(app, "recipe", "export", str(number), "--table", "table")
    assert done.exit_code == 0, done.output
    printed = done.stdout
    lines = [*csv.DictReader(io.StringIO(printed))]
    assert [(each["step"], each["turn"], each["figure"], each["n"]) for each in lines] == [
        ("measure", "2", "score_mean", "2"), ("measure", "2", "agreement_rate", "2")
    ]  # fmt: skip
    target = tmp_path / "out.zip"
    assert flask(app, "recipe", "export", str(number), "--out", str(target)).exit_code == 0
    with zipfile.ZipFile(target) as archive:
        archive.extractall(tmp_path)
        steps = [*csv.DictReader(io.StringIO(archive.read("games-1/results/steps.csv").decode()))]
        assert archive.read("games-1/results/table-table.csv").decode() == printed
    assert [each["step"] for each in steps] == list(KEYS)
    assert (tmp_path / "games-1" / "games.yaml").read_text() == GAMES
    assert len(load_recipe(tmp_path / "games-1" / "games.yaml").plan.steps) == len(KEYS)
    again = flask(app, "recipe", "export", str(number), "--out", str(target))
    assert (again.exit_code, "expected a file that is not there yet" in again.stderr) == (2, True)


def test_commands_run_show_and_list(app: Flask, engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "games.yaml").write_text(GAMES)
    done = flask(app, "recipe", "run", str(tmp_path / "games.yaml"), "--set", "turns=2", "--name", "mine")
    assert done.exit_code == 0, done.output
    assert "Recipe run 1 is done." in done.stdout
    told: Any = json.loads(flask(app, "recipe", "show", "1", "--json").stdout)
    assert (told["status"], [each["key"] for each in told["steps"]]) == (
        states.DONE, [*KEYS]
    )  # fmt: skip
