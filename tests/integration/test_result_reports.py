"""Reports of results: `flask report` of everything that there are reports of, and what such a file holds."""

import csv
import io
import json
import re
import shlex
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest
from flask import Flask
from markupsafe import escape
from sqlalchemy import Engine, delete, select, update
from sqlalchemy.orm import Session

from app.core.extensions import reading, writing
from app.models import GenerationRow, LanguageModel, MatchRow, RecipeRun, RecipeStep, RoundRow, StudyVersion, Wave
from app.recipes.job import RECIPE
from app.recipes.spec import RecipeSpec
from app.registry import add_scripted_model, get_model
from app.reports.files import files_of as report_files
from app.reports.report import Report, ReportSection, plain_table
from app.studies.progress import StudyProgress
from app.studies.waves import close, freeze
from tests.assessments import carry_on as carry_on_alignment
from tests.assessments import make_alignment
from tests.campaigns import add_local, campaign_of, change, made_up, model_named, round_of, training_of
from tests.enrolments import DEAL, START, enrol, finish, load_example, open_wave, play
from tests.integration.test_recipe_sweeps import SWEPT
from tests.recipes import carry_on, make_run
from tests.rounds import add_models, haggler, make_round
from tests.rounds import play as play_round
from tests.shell import Finished
from tests.stub_openai import StubServer

Run = Callable[..., Finished]
SMALL = ("--config", "size=4", "iterations=3", "critics=2", "first_memories=2", "setting=mixed_half_half")
SOCIETY = ("society", "run", "--agents", "scripted-agent", "--observers", "scripted-observer", *SMALL, "--seed", "7")
STUDENTS = """steps:
  - name: fixed
    do: evaluate
    with: {game: negotiation, model: scripted, matches: 4, seed: 5}"""
WRITTEN = "[message] My private words"


def files_of(path: Path) -> dict[str, str]:
    """The files of an archive without its folder; those that are no text by their length."""
    with zipfile.ZipFile(path) as archive:
        found = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
    return {
        name: content.decode() if name.endswith((".html", ".csv", ".svg")) else str(len(content))
        for name, content in found.items()
    }


def test_the_page_shows_the_first_rows_of_a_long_table_and_its_file_has_all() -> None:
    rows = [(f"row {place}", "+4.79 (+4.10 to +5.20)") for place in range(50_000)]
    table = plain_table("long", "A long table.", ("Row", "Gain"), rows)
    report = Report("r", "Title", "About.", "Finding.", sections=[ReportSection("result", "Result", tables=[table])])
    files = report_files(report, lambda specs, forms: [], datetime.now(UTC))
    page = files["report.html"].decode()
    assert "The first 500 of 50,000 rows; data/long.csv has all of them." in page
    assert ">row 499<" in page
    assert ">row 500<" not in page
    assert len(page) < 300_000
    assert len(rows_of(files["data/long.csv"].decode())) == 50_000


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_report_of_a_society_stands_by_itself_with_the_data_of_every_figure(
    app: Flask, flask: Run, tmp_path: Path
) -> None:
    assert flask(*SOCIETY).exit_code == 0
    done = flask("report", "--society", "1", "--out", tmp_path / "one.zip")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith("Revising changes alignment by +")
    files = files_of(tmp_path / "one.zip")
    page = files["report.html"]
    figures = re.findall(r"<strong>Figure (\d)\.</strong>.*?data/([\w-]+\.csv)", page, re.DOTALL)
    assert figures == [("1", "ratings-1.csv"), ("2", "pareto-1.csv")]
    for _, name in figures:
        assert rows_of(files[f"data/{name}"])
        for form in ("svg", "pdf", "png"):
            assert f"figures/{name.removesuffix('.csv')}.{form}" in files
    means = [row for row in rows_of(files["data/iterations.csv"]) if row["iteration"] == ""]
    change = float(means[0]["alignment_change"])
    assert f'<dd class="figure">+{change:.2f}</dd>' in page
    for text in (
        "society 1: 7",
        "scripted-observer",
        "Prompts of agents and raters, full-",
        "git checkout" if "git checkout" in page else "make install",
    ):
        assert text in page
    assert re.search(r"(?:src|href)=\"(?!#|data:)|url\((?!data:)|<script|https?://(?!www\.w3\.org)", page) is None
    assert "style=" not in page, "the policy allows the one style alone"


def test_the_same_data_give_the_same_bytes_but_for_the_line_with_the_date(
    app: Flask, flask: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert flask(*SOCIETY).exit_code == 0
    assert flask("report", "--society", "1", "--out", tmp_path / "folder").exit_code == 0
    assert flask("report", "--society", "1", "--out", tmp_path / "page.html").exit_code == 0
    assert flask("report", "--society", "1", "--out", tmp_path / "one.zip").exit_code == 0
    archive = files_of(tmp_path / "one.zip")
    folder = {
        str(path.relative_to(tmp_path / "folder")): path.read_bytes()
        for path in (tmp_path / "folder").rglob("*")
        if path.is_file()
    }
    assert sorted(folder) == sorted(archive)
    with zipfile.ZipFile(tmp_path / "one.zip") as found:
        assert {each.external_attr >> 16 for each in found.infolist()} == {0o600}  # else unzip leaves what nobody reads
        for name in folder.keys() - {"report.html"}:
            assert found.read(f"report-society-1/{name}") == folder[name], name
    pages = [archive["report.html"], folder["report.html"].decode(), (tmp_path / "page.html").read_text()]
    dated = [re.sub(r"on \d+ \w+ \d{4}, \d\d:\d\d UTC", "on DATE", page) for page in pages]
    assert dated[0] == dated[1] == dated[2]
    assert dated[0].count("on DATE") == 1
    [line] = [line for line in pages[0].splitlines() if " UTC" in line and "Made by Parlor" in line]
    assert len(line) < 100


def test_a_campaign_says_what_its_last_model_has_over_the_base(
    app: Flask, engine: Engine, flask: Run, tmp_path: Path
) -> None:
    settings = app.config["SETTINGS"]
    for name in ("base", "loop-1", "loop-2"):
        add_local(engine, name)
    number = campaign_of(engine, "base", name="whole")
    refused = flask("report", "--campaign", number, "--out", tmp_path / "none.zip")
    assert (refused.exit_code, refused.stderr) == (
        2,
        (
            f"Error: campaign {number}: expected one whose base was evaluated, got none so far;"
            " wait for its first evaluation\n"
        ),
    )
    assert not (tmp_path / "none.zip").exists()
    evaluations = [round_of(engine, settings, "scripted", matches=24, seed=5) for _ in range(2)]
    change(engine, number, 0, evaluation_id=evaluations[0], figures=made_up(0))
    model = model_named(engine, "loop-1").id
    change(engine, number, 1, model_id=model, evaluation_id=evaluations[1], figures=made_up(2))
    done = flask("report", "--campaign", number, "--out", tmp_path / "one.zip")
    assert done.exit_code == 0, done.stderr
    files = files_of(tmp_path / "one.zip")
    page = files["report.html"]
    assert "does not clearly change" in page, "both evaluations are of the same matches"
    assert "from 1.80 to 4.45" in page
    assert "Difference on the same matches" in page
    drawn = rows_of(files[f"data/campaign-{number}.csv"])
    assert {(row["iteration"], row["column"]) for row in drawn} >= {("0", "score_mean"), ("1", "score_mean")}
    assert [row["Iteration"] for row in rows_of(files["data/iterations.csv"])] == ["0", "1"]
    assert "2 of 3 iterations are not evaluated yet." in page
    assert "campaign: 7" in page
    assert model_named(engine, "base").options["sha256"] in page
    with writing() as session:
        session.execute(delete(MatchRow).where(MatchRow.round_id == evaluations[0]))
        session.get_one(RoundRow, evaluations[0]).removed_at = datetime(2026, 5, 4, tzinfo=UTC)
    assert flask("report", "--campaign", number, "--out", tmp_path / "two.zip").exit_code == 0
    page = files_of(tmp_path / "two.zip")["report.html"]
    assert "(matches removed on 2026-05-04)" in page
    assert f"Matches of round {evaluations[0]} were removed" in page
    assert "no interval of its own: matches of an evaluation were removed." in page


def end(engine: Engine, round_id: int, without: int, points: int) -> None:
    """Make the first of a round's matches end without a deal, and all others with so many points for each seat."""
    with writing(engine) as session:
        of_round = update(MatchRow).where(MatchRow.round_id == round_id)
        session.execute(of_round.values(agreed=True, utility_0=points, utility_1=points))
        session.execute(of_round.where(MatchRow.index < without).values(agreed=False, utility_0=0, utility_1=0))


def test_a_gain_is_split_and_stands_beside_that_of_a_control(
    app: Flask, engine: Engine, flask: Run, tmp_path: Path
) -> None:
    settings = app.config["SETTINGS"]
    rounds_of = {}
    for place, (name, kept) in enumerate((("filtered", "above_avg"), ("placebo", "all"), ("elsewhere", "all"))):
        add_local(engine, f"{name}-base")
        number = campaign_of(engine, f"{name}-base", name=name, filter=kept)
        model = add_local(engine, f"{name}-1")
        seed = 5 + place // 2
        rounds = [round_of(engine, settings, "scripted", matches=24, seed=seed) for _ in range(2)]
        end(engine, rounds[0], 12, 5)
        end(engine, rounds[1], *((9, 5) if name == "placebo" else (0, 7)))
        change(engine, number, 0, evaluation_id=rounds[0], figures=made_up(0))
        change(engine, number, 1, model_id=model, evaluation_id=rounds[1], figures=made_up(2))
        rounds_of[number] = rounds
    first, control, elsewhere = rounds_of
    done = flask("report", "--campaign", first, "--control", control, "--out", tmp_path / "one.zip")
    assert done.exit_code == 0, done.stderr
    files = files_of(tmp_path / "one.zip")
    page = unescape(files["report.html"])
    parts, agreed = (
        {row["Arm"]: row for row in rows_of(files[f"data/gain-{name}.csv"])} for name in ("parts", "agreed")
    )
    assert [*agreed["filtered"].values()][1:] == ["50.0 %", "100.0 %", "5.00", "7.00"]
    assert parts["filtered"]["Gain"].startswith("+4.50 (")
    drawn = {row["row"]: float(row["value"]) for row in rows_of(files["data/gain.csv"])}
    assert drawn == pytest.approx({
        "filtered: more agreements": 3, "filtered: better agreements": 1.5,
        "placebo: more agreements": 0.625, "placebo: better agreements": 0,
    })  # fmt: skip
    assert (
        "filtered: 66.7 % of the gain of +4.50 comes from more agreements and 33.3 % from better ones: the share of"
        " agreed matches goes from 50.0 % to 100.0 % and their mean score from 5.00 to 7.00."
    ) in page
    [apart] = rows_of(files["data/gain-control.csv"])
    assert apart["Mean score minus that of the control"].startswith("+3.88 (+")
    assert [row["Iteration"] for row in rows_of(files["data/iterations.csv"])] == ["0", "1", "control, 0", "control, 1"]
    differing = {
        row["Setting"]: (row["This campaign"], row["Control"]) for row in rows_of(files["data/control-settings.csv"])
    }
    assert differing["Kept transcripts"] == ("above_avg", "all")
    assert "Campaign minus control" in page
    assert "There is no control" not in page
    for number in (first, control):
        assert f"flask campaign export {number} --out" in page
    for wrong, why in (
        (elsewhere, f"got {elsewhere}; run the control with the same seed"),
        (first, f"got {first}; run the control"),
        ("x", "control: expected a whole number"),
        (99, "one that exists, got 99"),
    ):
        assert why in flask("report", "--campaign", first, "--control", wrong).stderr
    assert "There is no control" in _report_of(flask, tmp_path, "--campaign", first)
    with writing(engine) as session:
        session.get_one(RoundRow, rounds_of[control][1]).config = {"size": 7}
    assert "with the same seed, material, settings" in flask("report", "--campaign", first, "--control", control).stderr
    assert flask("report", "--tournament", "negotiation", "--control", control).stderr == (
        f"Error: control: expected one only for a report of recipe or campaign, got '{control}'\n"
    )


def _report_of(flask: Run, tmp_path: Path, *arguments: object) -> str:
    out = tmp_path / "page.html"
    out.unlink(missing_ok=True)
    done = flask("report", *arguments, "--out", out)
    assert done.exit_code == 0, done.stderr
    return unescape(out.read_text(encoding="utf-8"))


ARMS = """\
recipe: arms
version: 1
inputs: {player: scripted, seeds: [1, 2]}
sweep:
  inputs.player: [scripted, quick]
steps:
  - name: before
    do: evaluate
    for: seed in seeds
    with: {game: negotiation, model: scripted, matches: 12, seed: "${seed}"}
  - name: measure
    do: evaluate
    for: seed in seeds
    with: {game: negotiation, model: "${player}", matches: 12, seed: "${seed}"}
  - name: later
    do: evaluate
    for: seed in seeds
    with: {game: negotiation, model: "${player}", matches: 12, seed: "${seed}"}
"""


def test_the_arms_of_a_recipe_are_split_and_compared_by_seed(
    app: Flask, engine: Engine, flask: Run, tmp_path: Path
) -> None:
    with writing(engine) as session:
        add_scripted_model(session, "quick", None, {})
    number = make_run(engine, ARMS)
    carry_on(engine, app.config["SETTINGS"], number)
    with reading(engine) as session:
        rounds = {step.key: step.number for step in RECIPE.steps_of(session, number)}
    for seed in (1, 2):
        end(engine, rounds[f"before seed={seed}"] or 0, 8, 5)
        end(engine, rounds[f"measure player=scripted, seed={seed}"] or 0, 2 * seed, 5)
        end(engine, rounds[f"measure player=quick, seed={seed}"] or 0, 0, 6)
    assert "Where the gain comes from" not in _report_of(flask, tmp_path, "--recipe", number), "nothing was trained"
    with writing(engine) as session:
        for place, name in enumerate(("scripted", "quick")):
            job = training_of(session, get_model(session, name).id)
            step = {
                "key": f"train {name}",
                "name": "train",
                "kind": "training",
                "number": job,
                "values": {},
                "spec": {},
            }
            session.add(RecipeStep(run_id=number, place=100 + place, begun_at=datetime.now(UTC), **step))
    page = _report_of(flask, tmp_path, "--recipe", number, "--control", "player=quick")
    assert re.search(r"measure player=scripted: .*the share of agreed matches goes from 33\.3 % to 75\.0 %", page)
    assert re.search(r"measure player=quick: .*the share of agreed matches goes from 33\.3 % to 100\.0 %", page)
    assert "that of the score +0.00 (+0.00 to +0.00)" in page
    assert "flask report --recipe N --control player=quick" in page
    assert "−2.25" in page, "by seed, the one has 5/6 and 4/6 of 5 points, and the control 6"
    for step in ("measure", "later"):
        assert f'<th scope="row">{step} player=scripted</th>' in page.partition("has over the control")[2][:900], step
    refused = flask("report", "--recipe", number, "--control", "player=slow").stderr
    assert refused.startswith(
        "Error: control: expected measure player=scripted or later player=scripted or measure player=quick"
    )


def test_a_recipe_shows_its_table_its_steps_and_its_file(
    app: Flask, engine: Engine, flask: Run, tmp_path: Path
) -> None:
    number = make_run(engine)
    assert "got none so far" in flask("report", "--recipe", number).stderr
    carry_on(engine, app.config["SETTINGS"], number)
    done = flask("report", "--recipe", number, "--out", tmp_path / "one.zip", "--json")
    assert done.exit_code == 0, done.stderr
    files = files_of(tmp_path / "one.zip")
    assert json.loads(done.stdout)["files"] == sorted(files)
    page = files["report.html"]
    [mean] = [row for row in rows_of(files["data/table-1.csv"]) if row["figure"] == "score_mean"]
    assert mean["n"] == "2"
    assert f"Mean score is {float(mean['value']):.2f}" in page
    assert [row["row"] for row in rows_of(files["data/table-1-score-mean.csv"])] == ["measure turn 2"]
    assert len(rows_of(files["data/steps.csv"])) == 7
    assert "recipe: games" in page
    assert ".venv/bin/flask recipe run games-1/games.yaml --set " in page
    assert " &#39;seeds=1, 2&#39; " in page
    assert ".venv/bin/flask report --recipe N" in page


def test_a_sweep_is_reported_with_its_means_and_the_command_that_sweeps_again(
    app: Flask, engine: Engine, flask: Run, tmp_path: Path
) -> None:
    file = tmp_path / "swept.yaml"
    file.write_text(SWEPT.replace("steps:", STUDENTS))
    swept = ("--sweep", "inputs.objective=-1, 0.5", "--seeds", "3-4", "--set", "turns=1")
    assert flask("recipe", "run", file, *swept).exit_code == 0
    done = flask("report", "--recipe", 1, "--out", tmp_path / "one.zip")
    assert done.exit_code == 0, done.stderr
    files = files_of(tmp_path / "one.zip")
    words = re.search(r"flask (recipe run swept-1/swept\.yaml .*)", unescape(files["report.html"]))
    assert words is not None
    unpacked = tmp_path / "swept-1"
    unpacked.mkdir()
    file.rename(unpacked / "swept.yaml")
    again = [str(tmp_path / each) if each.startswith("swept-1/") else each for each in shlex.split(words[1])]
    assert flask(*again).exit_code == 0
    with reading(engine) as session:
        first, second = (RecipeSpec.of_json(row.spec) for row in session.scalars(select(RecipeRun)))
    assert second == first.model_copy(update={"name": "swept-2", "recipe": second.recipe})
    rows = [row for row in rows_of(files["data/table-1.csv"]) if row["figure"] == "score_mean"]
    assert [(row["step"], row["objective"], row["n"]) for row in rows] == [
        ("fixed", "", "4"), ("measure", "-1.0", "2"), ("measure", "0.5", "2")
    ]  # fmt: skip


def test_a_tournament_ranks_its_players_and_names_every_pair(
    app: Flask, engine: Engine, flask: Run, tmp_path: Path
) -> None:
    number = make_run(engine)
    carry_on(engine, app.config["SETTINGS"], number)
    with writing(engine) as session:
        add_scripted_model(session, "quick", None, {})
    round_of(engine, app.config["SETTINGS"], "scripted", "quick", matches=24, swap_seats=True)
    done = flask("report", "--tournament", "negotiation", "--out", tmp_path / "one.zip")
    assert done.exit_code == 0, done.stderr
    files = files_of(tmp_path / "one.zip")
    players = [row for row in rows_of(files["data/ratings-negotiation-0-players.csv"]) if row["scope"] == "player"]
    assert [row["place"] for row in players] == ["1", "2"]
    assert (
        f"{players[0]['player']} is first with {float(players[0]['rating']):.2f} points"
        " per match" in files["report.html"]
    )
    assert len(rows_of(files["data/ratings-negotiation-0-pairs.csv"])) == 3
    beside = rows_of(files["data/side-by-side.csv"])
    assert {(row["player"], row["setting"]) for row in beside} == {
        ("scripted", "self-play"), ("scripted", "cross-play"), ("quick", "cross-play"),
    }  # fmt: skip
    assert "With other partners" in files["report.html"]
    [against] = [row for row in beside if (row["player"], row["setting"]) == ("quick", "cross-play")]
    assert f'>{float(against["score_mean"]):.2f} <span class="range">' in files["report.html"]
    unknown = flask("report", "--tournament", "chess")
    assert unknown.stderr.startswith("Error: tournament: expected a game (negotiation, taboo), GAME:λ, or the number")


def test_an_alignment_shows_its_model_beside_the_one_before(
    app: Flask, engine: Engine, flask: Run, tmp_path: Path
) -> None:
    settings = app.config["SETTINGS"]
    (settings.home / "checkpoints" / "learner").mkdir(parents=True)
    add_local(engine, "learner", str(settings.home / "checkpoints" / "learner"))
    world = {"size": 4, "iterations": 2}
    number = make_alignment(engine, "learner", "aligned", agents={"scripted-agent": 1.0}, share=0.01, society=world)
    refused = flask("report", "--alignment", number)
    assert refused.stderr.startswith(f"Error: alignment {number}: expected one with a second society or an assessment")
    carry_on_alignment(engine, settings, number, 4)
    done = flask("report", "--alignment", number, "--out", tmp_path / "one.zip")
    assert done.exit_code == 0, done.stderr
    files = files_of(tmp_path / "one.zip")
    page = files["report.html"]
    assert "The same society again" in page
    differences = rows_of(files["data/societies-all.csv"])
    assert [row["row"] for row in differences] == [
        "alignment, drafts", "alignment, revisions", "engagement, drafts", "engagement, revisions",
    ]  # fmt: skip
    assert {row["value"] for row in differences} <= {"0.0", "0"}, "both societies are the same scripted ones"
    assert len(rows_of(files["data/steps.csv"])) >= 4


def test_prompts_are_there_as_models_got_them_and_each_wording_once(
    app: Flask, engine: Engine, flask: Run, stub: StubServer, tmp_path: Path
) -> None:
    stub.script("talker", haggler)
    add_models(engine, stub.url, "talker")
    for _ in range(2):
        play_round(engine, app.config["SETTINGS"], make_round(engine, "talker", "scripted", matches=12))
    done = flask("report", "--tournament", "negotiation:0", "--out", tmp_path / "one.html")
    assert done.exit_code == 0, done.stderr
    page = (tmp_path / "one.html").read_text(encoding="utf-8")
    prompts = re.findall(r"<summary>Prompt of talker as negotiator in round (\d+)", page)
    assert prompts == ["1"], "both rounds begin by the same words"
    with reading(engine) as session:
        sent = {each.prompt[0]["content"] for each in session.scalars(select(GenerationRow))}
        assert any(str(escape(text)) in page for text in sent)  # matches begin in any order
    assert "Models behind an API can change without notice: talker." in page


def test_what_cannot_be_reported_is_refused_in_one_line(app: Flask, flask: Run, tmp_path: Path) -> None:
    for arguments, line in (
        ((), "report: expected one of --recipe, --campaign, --alignment, --study, --society, --tournament, got none"),
        (
            ("--society", "1", "--recipe", "2"),
            (
                "report: expected one of --recipe, --campaign, --alignment, --study, --society, --tournament,"
                " got --society and --recipe"
            ),
        ),
        (("--society", "x"), "society: expected a whole number from 1 to 2147483647, got 'x'"),
        (("--society", "1", "--out", str(tmp_path)), f"--out: expected a path that is not there yet, got {tmp_path}"),
        (("--study", "none"), "study: expected STUDY or STUDY:WAVE, with a study that was loaded, got 'none'"),
    ):
        refused = flask("report", *arguments)
        assert (refused.exit_code, refused.stderr) == (2, f"Error: {line}\n")


# ---- Studies -------------------------------------------------------------------------


def person(session: Session, wave: Wave, code: str, **options: object) -> StudyProgress:
    return enrol(session, wave, code, session.get_one(StudyVersion, wave.study_version_id), **options)  # type: ignore[arg-type]


def take_part(session: Session, wave: Wave, code: str, number: int) -> None:
    """Somebody who played all four matches, and wrote something that no report may hold."""
    progress = person(session, wave, code, at=START + timedelta(minutes=number))
    for position in range(4):
        play(session, progress, position, (f"{WRITTEN} {code}.", *DEAL[1:]))
    finish(session, progress)


def test_a_study_is_reported_of_its_frozen_waves_alone_and_without_peoples_words(
    app: Flask, engine: Engine, flask: Run, tmp_path: Path
) -> None:
    with writing() as session:
        version = load_example(session, tmp_path)
        wave = open_wave(session, version)
        later = open_wave(session, version, name="later")
        for place in range(3):
            take_part(session, wave, f"P{place}", place)
        take_part(session, later, "Q1", 9)
        finish(session, person(session, wave, "P9"), "withdrawn")
    refused = flask("report", "--study", "two-models")
    assert refused.stderr.startswith("Error: two-models: expected a study with a frozen wave")
    with writing() as session:
        for wave in session.scalars(select(Wave).where(Wave.name == "main")):
            close(session, wave)
            freeze(session, wave)
    done = flask("report", "--study", "two-models", "--out", tmp_path / "one.zip")
    assert done.exit_code == 0, done.stderr
    files = files_of(tmp_path / "one.zip")
    page = files["report.html"]
    assert "Not in it, as they are not frozen: later." in page
    assert [row["Wave"] for row in rows_of(files["data/flow.csv"])] == ["main"]
    conditions = rows_of(files["data/outcomes.csv"])
    assert len(conditions) == 4
    assert {row["n"] for row in conditions} == {"3"}
    assert {row["no_interval"] for row in conditions} == {"fewer than 10 people"}
    with reading(engine) as session:
        pinned = session.scalars(select(LanguageModel.name)).all()
        digest = session.scalars(select(StudyVersion.sha256)).one()
    assert digest in page
    assert any(name in page for name in pinned)
    for name, text in files.items():
        assert WRITTEN.partition("] ")[2] not in text, name
        assert re.search(r"\bP[0-9]\b", text) is None, f"{name} names a participant"


def test_frozen_waves_of_different_designs_are_reported_one_by_one(
    app: Flask, engine: Engine, flask: Run, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    with writing() as session:
        waves = [
            open_wave(session, load_example(session, first)),
            open_wave(session, load_example(session, second, **{"b: casual}": "c: casual}"}), name="later"),
        ]
        for wave in waves:
            close(session, wave)
            freeze(session, wave)
    refused = flask("report", "--study", "two-models").stderr
    assert "got the versions two-models@1, two-models@2, which differ in it" in refused
    assert "name one wave: two-models:main, two-models:later" in refused
    done = flask("report", "--study", "two-models:later", "--out", tmp_path / "one.zip")
    assert done.exit_code == 0, done.stderr
