"""Sweeps in recipes: every cell's job once, figures over seeds, curves; as pages, commands and programs see them."""

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, select, update

from app.core.config import ROOT
from app.core.extensions import reading, writing
from app.jobs import states
from app.models import Dataset, RecipeRun, RecipeStep, RoundRow
from app.recipes.job import RECIPE
from app.recipes.listing import lines_of
from app.recipes.sweep_results import SweepResults, results_of
from app.registry import add_local_model
from tests.checkpoints import word_model
from tests.experimenter import signed_in
from tests.integration.test_cli_society import flask
from tests.integration.test_recipes import _Killed, _killed_at
from tests.recipes import came_of, carry_on, count_of, make_run, make_run_of_file, row_of

SWEPT = """\
recipe: swept
version: 1
inputs: {player: scripted, objective: 0.0, turns: 2}
sweep:
  seeds: 1..2
  inputs.objective: [-1, 0.5]
steps:
  - name: teach
    do: round
    with: {game: negotiation, models: [scripted], matches: 2, seed: 5}
  - name: play
    do: round
    for: turn in 1..turns
    with: {game: negotiation, models: ["${player}"], matches: 2, config: {objective: "${objective}"}}
  - name: measure
    do: evaluate
    for: turn in 1..turns
    with: {game: negotiation, model: "${player}", matches: 6, config: {objective: "${objective}"}}
"""
JOBS = 1 + 2 * 2 * 2 * 2


@pytest.fixture
def settings(app: Flask) -> Any:
    return app.config["SETTINGS"]


def results(engine: Engine, number: int) -> SweepResults:
    with reading(engine) as session:
        row = RECIPE.get(session, number)
        return results_of(row, lines_of(session, row))


def test_a_sweep_has_the_mean_of_its_seeds_for_each_value_and_turn(engine: Engine, settings: Any) -> None:
    number = make_run(engine, SWEPT)
    before = results(engine, number)
    assert [[cell.state for cell in line.cells] for line in before.grid] == [["not begun"] * 2] * 2
    assert before.curve() is None
    carry_on(engine, settings, number, jobs=1)
    carry_on(engine, settings, number, jobs=1)
    halfway = results(engine, number)
    assert [[(cell.state, cell.done) for cell in line.cells] for line in halfway.grid] == [
        [("running", 2), ("not begun", 1)], [("not begun", 1), ("not begun", 1)]
    ]  # fmt: skip
    carry_on(engine, settings, number)
    assert (row_of(engine, number).status, row_of(engine, number).error) == (states.DONE, None)
    assert count_of(engine, RoundRow) == JOBS
    found = results(engine, number)
    assert [[(cell.state, cell.done, cell.of) for cell in line.cells] for line in found.grid] == [
        [("done", 5, 5)] * 2
    ] * 2
    with reading(engine) as session:
        scores = {
            (step.values["objective"], step.values["turn"], step.values["seed"]): step.figures["score_mean"]["value"]
            for step in RECIPE.steps_of(session, number)
            if step.name == "measure" and step.figures is not None
        }
        seeds = {
            step.key: session.get_one(RoundRow, step.number).seed
            for step in RECIPE.steps_of(session, number)
            if step.name == "play"
        }
    for row in found.table["rows"]:
        at = row["values"]["objective"], row["values"]["turn"]
        mean = row["figures"]["score_mean"]
        assert mean["value"] == pytest.approx((scores[*at, 1] + scores[*at, 2]) / 2)
        assert mean["n"] == 2
        # Student's t with one degree of freedom, by the standard error of two values.
        half = 12.7062 * abs(scores[*at, 1] - scores[*at, 2]) / 2
        assert mean["high"] - mean["value"] == pytest.approx(half, rel=1e-4, abs=1e-9)
    assert len(found.table["rows"]) == 4
    assert seeds["play objective=-1.0, seed=1, turn=1"] == seeds["play objective=0.5, seed=1, turn=1"]
    assert len(set(seeds.values())) == 4


def test_curves_run_across_the_swept_field_and_over_turns(engine: Engine, settings: Any) -> None:
    number = make_run(engine, SWEPT.replace("[-1, 0.5]", "[-1, 0.5, 1]"), turns=2)
    carry_on(engine, settings, number)
    found = results(engine, number)
    across = found.curve("score_mean")
    assert across is not None
    means = {
        (row["values"]["objective"], row["values"]["turn"]): row["figures"]["score_mean"]["value"]
        for row in found.table["rows"]
    }
    assert [(each["at"], each["value"]) for each in across.data] == [(at, means[at, 2]) for at in (-1.0, 0.5, 1.0)]
    spec = across.spec()
    assert spec["encoding"]["x"]["type"] == "quantitative"
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["area", "line", "point"]
    over = found.curve("score_mean", "turn")
    assert over is not None
    assert [(each["line"], each["at"], each["value"]) for each in over.data] == [
        (f"objective={at}", turn, means[at, turn]) for at in (-1.0, 0.5, 1.0) for turn in (1, 2)
    ]
    assert over.described.rows[0][:3] == ("1", "objective=-1.0", f"{means[-1.0, 1]:.4g}")


def test_a_field_of_words_is_drawn_in_groups(engine: Engine, settings: Any) -> None:
    text = SWEPT.replace("inputs.objective: [-1, 0.5]", "inputs.objective: [self, coop]").replace("0.0", "self")
    number = make_run(engine, text, turns=1)
    carry_on(engine, settings, number)
    chart = results(engine, number).curve()
    assert chart is not None
    assert [each["at"] for each in chart.data] == ["self", "coop"]
    assert chart.spec()["encoding"]["x"]["type"] == "nominal"
    assert [layer["mark"]["type"] for layer in chart.spec()["layer"]] == ["rule", "point"]


@pytest.mark.either_database
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_sweep_that_is_killed_at_any_commit_has_each_cells_jobs_once(
    engine: Engine, settings: Any, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    calm = make_run(engine, SWEPT, name="calm", turns=1)
    carry_on(engine, settings, calm)
    rounds, expected = count_of(engine, RoundRow), came_of(engine, calm)
    killed = make_run(engine, SWEPT, name="killed", turns=1)
    deaths = 0
    for commit in range(200):
        with monkeypatch.context() as patched:
            _killed_at(patched, commit % 7, before=before)
            try:
                part = carry_on(engine, settings, killed, jobs=1)
            except _Killed:
                deaths += 1
            else:
                if part is None and row_of(engine, killed).status == states.DONE:
                    break
        with writing(engine) as session:
            session.execute(update(RecipeRun).values(lease_until=None, lease_owner=None))
    assert deaths > 10
    assert came_of(engine, killed) == expected
    assert count_of(engine, RoundRow) == 2 * rounds
    with reading(engine) as session:
        jobs = session.execute(select(RecipeStep.kind, RecipeStep.number).where(RecipeStep.number.is_not(None))).all()
    assert len(set(jobs)) == len(jobs)


def test_the_page_of_a_sweep_has_its_cells_charts_and_figures(app: Flask, engine: Engine, settings: Any) -> None:
    client = signed_in(app)
    number = make_run(engine, SWEPT, turns=1)
    page = client.get(f"/admin/recipes/{number}").text
    assert "Cells of its sweep" in page
    assert "Figures and curves appear here" in page
    carry_on(engine, settings, number)
    page = client.get(f"/admin/recipes/{number}?figure=agreement_rate").text
    assert "agreement rate across objective" in page
    assert "agreement rate across turn" in page
    assert page.count("5 of 5") == 0
    assert page.count("3 of 3") >= 4
    refused = client.get(f"/admin/recipes/{number}?figure=luck").text
    assert "luck" in refused.split('role="alert"')[1].split("</p>")[0]
    assert "score mean across objective" in refused
    told = client.get(f"/admin/recipes/{number}/sweep.csv").text
    lines = [*csv.DictReader(io.StringIO(told.lstrip("\ufeff")))]
    assert {(line["objective"], line["n"]) for line in lines} == {("-1.0", "2"), ("0.5", "2")}
    without = make_run(engine, SWEPT.split("sweep:")[0] + "steps:" + SWEPT.split("steps:")[1], name="plain")
    assert "Cells of its sweep" not in client.get(f"/admin/recipes/{without}").text
    assert client.get(f"/admin/recipes/{without}/sweep.csv").status_code == 404


def test_a_form_sweeps_and_says_at_its_fields_what_cannot_be(app: Flask, engine: Engine) -> None:
    client = signed_in(app)
    given = {
        "recipe": "upload", "recipe_text": SWEPT, "recipe_name": "swept.yaml", "inputs": "", "name": "", "like": "",
        "agreed": "", "budget_usd": "", "budget_tokens": "", "action": "start", "seeds": "4-6",
        "sweep": "inputs.objective = 0..1 by 0.5",
    }  # fmt: skip
    refused = client.post("/admin/recipes/new", data={**given, "sweep": "play.machtes = 1, 2"})
    assert refused.status_code == 400
    assert "expected one of the fields game" in refused.text
    assert client.post("/admin/recipes/new", data={**given, "seeds": "many"}).status_code == 400
    assert count_of(engine, RecipeRun) == 0
    assert client.post("/admin/recipes/new", data=given).status_code == 303
    found = results(engine, 1).sweep
    assert (found.axes[0].values, found.seeds) == ((0.0, 0.5, 1.0), (4, 5, 6))
    again = client.get("/admin/recipes/new?like=1").text
    assert "inputs.objective = 0..1 by 0.5" in again
    assert 'value="4-6"' in again


def test_commands_and_programs_estimate_run_and_show_a_sweep(app: Flask, engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "swept.yaml"
    file.write_text(SWEPT)
    line = ("recipe", "run", str(file), "--sweep", "inputs.objective=-1,0,1", "--seeds", "1-2", "--set", "turns=1")
    estimated = json.loads(flask(app, *line, "--estimate", "--json").stdout)
    assert (estimated["jobs"], estimated["matches"]) == (1 + 3 * 2 * 2, 2 + 3 * 2 * 8)
    ran = flask(app, *line)
    assert ran.stderr.startswith("6 cells: 13 jobs, 0 calls for about 0.00 USD, about ")
    shown = flask(app, "recipe", "show", "1", "--sweep", "--figure", "score_mean").stdout.splitlines()
    assert shown[0].split() == ["objective", "seed", "1", "seed", "2"]
    assert shown[1].split() == ["-1.0", "done", "3/3", "done", "3/3"]
    table = [*csv.DictReader(io.StringIO(flask(app, "recipe", "show", "1", "--csv", "--figure", "score_mean").stdout))]
    assert [(row["objective"], row["figure"], row["n"]) for row in table] == [
        (at, "score_mean", "2") for at in ("-1.0", "0.0", "1.0")
    ]
    told = json.loads(flask(app, "recipe", "show", "1", "--json").stdout)
    assert told["spec"]["seeds"] == "1-2"
    scores = [each for each in told["sweep"] if each["figure"] == "score_mean"]
    assert [(each["values"]["objective"], each["n"]) for each in scores] == [(-1.0, 2), (0.0, 2), (1.0, 2)]
    flask(app, "recipe", "show", "1", "--chart", str(tmp_path / "curve.svg"))
    assert (tmp_path / "curve.svg").read_text().startswith("<svg")
    flask(app, "recipe", "export", "1", "--out", str(tmp_path / "all.zip"))
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert "swept-1/results/sweep.csv" in archive.namelist()
    refused = flask(app, "recipe", "show", "1", "--chart", str(tmp_path / "curve.svg"), "--across", "luck")
    assert refused.exit_code == 2
    assert "expected objective or turn, got 'luck'" in refused.stderr


INPUTS: dict[str, dict[str, Any]] = {
    "sweep-objective": {"base": "base", "filter": "all", "matches": 4, "held_out": 2, "rounds": 1},
    "sweep-filter": {"base": "base", "matches": 4, "held_out": 2, "rounds": 1},
    "sweep-learning-rate": {"base": "base", "matches": 6, "held_out": 2},
}


@pytest.mark.long
@pytest.mark.parametrize("name", INPUTS)
def test_the_sweeps_that_ship_run_to_their_end(
    home: Path, engine: Engine, settings: Any, tmp_path: Path, name: str
) -> None:
    sha256 = word_model(home / "checkpoints" / "base")
    with writing(engine) as session:
        options = {"path": "checkpoints/base", "sha256": sha256}
        add_local_model(session, "base", None, ["negotiation"], options, prompt_style="compact")
    text = (ROOT / "data" / "recipes" / f"{name}.yaml").read_text()
    # Scripted players make the rows, as those of a model of so few words hold nothing to learn from.
    text = text.replace('"${previous.train.model or base}"]', "scripted]").replace("seeds: 1..3", "seeds: 1..2")
    text = text.replace("{method: sft,", "{method: sft, config: {max_steps: 1, threads: 1},")
    text = text.replace("-1..1 by 0.5", "[-1, 1]").replace("[all, nonzero, above_avg]", "[all, above_avg]")
    text = text.replace('filter: "${filter}"', 'filter: "${filter}", style: compact').replace(
        'rounds: ["${play.round}"]}', 'rounds: ["${play.round}"], style: compact}'
    )
    (tmp_path / f"{name}.yaml").write_text(text)
    number = make_run_of_file(engine, tmp_path / f"{name}.yaml", **INPUTS[name])
    carry_on(engine, settings, number)
    assert (row_of(engine, number).status, row_of(engine, number).error) == (states.DONE, None)
    found = results(engine, number)
    assert {cell.state for line in found.grid for cell in line.cells} == {"done"}
    assert found.curve() is not None
    assert count_of(engine, Dataset) == (1 if name == "sweep-learning-rate" else 4)
