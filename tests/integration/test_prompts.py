"""System prompts: versions that never change, told to models and to nobody else, recorded, exported and chosen by."""

import csv
import io
import json
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine, select

from app.analysis.headline import prompt_scores
from app.core.config import Settings
from app.core.errors import AppError
from app.core.extensions import reading, writing
from app.matches.filter import conditions, read_choice
from app.matches.stored import StoredMatch, load
from app.matches.views import seat_view
from app.models import GenerationRow, MatchRow, PromptRow, SeatRow
from app.registry.prompts import add_prompt, find_prompt
from app.rounds import lifecycle
from app.rounds.job import ROUND
from app.studies import matches as study_matches
from tests.datasets import cut, rows_of
from tests.experimenter import signed_in
from tests.integration.test_cli_society import flask
from tests.recipes import carry_on, make_run
from tests.rounds import add_models, haggler, make_round, play
from tests.stub_openai import StubServer
from tests.study_matches import enrolled, go_to, loaded

pytestmark = pytest.mark.usefixtures("vendor_environment")
TERSE, KIND = "You are terse: say as little as you can.", "You are kind: praise your partner."


@pytest.fixture
def settings(app: Flask) -> Settings:
    found: Settings = app.config["SETTINGS"]
    return found


@pytest.fixture
def prompts(engine: Engine, stub: StubServer) -> None:
    """Two prompts, and two models that haggle."""
    for name in ("one", "two"):
        stub.script(name, lambda messages: haggler([each for each in messages if each["role"] != "system"]))
    add_models(engine, stub.url, "one", "two")
    with writing(engine) as session:
        add_prompt(session, "terse", TERSE, "a test")
        add_prompt(session, "kind", KIND, "a test")


def sent_to(record: StoredMatch, seat: int) -> str:
    """All that is sent to a seat."""
    return json.dumps(seat_view(record.id, record.match, [""] * record.match.ply, seat), default=str)


@pytest.mark.either_database
def test_other_words_are_another_version_and_the_same_are_none(engine: Engine) -> None:
    with writing(engine) as session:
        named = [add_prompt(session, "terse", text, "me") for text in (TERSE, f" {TERSE}\r\n", KIND, TERSE)]
        assert [row.version for row in named] == [1, 1, 2, 3]
    with reading(engine) as session:
        assert find_prompt(session, "terse").version == 3
        assert find_prompt(session, "terse@2").text == KIND
        for wrong in ("terse@4", "tense", "terse@x"):
            with pytest.raises(AppError, match="expected the name of an existing prompt, or NAME@VERSION"):
                find_prompt(session, wrong)
    for name, text in (("Terse", TERSE), ("none", TERSE), ("terse", "  "), ("terse", "x" * 8001)):
        with writing(engine) as session, pytest.raises(AppError, match="expected"):
            add_prompt(session, name, text, "me")


@pytest.mark.usefixtures("prompts")
@pytest.mark.either_database
def test_each_model_of_a_round_is_told_its_own_and_the_partner_never_sees_it(
    app: Flask, engine: Engine, settings: Settings
) -> None:
    number = make_round(engine, "one", "two", matches=4, swap_seats=True, prompts=["terse", "kind@1"])
    play(engine, settings, number)
    with reading(engine) as session:
        for model, own, other in (("one", TERSE, KIND), ("two", KIND, TERSE)):
            calls = session.scalars(select(GenerationRow).where(GenerationRow.model == model)).all()
            assert calls
            for call in calls:
                assert call.prompt[0] == {"role": "system", "content": own}
                assert other not in json.dumps(call.prompt)
        for seat in session.scalars(select(SeatRow)):
            record = load(session, seat.match_id)
            spec = record.seats[seat.seat].spec
            assert spec is not None
            assert seat.prompt == {"one": "terse@1", "two": "kind@1"}[spec.name]
            assert "terse" not in sent_to(record, seat.seat)
        assert lifecycle.spec_of(session, ROUND.get(session, number)).prompts == ("terse@1", "kind@1")
        found = session.scalars(select(MatchRow.id).where(*conditions(read_choice({"prompt": "terse"})))).all()
        assert len(found) == 4
        assert not session.scalars(select(MatchRow.id).where(*conditions(read_choice({"prompt": "terse@2"})))).all()
    exported = [*csv.DictReader(io.StringIO(flask(app, "export", "matches").stdout))]
    assert {(row["player_0"], row["system_prompt_0"], row["system_prompt_1"]) for row in exported} == {
        ("one", "terse@1", "kind@1"), ("two", "kind@1", "terse@1")
    }  # fmt: skip
    refused = flask(app, "analyze", "--prompt", "nothing")
    assert refused.exit_code == 2
    assert "expected the name of an existing prompt" in refused.stderr


@pytest.mark.usefixtures("prompts")
def test_rows_of_datasets_hold_what_the_model_was_told(engine: Engine, settings: Settings, home: Path) -> None:
    number = make_round(engine, "one", matches=4, prompts=["terse"])
    play(engine, settings, number)
    rows = rows_of(home, cut(engine, home, rounds=[number], filter="all"))
    assert rows
    assert all(row["messages"][0] == {"role": "system", "content": TERSE} for row in rows)


@pytest.mark.usefixtures("prompts")
def test_what_cannot_be_told_is_refused_and_no_round_is_made(app: Flask, engine: Engine) -> None:
    for given in (["tense"], ["terse", "kind", "terse"], ["terse@9"]):
        with pytest.raises(AppError):
            make_round(engine, "one", prompts=given)
    refused = flask(app, "round", "run", "negotiation", "--models", "one", "--prompts", "tense")
    assert refused.exit_code == 2
    assert "prompts: expected the name of an existing prompt, or NAME@VERSION, got 'tense'" in refused.stderr


SWEPT = """\
recipe: told
version: 1
sweep: {measure.prompt: [terse@1, kind@1]}
steps:
  - name: measure
    do: evaluate
    with: {game: negotiation, model: one, against: two, matches: 4}
"""


@pytest.mark.usefixtures("prompts")
def test_prompts_are_swept_as_any_field_is(engine: Engine, settings: Settings) -> None:
    number = make_run(engine, SWEPT)
    carry_on(engine, settings, number)
    with reading(engine) as session:
        told = session.execute(select(SeatRow.prompt, SeatRow.match_id)).all()
        assert sorted(str(prompt) for prompt, _ in told) == ["None"] * 8 + ["kind@1"] * 4 + ["terse@1"] * 4


@pytest.mark.usefixtures("prompts")
def test_a_recipe_names_versions_so_that_all_of_its_steps_tell_the_same(engine: Engine) -> None:
    for wrong, said in (("kind", "kind@1 is its newest version"), ("kind@9", "NAME@VERSION, got 'kind@9'")):
        with pytest.raises(AppError, match=said):
            make_run(engine, SWEPT.replace("kind@1", wrong))
    played = "{game: negotiation, models: [one], matches: 4, prompts: [none, terse]}"
    with pytest.raises(AppError, match="terse@1 is its newest version"):
        make_run(engine, f"recipe: told\nversion: 1\nsteps:\n  - {{name: play, do: round, with: {played}}}\n")


@pytest.mark.usefixtures("prompts")
def test_a_condition_of_a_study_has_its_partner_told(engine: Engine, tmp_path: Path) -> None:
    changed = (
        ("b: tiny", "b: one"),
        ("objective: [self, coop]", "objective: [self, coop]\n  prompt: {short: terse@1}"),
    )
    with writing(engine) as session:
        version = loaded(session, tmp_path, "two-models", *changed)
        progress = enrolled(session, version, condition={"model": "b", "objective": "self", "prompt": "short"})
        counted = next(step for step in progress.steps if step.kind == "match")
        record = study_matches.start(session, progress, go_to(progress, counted.key))
        seats = {seat.kind: seat for seat in session.scalars(select(SeatRow).where(SeatRow.match_id == record.id))}
        assert (seats["model"].prompt, seats["person"].prompt) == ("terse@1", None)
        prompt = record.match.prompts[seats["model"].seat]
        assert prompt is not None
        assert prompt["system"]["text"] == TERSE
        assert TERSE not in sent_to(record, seats["person"].seat)
    with (
        writing(engine) as session,
        pytest.raises(AppError, match=r"conditions\.prompt: expected the name of an existing prompt"),
    ):
        loaded(session, tmp_path, "two-models", changed[0], (changed[1][0], changed[1][1].replace("terse@1", "lost@1")))


def test_prompts_are_added_and_shown_by_page_and_command(app: Flask, engine: Engine, tmp_path: Path) -> None:
    client = signed_in(app)
    assert "There are none yet." in client.get("/admin/models/prompts").text
    assert client.post("/admin/models/prompts", data={"name": "kind", "text": KIND}).status_code == 303
    refused = client.post("/admin/models/prompts", data={"name": "Kind one", "text": "Some words"})
    assert refused.status_code == 400
    assert "Some words" in refused.text
    (tmp_path / "kind.txt").write_text(TERSE)
    assert flask(app, "prompt", "add", "kind", "--file", str(tmp_path / "kind.txt")).stdout == "kind@2\n"
    assert flask(app, "prompt", "show", "kind@1").stdout == f"{KIND}\n"
    told = json.loads(flask(app, "prompt", "show", "kind", "--json").stdout)
    assert (told["prompt"], told["text"], len(told["sha256"])) == ("kind@2", TERSE, 64)
    assert "kind@1" in flask(app, "prompt", "list").stdout
    page = client.get("/admin/models/prompts").text
    assert page.index("kind@2") < page.index("kind@1")
    assert 'href="/admin/matches?prompt=kind@2">Matches with kind@2</a>' in page
    oldest_first = client.get("/admin/models/prompts?sort=created_at").text
    assert oldest_first.index("kind@1") < oldest_first.index("kind@2")
    lines = client.get("/admin/models/prompts?sort=prompt&format=csv").text
    assert lines == flask(app, "prompt", "list", "--sort", "prompt", "--csv").stdout
    assert client.get("/admin/models/prompts?sort=colour").status_code == 400
    assert flask(app, "prompt", "add", "kind").exit_code == 2
    with reading(engine) as session:
        assert session.scalars(select(PromptRow.created_by).order_by(PromptRow.id)).all() == [
            "admin",
            "the command line",
        ]


@pytest.mark.usefixtures("prompts")
def test_a_round_of_one_model_is_compared_by_what_it_was_told(app: Flask, engine: Engine, settings: Settings) -> None:
    number = make_round(engine, "one", matches=4, swap_seats=True, prompts=["terse", "kind"])
    play(engine, settings, number)
    with reading(engine) as session:
        told: dict[str, list[float]] = {"terse@1": [], "kind@1": []}
        for seat, first, second in session.execute(
            select(SeatRow, MatchRow.utility_0, MatchRow.utility_1).join(MatchRow, MatchRow.id == SeatRow.match_id)
        ):
            told[seat.prompt].append((first, second)[seat.seat])
        found = prompt_scores(session, ROUND.get(session, number))
    assert found is not None
    means = {name: sum(scores) / 4 for name, scores in told.items()}
    assert found.prompts == ("terse@1", "kind@1")
    assert [each.value for each in found.means] == [means["terse@1"], means["kind@1"]]
    assert (found.difference.value, found.difference.n) == (means["terse@1"] - means["kind@1"], 2)
    page = signed_in(app).get(f"/admin/rounds/{number}").text
    assert "By system prompt" in page
    assert "terse@1" in page
    alike = make_round(engine, "one", matches=4, prompts=["terse"])
    assert "By system prompt" not in signed_in(app).get(f"/admin/rounds/{alike}").text
