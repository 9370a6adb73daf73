"""`flask analyze`: figures in the terminal, as JSON and as charts."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from flask import Flask
from sqlalchemy import Engine

from app.analysis.tables import analysis_columns
from app.core.extensions import writing
from app.games.negotiation.claims import CLAIMS_VERSION
from app.registry import add_scripted_model
from app.rounds import matrix
from app.rounds.spec import RoundSpec
from tests.figures import NEGOTIATION, TABOO
from tests.rounds import CONTEXTS, add_models, make_round, play
from tests.shell import Finished

Run = Callable[..., Finished]


@pytest.fixture
def run(flask: Run) -> Run:
    return lambda *arguments: flask("analyze", *arguments)


@pytest.fixture
def negotiation(app: Flask, engine: Engine) -> int:
    return played(app, engine)


def played(app: Flask, engine: Engine, **wish: Any) -> int:
    round_id = make_round(engine, "scripted", **wish)
    play(engine, app.config["SETTINGS"], round_id)
    return round_id


def test_a_round_is_a_table_with_intervals(run: Run, negotiation: int) -> None:
    result = run("--round", negotiation)
    assert result.exit_code == 0, result.stderr
    assert f"Round {negotiation}: scripted and scripted, negotiation, λ = 0, 30 matches" in result.stdout
    [line] = [line for line in result.stdout.splitlines() if line.startswith("  mean score (points)")]
    assert " to " in line
    assert all(column.title in result.stdout for column in NEGOTIATION.columns.values())


def test_a_round_of_two_models_leads_with_each_and_what_one_has_over_the_other(
    app: Flask, engine: Engine, run: Run
) -> None:
    with writing(engine) as session:
        add_scripted_model(session, "casual", None, {"manner": "casual"})
    swapped, given = (
        make_round(engine, "casual", "scripted", matches=24, swap_seats=swap_seats) for swap_seats in (True, False)
    )
    for number in (swapped, given):
        play(engine, app.config["SETTINGS"], number)
    told = run("--round", swapped, "--round", given).stdout
    each, pooled = told.index(f"casual in round {swapped}"), told.index("  agreement")
    assert each < told.index(f"casual minus scripted in round {swapped}, paired by 12 seeds, each played") < pooled
    assert "paired by 24 matches, whose seats were not swapped; casual always had the first seat" in told
    first, second = json.loads(run("--round", swapped, "--round", given, "--json").stdout)["rounds"]
    for found, pairing, pairs in ((first, "seeds", 12), (second, "matches", 24)):
        means = {part["model"]: part["columns"]["score_mean"]["value"] for part in found["by_model"]}
        score = found["paired"]["columns"]["score_mean"]
        assert score["value"] == pytest.approx(means["casual"] - means["scripted"])
        assert (found["paired"]["first"], found["paired"]["pairing"], score["n"]) == ("casual", pairing, pairs)
        assert score["low"] <= score["value"] <= score["high"]
    rows = list(csv.DictReader(io.StringIO(run("--round", swapped, "--csv").stdout)))
    assert [(row["scope"], row["model"], row["against"]) for row in rows] == [
        ("round", "", ""), ("model", "casual", ""), ("model", "scripted", ""), ("difference", "casual", "scripted"),
    ]  # fmt: skip
    assert [row["pairing"] for row in rows] == ["", "", "", "seeds"]
    assert (float(rows[-1]["score_mean"]), rows[-1]["score_mean_n"]) == (
        first["paired"]["columns"]["score_mean"]["value"],
        "12",
    )


def test_json_has_every_column_under_its_name(app: Flask, engine: Engine, run: Run, negotiation: int) -> None:
    taboo = played(app, engine, game="taboo")
    said = json.loads(run("--round", taboo, "--round", negotiation, "--json").stdout)
    first, second = said["rounds"]
    assert set(first["columns"]) == set(TABOO.columns)
    assert set(second["columns"]) == set(NEGOTIATION.columns)
    assert set(second["columns"]["score_mean"]) == {"value", "low", "high", "n", "no_interval"}
    assert (first["round_id"], first["complete"], first["models"]) == (taboo, True, ["scripted"])
    assert (first["claims_version"], second["claims_version"]) == (None, CLAIMS_VERSION)
    assert (said["matrix"], said["charts"]) == (None, [])


def test_csv_has_a_row_a_round_and_a_row_a_model_in_it(app: Flask, engine: Engine, run: Run, negotiation: int) -> None:
    taboo = played(app, engine, game="taboo")
    told = json.loads(run("--round", negotiation, "--round", taboo, "--json").stdout)["rounds"]
    rows = list(csv.DictReader(io.StringIO(run("--round", negotiation, "--round", taboo, "--csv").stdout)))
    assert list(rows[0]) == [column.name for column in analysis_columns()]
    assert [(row["round_id"], row["scope"], row["model"], row["role"], row["matches"]) for row in rows] == [
        (str(negotiation), "round", "scripted", "", "30"),
        (str(taboo), "round", "scripted", "", "30"),
        *((str(taboo), "model", "scripted", role, "30") for role in ("attacker", "defender")),
    ]
    assert [row["claims_version"] for row in rows] == [str(CLAIMS_VERSION), "", "", ""]
    for row, figures in zip(rows, [told[0], told[1], *told[1]["by_model"]], strict=True):
        for name, figure in figures["columns"].items():
            for end in ("value", "low", "high"):
                cell = row[name if end == "value" else f"{name}_{end}"]
                assert (float(cell) if cell else None) == figure[end]
            assert int(row[f"{name}_n"] or 0) == figure["n"]
    assert float(rows[0]["agreed_messages_mean"]) > 0
    assert (rows[0]["turns_mean"], rows[1]["score_mean"]) == ("", "")
    refused = run("--round", negotiation, "--csv", "--json")
    assert (refused.exit_code, refused.stderr.count("\n"), refused.stdout) == (2, 1, "")


def test_the_same_round_is_told_in_the_same_words(run: Run, negotiation: int) -> None:
    assert run("--round", negotiation, "--json").stdout == run("--round", negotiation, "--json").stdout


def test_charts_are_written_whole_and_replace_older_ones(
    app: Flask, engine: Engine, run: Run, negotiation: int, tmp_path: Path
) -> None:
    other = played(app, engine, seed=8)
    folder = tmp_path / "new" / "charts"
    folder.mkdir(parents=True)
    (folder / f"score-{negotiation}.svg").write_text("old")
    said = json.loads(run("--round", negotiation, "--round", other, "--charts", folder, "--json").stdout)
    assert sorted(map(str, folder.glob("*.svg"))) == sorted(said["charts"])
    assert {path.stem for path in folder.glob("*.csv")} == {Path(name).stem for name in said["charts"]}
    assert {Path(name).stem.rpartition("-")[0] for name in said["charts"]} == {
        "score", "outcomes", "messages", "words", "first-proposal", "compare-score",
    }  # fmt: skip
    for name in said["charts"]:
        assert ElementTree.parse(name).getroot().tag.endswith("svg")  # noqa: S314 our own


def test_charts_can_be_pictures_in_the_dark(run: Run, negotiation: int, tmp_path: Path) -> None:
    result = run("--round", negotiation, "--charts", tmp_path, "--format", "png", "--theme", "dark")
    assert result.exit_code == 0, result.stderr
    assert "Wrote 5 charts" in result.stdout
    assert (tmp_path / f"score-{negotiation}.png").read_bytes().startswith(b"\x89PNG")


def test_a_cross_play_is_a_matrix(app: Flask, engine: Engine, run: Run, tmp_path: Path) -> None:
    add_models(engine, "http://127.0.0.1:9/v1", "other")
    with writing(engine) as session:
        spec = RoundSpec(game="negotiation", models=("scripted", "other"), cross_play=True, matches=4, seed=3)
        rows = matrix.create(session, spec, CONTEXTS, queued=False)
        first = rows[0].id
    play(engine, app.config["SETTINGS"], first)
    result = run("--matrix", first, "--charts", tmp_path)
    assert "4 of 12 matches" in result.stdout
    assert "scripted against scripted" in result.stdout
    assert (tmp_path / f"cross-play-{first}.svg").exists()
    pairs = list(csv.DictReader(io.StringIO(run("--matrix", first, "--csv").stdout)))
    assert [(row["scope"], row["model"], row["against"], row["matches"]) for row in pairs] == [
        ("pair", "scripted", "scripted", "4")
    ]
    assert float(pairs[0]["score_mean"]) > 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "expected the number of a round"),
        (["--round", "99"], "expected the number of one that exists, got 99"),
        (["--matrix", "99"], "expected the number of one that exists, got 99"),
        (["--round", "x"], "'x' is not a valid integer"),
    ],
)
def test_what_cannot_be_told_is_refused_in_one_line(run: Run, arguments: list[str], line: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert line in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_round_without_a_match_that_is_over_is_refused(engine: Engine, run: Run) -> None:
    result = run("--round", make_round(engine, "scripted", matches=3))
    assert result.exit_code == 2
    assert "expected one with matches that are over, got none of 3 over" in result.stderr


def test_a_folder_that_cannot_be_is_refused_and_nothing_is_left(run: Run, negotiation: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("--round", negotiation, "--charts", tmp_path / "file")
    assert result.exit_code == 2
    assert "expected a folder that can be written to" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_web_process_does_not_load_what_draws_files() -> None:
    code = "import sys, app.factory; print('vl_convert' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
