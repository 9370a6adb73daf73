"""The admin pages of campaigns: listed, started, followed, cancelled and resumed. Nothing is played or trained here."""

import csv
import html
import io
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, func, select, update

from app.accounts import FIRST_USER, create_user, remove_user
from app.campaigns import lifecycle, listing, steps
from app.campaigns.job import CAMPAIGN, CampaignKind
from app.campaigns.presets import PRESETS
from app.campaigns.spec import CampaignSpec
from app.core.config import Settings
from app.core.extensions import db, reading, writing
from app.finetuning.job import TRAINING
from app.jobs import states
from app.jobs.chained import AwaitedJob
from app.jobs.context import JobContext
from app.jobs.kind import fail
from app.models import Campaign, LanguageModel, RoundRow, TrainingJob
from app.registry import add_api_model
from app.web.admin import lists
from app.web.admin.spec_form import filled_in
from tests.campaigns import (
    add_local,
    campaign_form,
    campaign_of,
    change,
    dataset_of,
    job_of,
    made_up,
    model_named,
    round_of,
    step,
)
from tests.experimenter import labelled, leafed_through, signed_in
from tests.shell import Finished

CONTEXT = "1 4 2 2 1 2\n1 0 2 1 1 8\n"  # one alone


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


@pytest.fixture
def base(engine: Engine) -> str:
    add_local(engine, "base")
    return "base"


@pytest.fixture
def enqueued(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The campaigns that a worker was told of."""
    numbers: list[int] = []
    monkeypatch.setattr(CampaignKind, "enqueue", lambda _self, _url, number, **_queue: numbers.append(number))
    return numbers


def form(game: str = "negotiation", **fields: Any) -> dict[str, Any]:
    """The launch form as a browser sends it when nothing was changed."""
    return {**campaign_form(game, "base"), **fields}


def row_of(engine: Engine, number: int) -> Campaign:
    with reading(engine) as session:
        return CAMPAIGN.get(session, number)


def material_of(engine: Engine, number: int) -> dict[str, list[Any]]:
    with reading(engine) as session:
        return CAMPAIGN.get(session, number).material


def text_of(page: str) -> str:
    """What stands on a page, in one line."""
    body = re.sub(r"<script.*?</script>|<[^>]+>", " ", page.split("<main", 1)[1], flags=re.DOTALL)
    return " ".join(html.unescape(body).split())


def counted(engine: Engine) -> int:
    with reading(engine) as session:
        return session.scalar(select(func.count()).select_from(Campaign)) or 0


@pytest.fixture
def half_done(engine: Engine, settings: Settings, base: str) -> int:
    """A campaign whose base and first model were evaluated, and whose second round is being played."""
    number = campaign_of(engine, base, queued=True)
    evaluation, played, second = (round_of(engine, settings, base, matches=4) for _ in range(3))
    dataset = dataset_of(engine, settings, played)
    job = job_of(engine, dataset, "loop-1", base)
    change(engine, number, 0, evaluation_id=evaluation, figures=made_up(0))
    change(
        engine, number, 1, round_id=played, dataset_id=dataset.id, job_id=job.id, model_id=job.model_id,
        evaluation_id=evaluation, figures=made_up(1),
    )  # fmt: skip
    change(engine, number, 2, round_id=second)
    with writing(engine) as session:
        session.execute(
            update(RoundRow).where(RoundRow.id == second).values(status="running", finished=1, matches=4, queued=True)
        )
        session.execute(update(Campaign).where(Campaign.id == number).values(status="running"))
    return number


def test_what_models_come_to_in_other_conditions_stands_beside_what_they_were_trained_in(
    client: FlaskClient, engine: Engine, settings: Settings, base: str
) -> None:
    number = campaign_of(engine, base, evaluation_temperature=0, partners=["scripted"])
    rounds = [round_of(engine, settings, base, matches=4) for _ in range(3)]
    ratio = {"score_ratio": {"value": 10.8, "low": 8.1, "high": 16.8}}
    change(engine, number, 0, evaluation_id=rounds[0], figures=made_up(0))
    with writing(engine) as session:
        step(session, number, 0, "evaluate_2_base", kind="round", number=rounds[1], figures=made_up(2) | ratio)
        step(session, number, 0, "evaluate_3_base", kind="round", number=rounds[2])
        session.execute(update(RoundRow).where(RoundRow.id == rounds[2]).values(status="running", finished=1))
        session.execute(update(Campaign).where(Campaign.id == number).values(status="running", queued=True))
    page = client.get(f"/admin/campaigns/{number}").text
    table = text_of("<main" + page.split('id="further"', 1)[1])
    assert "base as in the rounds 1.80 1.60 to 2.00" in table
    assert "base greedy (temperature 0) 4.45 4.25 to 4.65 74.2 %" in table
    assert "10.80 8.10 to 16.80" in table
    assert re.search("base against scripted … … … … … … … … … .* round 3", table)
    assert "The base is being evaluated" in text_of(page)
    assert "round 3 : 1 of 4 matches" in text_of(page)
    assert "Also evaluated greedy (temperature 0); against scripted" in text_of(page)
    spec = client.get(f"/admin/campaigns/{number}/figure.json").json or {}
    assert {each["line"] for each in spec["concat"][0]["data"]["values"]} == {"as played", "greedy"}
    command = client.application.test_cli_runner()
    shown = command.invoke(args=["campaign", "show", str(number)]).stdout
    assert re.search(r"greedy +4.45 \(4.25 to 4.65\)", shown)
    described = json.loads(command.invoke(args=["campaign", "show", str(number), "--json"]).stdout)
    assert described["results"][0]["evaluations"]["greedy"]["figures"]["score_ratio"] == ratio["score_ratio"]
    assert "Campaign loop, its base" in client.get(f"/admin/rounds/{rounds[1]}").text


# ---- The list ----------------------------------------------------------------


def test_an_empty_list_leads_to_the_first_campaign(client: FlaskClient) -> None:
    page = client.get("/admin/campaigns").text
    assert "There are none yet." in page
    assert 'href="/admin/campaigns/new"' in page
    assert client.get("/admin/campaigns?before=soon").status_code == 400


def test_campaigns_are_listed_with_how_far_they_are_and_their_latest_score(
    client: FlaskClient, engine: Engine, half_done: int, base: str
) -> None:
    words = campaign_of(engine, base, "words", game="taboo")
    change(engine, words, 0, figures=made_up(0, "taboo"))
    page = client.get("/admin/campaigns").text
    told = text_of(page)
    assert page.index(f"/admin/campaigns/{words}") < page.index(f"/admin/campaigns/{half_done}")
    assert "loop Campaign 1 running 1 of 3 3.45 3.25 to 3.65 Deal or No Deal base" in told
    assert "words Campaign 2 waiting 0 of 3 Attacker wins: 15.0 % 12.0 to 18.0 % Adversarial Taboo base not yet" in told


def test_pages_of_the_list_hold_every_campaign_once(
    client: FlaskClient, engine: Engine, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "PAGE", 2)
    made = [campaign_of(engine, base, f"loop{number}") for number in range(5)]
    found = []
    for page in leafed_through(client, "/admin/campaigns"):
        found += [int(number) for number in re.findall(r'id="line-(\d+)"', page)]
    assert found == made[::-1]


def test_the_list_keeps_itself_fresh_only_while_a_campaign_goes_on(
    client: FlaskClient, engine: Engine, half_done: int
) -> None:
    assert "fresh.js" in client.get("/admin/campaigns").text
    with writing(engine) as session:
        session.execute(update(Campaign).values(status="done"))
    assert "fresh.js" not in client.get("/admin/campaigns").text


# ---- One campaign ------------------------------------------------------------


def test_a_campaign_shows_what_it_is_at_and_what_its_models_have_come_to(
    client: FlaskClient, engine: Engine, half_done: int
) -> None:
    page = client.get(f"/admin/campaigns/{half_done}").text
    told = text_of(page)
    assert "Iteration 2 of 3: the model plays against itself" in told
    assert "round 3 : 1 of 4 matches" in told
    assert '<li aria-current="step">plays</li>' in page
    assert "1 of 3 iterations are done." in told
    figures, made = r"3\.45 3\.25 to 3\.65 57\.5 % 54\.5 to 60\.5 %", "round 2 8 rows loop-1 job 1"
    assert re.search(f"1 loop-1 {figures} .* {made} .* round 1", told)
    assert "– not measured" in told  # how many deals were never said in the talk: what was kept is without
    assert "none" not in told
    lineage = f"models/{model_named(engine, 'loop-1').id}/lineage"
    for path in ("rounds/1", "rounds/2", "rounds/3", "datasets/1", "jobs/1", lineage):
        assert f'href="/admin/{path}"' in page
    assert 'value="cancel"' in page
    assert 'value="resume"' not in page
    assert client.get("/admin/campaigns/99").status_code == 404


@pytest.mark.parametrize(
    ("path", "words"),
    [("rounds/1", "loop, its base"), ("rounds/2", "loop, iteration 1"), ("rounds/3", "loop, iteration 2"),
     ("jobs/1", "loop, iteration 1")],
)  # fmt: skip
def test_what_belongs_to_a_campaign_leads_back_to_it(
    client: FlaskClient, half_done: int, path: str, words: str
) -> None:
    page = client.get(f"/admin/{path}").text
    assert f'href="/admin/campaigns/{half_done}"' in page
    assert f"Campaign {words}" in text_of(page)


def test_the_figure_is_drawn_from_the_same_numbers(
    client: FlaskClient, app: Flask, half_done: int, tmp_path: Path
) -> None:
    page = client.get(f"/admin/campaigns/{half_done}").text
    assert f'data-spec-url="/admin/campaigns/{half_done}/figure.json"' in page
    assert "Mean score 1.80 at first, 3.45 now" in page
    for theme in ("light", "dark"):
        spec = client.get(f"/admin/campaigns/{half_done}/figure.json?theme={theme}").json
        assert spec
        assert [each["title"]["text"] for each in spec["concat"]] == [
            "Mean score", "Agreement", "Pareto-optimal deals", "Length of matches",
        ]  # fmt: skip
        assert [each["value"] for each in spec["concat"][0]["data"]["values"]] == [
            made_up(number)["score_mean"]["value"] for number in (0, 1)
        ]
    assert client.get(f"/admin/campaigns/{half_done}/figure.json?theme=green").status_code == 400
    runner, file = app.test_cli_runner(), tmp_path / "loop.png"
    done = runner.invoke(args=["campaign", "show", str(half_done), "--chart", str(file), "--json"])
    assert done.exit_code == 0, done.output
    assert file.read_bytes().startswith(b"\x89PNG")
    refused = runner.invoke(args=["campaign", "show", str(half_done), "--chart", str(tmp_path / "loop.jpg")])
    assert (refused.exit_code, "expected a file that ends in .svg, .pdf or .png" in refused.output) == (
        2,
        True,
    )


def test_csv_has_a_row_an_iteration_and_evaluation(
    flask: Callable[..., Finished], engine: Engine, half_done: int
) -> None:
    with writing(engine) as session:
        ratio = {"score_ratio": {"value": 10.8, "low": 8.1, "high": 16.8}}
        with_scripted = {"kind": "round", "number": 2, "spec": {"models": ["base", "scripted"]}}
        step(session, half_done, 1, "play_with_1", **with_scripted)
        row = session.get_one(Campaign, half_done)
        row.spec = {**row.spec, "evaluation_temperature": 0}
        step(session, half_done, 1, "evaluate_2", kind="round", number=1, figures=ratio)
    told = flask("campaign", "show", half_done, "--csv")
    assert told.exit_code == 0, told.stderr
    every = list(csv.DictReader(io.StringIO(told.stdout)))
    rows = [row for row in every if row["evaluation"] == "as played"]
    assert [row["rounds_with"] for row in rows] == ["{}", '{"scripted": 2}', "{}"]
    [also] = [row for row in every if row["evaluation"] != "as played"]
    assert [also[name] for name in ("iteration", "model", "evaluation", "evaluation_id", "score_ratio_low")] == [
        "1", "loop-1", "greedy", "1", "8.1",
    ]  # fmt: skip
    assert [(row["iteration"], row["model"], row["round_id"], row["job_id"]) for row in rows[:2]] == [
        ("0", "base", "", ""),
        ("1", "loop-1", "2", "1"),
    ]
    for number in (0, 1):
        for name, figure in made_up(number).items():
            cells = [rows[number][name + end] for end in ("", "_low", "_high")]
            assert [float(cell) for cell in cells] == [figure[end] for end in ("value", "low", "high")]
    assert rows[2]["score_mean"] == ""  # is still played
    assert {"agreed_messages_mean", "agreed_tokens_mean"} < set(rows[0])


def test_before_the_base_is_evaluated_there_is_no_figure(client: FlaskClient, engine: Engine, base: str) -> None:
    number = campaign_of(engine, base)
    told = text_of(client.get(f"/admin/campaigns/{number}").text)
    assert "The base is being evaluated" in told
    assert "The figure appears here as soon as the base has been evaluated" in told
    assert "It waits to be continued in a terminal" in told
    assert client.get(f"/admin/campaigns/{number}/figure.json").status_code == 404


def test_its_lists_of_contexts_are_on_no_page(client: FlaskClient, engine: Engine, half_done: int) -> None:
    """They are thousands, and a page that is watched is asked for often."""
    with reading(engine) as session:
        held = json.dumps(session.get_one(Campaign, half_done).material["held_out"][0])
        told = [json.dumps(listing.figures_of(session, CAMPAIGN.get(session, half_done)))]
    told += [client.get(f"/admin/campaigns{path}").text for path in ("", f"/{half_done}", f"/{half_done}/figure.json")]
    assert not any(held in page.replace(" ", "") or held in page for page in told)
    assert max(map(len, told)) < 30_000


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        ({"round_id": "done"}, "Iteration 2 of 3: its better transcripts are cut out"),
        ({"round_id": "done", "dataset_id": 1, "job_id": "new"}, "job 2 : step 30 of 120"),
        ({"round_id": "done", "dataset_id": 1, "job_id": 1, "evaluation_id": 3}, "the new model is evaluated"),
    ],
)
def test_every_step_is_told(
    client: FlaskClient, engine: Engine, settings: Settings, half_done: int, stage: dict[str, Any], says: str
) -> None:
    with writing(engine) as session:
        if stage.get("evaluation_id") is None:
            session.execute(update(RoundRow).where(RoundRow.id == 3).values(status="done"))
    values = dict(stage)
    if values.get("round_id") == "done":
        values["round_id"] = 2 if "evaluation_id" in stage else 3
    if values.get("job_id") == "new":
        with reading(engine) as session:
            dataset = session.get_one(TrainingJob, 1).dataset_id
        values["job_id"] = 2
        with writing(engine) as session:
            session.add(
                TrainingJob(
                    name="loop-2", method="sft", backend="local", dataset_id=dataset, base_id=None, config={},
                    status="running", step=30, steps=120, created_at=row_of(engine, half_done).created_at,
                )
            )  # fmt: skip
    change(engine, half_done, 2, **values)
    assert says in text_of(client.get(f"/admin/campaigns/{half_done}").text)


def test_a_waiting_round_and_the_material_are_told_in_the_pages_language(
    client: FlaskClient, engine: Engine, half_done: int
) -> None:
    with writing(engine) as session:
        session.execute(update(RoundRow).where(RoundRow.id == 3).values(status="waiting", finished=0))
        row = session.get_one(Campaign, half_done)
        row.spec = {**row.spec, "material": "generated contexts"}
    page = client.get(f"/admin/campaigns/{half_done}", headers={"Accept-Language": "de"}).text
    assert '<span data-without="of">der Durchgang wartet</span>' in page
    assert "<dd>erzeugte Kontexte</dd>" in page


def test_a_campaign_is_cancelled_with_its_round_and_resumed(
    client: FlaskClient, engine: Engine, half_done: int, enqueued: list[int]
) -> None:
    assert client.post(f"/admin/campaigns/{half_done}", data={"action": "cancel"}).status_code == 303
    with reading(engine) as session:
        assert session.get_one(RoundRow, 3).status == "cancelled"
    assert row_of(engine, half_done).status == states.CANCELLED
    page = client.get(f"/admin/campaigns/{half_done}").text
    assert ('value="resume"' in page, 'value="cancel"' in page) == (True, False)
    assert client.post(f"/admin/campaigns/{half_done}", data={"action": "resume"}).status_code == 303
    assert (row_of(engine, half_done).status, enqueued) == (states.WAITING, [half_done])
    refused = client.post(f"/admin/campaigns/{half_done}", data={"action": "burn"})
    assert (refused.status_code, "action: expected cancel or resume" in refused.text) == (400, True)


def test_a_campaign_that_stopped_says_why(client: FlaskClient, engine: Engine, half_done: int) -> None:
    with writing(engine) as session:
        row = CAMPAIGN.get(session, half_done)
        fail(row, "round 3: the model gave no answer")
    page = text_of(client.get(f"/admin/campaigns/{half_done}").text)
    assert "It stopped: round 3: the model gave no answer" in page
    assert "Resume" in page


# ---- The form ----------------------------------------------------------------


def test_without_a_local_model_the_form_says_what_to_do(client: FlaskClient, engine: Engine) -> None:
    with writing(engine) as session:
        session.execute(update(LanguageModel).where(LanguageModel.kind == "local").values(usable_in_rounds=False))
    page = text_of(client.get("/admin/campaigns/new").text)
    assert "No local model that is usable in rounds plays this game." in page
    assert "flask model add-local" in page
    answer = client.post("/admin/campaigns/new", data=form(base="scripted"))
    assert (answer.status_code, "Base: expected a local model, which has weights" in answer.text) == (
        400,
        True,
    )


def test_a_campaign_is_started_from_a_models_page(
    client: FlaskClient, engine: Engine, base: str, enqueued: list[int]
) -> None:
    other = add_local(engine, "other")
    assert 'href="/admin/campaigns/new?game=negotiation&amp;base=other"' in client.get(f"/admin/models/{other}").text
    page = client.get("/admin/campaigns/new?game=negotiation&base=other").text
    assert '<option value="other" selected>' in page
    sent = form(base="other", iterations="2", matches="40", evaluation="20", objective="coop", start="base",
                learning_rate="0.001", seed="11", temperature="0.8")  # fmt: skip
    answer = client.post("/admin/campaigns/new", data=sent)
    assert (answer.status_code, answer.location, enqueued) == (303, "/admin/campaigns/1", [1])
    row = row_of(engine, 1)
    assert (row.name, row.game, row.status, row.queued, row.iterations) == (
        "other-coop-c1",
        "negotiation",
        "waiting",
        True,
        2,
    )
    wanted = {
        "matches": 40, "evaluation": 20, "start": "base", "config": {"objective": "coop", "limit": 50}, "seed": 11,
        "training": {"epochs": 12, "learning_rate": 0.001},
        "sampling": {"temperature": 0.8, "top_k": "none", "max_tokens": "none"},
    }  # fmt: skip
    assert {name: row.spec[name] for name in wanted} == wanted
    assert len(material_of(engine, 1)["held_out"]) == 20
    page = text_of(client.get("/admin/campaigns/1").text)
    assert "It waits for a worker." in page
    assert "Objective points of both (λ = 1) Maximum moves 50" in page
    assert all(each in page for each in ("Epochs: 12", "Learning rate: 0.001", "Sampling Temperature: 0.8"))


def test_an_estimate_counts_the_matches_of_every_step_and_a_dear_campaign_is_asked_about(
    make_app: Callable[..., Flask], enqueued: list[int]
) -> None:
    app = make_app(CONFIRM_COST=0.01)
    with app.app_context():
        add_local(db.engine, "base")
        with writing(db.engine) as session:
            options = {"base_url": "http://127.0.0.1:9/v1", "model": "dear", "price_in": 100, "price_out": 100}
            add_api_model(session, "dear", None, ["negotiation"], options)
    client = signed_in(app)
    sent = form(iterations="3", matches="40", evaluation="20", partners=["scripted"])
    told = text_of(client.post("/admin/campaigns/new", data={**sent, "action": "estimate"}).text)
    # Three evaluations of each of four models, and three rounds; the trainings come after those of the base.
    assert "What it will take Estimate Jobs 18 Matches 360" in told
    assert "play round 3" in told
    assert "train training 3 0 not known" in told
    assert "Without the time of train." in told
    asked = client.post("/admin/campaigns/new", data={**sent, "partners": ["dear"]})
    assert (asked.status_code, enqueued) == (200, [])
    assert "Press Start the campaign again to confirm." in text_of(asked.text)
    agreed = re.search(r'name="agreed" value="([^"]+)"', asked.text)
    assert agreed
    agreeing = {**sent, "partners": ["dear"], "agreed": agreed[1]}
    assert client.post("/admin/campaigns/new", data=agreeing).status_code == 303
    assert enqueued == [1]


def test_an_estimate_plays_each_piece_of_a_list_once_if_asked(client: FlaskClient, base: str) -> None:
    words = "\n".join(f"{first}{second}ing" for first in ("walk", "sing", "jump", "paint") for second in "abcdefghij")
    sent = form("taboo", words="upload", words_text=words, matches="all", iterations="1", evaluation="20",
                partners=[], evaluation_temperature="", action="estimate")  # fmt: skip
    told = text_of(client.post("/admin/campaigns/new", data=sent).text)
    matches = re.search(r"Matches (\d+) Calls", told)
    assert matches, told
    assert 40 < int(matches[1]) < 80  # two evaluations of 20, and what of the 40 words is not held out


def test_all_that_a_campaign_starts_names_the_experimenter_who_requested_it_even_after_leaving(
    client: FlaskClient, app: Flask, engine: Engine, settings: Settings, base: str, enqueued: list[int]
) -> None:
    sent = form(iterations="1", matches="4", evaluation="4", evaluation_temperature="", partners=[])
    assert client.post("/admin/campaigns/new", data=sent).status_code == 303
    (settings.home / "checkpoints" / base).mkdir(parents=True)  # which the training will look for
    context = JobContext(engine, settings, "a worker")
    evaluation = steps.take_steps(context, 1)
    assert evaluation is not None
    played = round_of(engine, settings, base, matches=4)  # by a command
    with writing(engine) as session:
        session.execute(update(RoundRow).values(status=states.DONE))
    change(engine, 1, 0, evaluation_id=evaluation.number, figures=made_up(0))
    change(engine, 1, 1, round_id=played, dataset_id=dataset_of(engine, settings, played).id)
    assert steps.take_steps(context, 1) == AwaitedJob(TRAINING, 1)
    with writing(engine) as session:
        create_user(session, "berta", None, datetime.now(UTC))
        remove_user(session, FIRST_USER)
    client = signed_in(app)
    for listed, page in (
        ("campaigns", "campaigns/1"),
        ("rounds", f"rounds/{evaluation.number}?tab=settings"),
        ("jobs", "jobs/1"),
    ):
        assert f"requested by {FIRST_USER}" in text_of(client.get(f"/admin/{listed}").text)
        assert f"Requested by {FIRST_USER}" in text_of(client.get(f"/admin/{page}").text)
    assert "Requested by command line" in text_of(client.get(f"/admin/rounds/{played}?tab=settings").text)
    mine = [("campaign", "1"), ("round", str(evaluation.number)), ("training", "1")]
    for line in (*mine, ("round", str(played))):
        shown = app.test_cli_runner().invoke(args=[line[0], "show", line[1], "--json"])
        assert json.loads(shown.stdout)["requested_by"] == (FIRST_USER if line in mine else None)


def test_published_settings_fill_the_form_in_and_mean_the_same_as_on_the_command_line(
    client: FlaskClient, engine: Engine, base: str, enqueued: list[int]
) -> None:
    page = client.get("/admin/campaigns/new?game=taboo&base=base").text
    assert 'href="?game=taboo&amp;base=base&amp;preset=spag"' in page
    page = client.get("/admin/campaigns/new?game=taboo&base=base&preset=spag").text
    for text in ('name="method" value="offline-po" checked>', 'value="0.000002"', "accumulation = 64"):
        assert text in page
    assert client.get("/admin/campaigns/new?preset=mine").status_code == 400
    for name in PRESETS:
        sent = {**campaign_form("taboo", "base", name), "name": name, "seed": "1"}
        assert client.post("/admin/campaigns/new", data=sent).status_code == 303
        row = row_of(engine, enqueued[-1])
        asked = CampaignSpec.read({"game": "taboo", "base": "base", "preset": name, "name": name, "seed": 1})
        matches = asked.matches_of_round or len(material_of(engine, row.id)["play"])
        said = {
            "matches": matches,
            "config": {"max_turns": 5, "rule": "strict"},
            "material": "the list of target words",
        }
        assert lifecycle.spec_of(row.spec).to_json() == asked.model_copy(update=said).to_json()


def test_a_campaign_is_started_with_a_dataset_opponents_and_partners(
    client: FlaskClient, engine: Engine, settings: Settings, base: str, enqueued: list[int]
) -> None:
    add_local(engine, "other")
    dataset = dataset_of(engine, settings, round_of(engine, settings, base, matches=40, material=None))
    sent = form(
        start_data=str(dataset.id), sft_data=str(dataset.id), start_method="sft-kl", start_epochs="2",
        start_training="kl = 0.3",
        method="offline-po", positive_only="1", role_weights="", decay="0.5", partners=["scripted", "other"],
        training="accumulation = 4\ndecay = 0.9", top_k="40", name="loop",
        **{"share scripted": "0.25", "share other": "0.1"},
    )  # fmt: skip
    assert client.post("/admin/campaigns/new", data=sent).status_code == 303
    spec = row_of(engine, 1).spec
    assert (spec["start_data"], spec["start_method"], spec["start_training"]["kl"]) == (str(dataset.id), "sft-kl", 0.3)
    asked = lifecycle.spec_of(spec)
    assert (asked.given_rewards, asked.role_weights, asked.positive_only, asked.decay) == ("spag", False, True, 0.5)
    assert (spec["partners"], spec["training"], asked.kept) == (
        ["scripted", "other"],
        {"accumulation": 4, "decay": 0.9},
        "all",
    )
    assert (spec["start_matches"]["matches"], spec["sft_data"]) == (40, str(dataset.id))
    page = client.get("/admin/campaigns/1").text
    told = text_of(page)
    assert f'href="/admin/datasets/{dataset.id}"' in page
    assert "Iterations 6" in told
    assert "Starts with Dataset 1 sft-kl ; Epochs: 2; KL weight: 0.3; Learning rate: 0.001" in told
    assert "Training offline-po ; Accumulation: 4; Decay of the running mean: 0.9" in told
    assert "Plays with scripted in 25 % of the matches; other in 10 % of the matches" in told
    assert (
        "Rewards by the formula of the game (SPAG), γ = 0.5; each role by how often it won; only those above 0" in told
    )
    assert "against scripted; against other" in told
    assert f"Supervised rows Dataset {dataset.id}" in told
    held = spec["start_matches"]["held_out"]
    assert held
    assert f"{held} of 40 matches in the dataset that it started with used material of the evaluations" in told
    shown = client.application.test_cli_runner().invoke(args=["campaign", "show", "1"]).stdout
    assert (
        f"Dataset {dataset.id}, from which it started, has rows of matches on held-out material: {held} of 40" in shown
    )


def test_rounds_with_partners_are_linked_in_the_iterations(
    client: FlaskClient, engine: Engine, settings: Settings, half_done: int, base: str
) -> None:
    number = round_of(engine, settings, base, "scripted", matches=4)
    with writing(engine) as session:
        with_scripted = {"kind": "round", "number": number, "spec": {"models": ["base", "scripted"]}}
        step(session, half_done, 1, "play_with_1", **with_scripted)
    page = client.get(f"/admin/campaigns/{half_done}").text
    with reading(engine) as session:
        names = {each: session.get_one(RoundRow, each).name for each in (2, number)}
    played = f"{names[2]} round 2 {names[number]} round {number} with scripted"
    assert f"{played} 8 rows loop-1 job 1" in text_of(page)
    assert "Campaign loop, iteration 1" in text_of(client.get(f"/admin/rounds/{number}").text)
    shown = client.application.test_cli_runner().invoke(args=["campaign", "show", str(half_done), "--json"]).stdout
    assert json.loads(shown)["results"][1]["rounds_with"] == {"scripted": number}


def test_words_come_as_a_file_and_a_tenth_is_held_out(
    client: FlaskClient, engine: Engine, base: str, enqueued: list[int]
) -> None:
    words = "\n".join(f"{first}{second}ing" for first in ("walk", "sing", "jump", "paint") for second in "abcdefghij")
    sent = form("taboo", words_file=(io.BytesIO(words.encode()), "mine.txt"), max_turns="3", name="words")
    assert client.post("/admin/campaigns/new", data=sent).status_code == 303
    spec = row_of(engine, 1).spec
    assert (spec["material"], spec["config"]) == ("mine.txt", {"max_turns": 3, "rule": "strict"})
    material = material_of(engine, 1)
    assert not set(material["held_out"]) & set(material["play"])
    assert set(material["held_out"]) | set(material["play"]) == set(words.split())


def test_a_campaign_is_started_like_an_earlier_one_on_the_same_material(
    client: FlaskClient, engine: Engine, base: str, enqueued: list[int]
) -> None:
    words = "\n".join(f"{first}{second}ing" for first in ("walk", "sing", "jump", "paint") for second in "abcdefghij")
    sent = form(
        "taboo", words="upload", words_text=words, name="first", teacher="scripted", start_epochs="2", seed="5",
        evaluation_temperature="", top_k="", training="accumulation = 4", **{"share scripted": "equal"},
    )  # fmt: skip
    assert client.post("/admin/campaigns/new", data=sent).status_code == 303
    assert 'href="/admin/campaigns/new?like=1"' in client.get("/admin/campaigns/1").text
    page = client.get("/admin/campaigns/new?like=1").text
    assert 'Filled in as it was for <a href="/admin/campaigns/1">' in page
    for field in ('name="start_epochs" type="text" value="2"', 'name="share scripted" type="text"', 'value="equal"'):
        assert field in page
    for empty in ("name", "evaluation_temperature", "top_k"):
        assert f'name="{empty}" type="text" value=""' in page
    before = row_of(engine, 1)
    again = filled_in(CampaignSpec, lifecycle.spec_of(before.spec).to_json(), files="again")
    shares = {f"share {model}": share for model, share in again.pop("play_with").items()}
    answer = client.post("/admin/campaigns/new", data={**again, **shares, "like": "1", "name": "second"})
    assert answer.status_code == 303, text_of(answer.text)
    assert {**row_of(engine, 2).spec, "name": "first"} == before.spec
    for part in ("play", "held_out"):
        assert sorted(material_of(engine, 2)[part]) == sorted(material_of(engine, 1)[part])


@pytest.mark.parametrize(
    ("fields", "status", "field", "says"),
    [
        ({"iterations": "0"}, 400, "iterations", "iterations: expected a whole number from 1 to 100, got '0'"),
        ({"base": ""}, 400, "base", "base: expected the name of a model to start from, got none"),
        ({"base": "nobody"}, 404, "base", "base: expected one that plays negotiation and is usable in rounds"),
        ({"objective": "lambda", "lam": "2"}, 400, "lam", "lam: expected a number from -1 to 1, got '2'"),
        ({"epochs": "many"}, 400, "epochs", "epochs: expected a number above 0, got 'many'"),
        ({"learning_rate": "-1"}, 400, "learning_rate", "learning_rate: expected a number above 0, got '-1'"),
        ({"temperature": "3"}, 400, "temperature", "temperature: expected none or a number from 0 to 2, got '3'"),
        ({"contexts": "upload", "contexts_text": CONTEXT}, 400, "contexts", "a list of which a tenth can be held out"),
        ({"contexts": "upload", "contexts_text": "1 2"}, 400, "contexts", "the contexts of the form, line 1: expected"),
        (
            {"share scripted": "2"},
            400,
            "play_with",
            "Plays with: expected equal or a number above 0 and below 1, got '2'",
        ),
        (
            {"partners": ["nobody"]},
            400,
            "partners",
            "Also evaluated against: expected one that plays negotiation and is usable in rounds",
        ),
        (
            {"start_data": "7"},
            404,
            "start_data",
            "Starts with the dataset: expected the number of one that exists, got 7",
        ),
        (
            {"teacher": "scripted", "start_epochs": "no"},
            400,
            "start_epochs",
            "epochs: expected a number above 0, got 'no'",
        ),
        (
            {"training": "width"},
            400,
            "training",
            "Further fields of each training: expected a line such as width = 64, once for each field",
        ),
        (
            {"method": "offline-po", "training": "decay = 2"},
            400,
            "training",
            "Decay of the running mean: expected a number",  # and not the decay of rewards
        ),
        ({"method": "offline-po", "data_of": "all"}, 400, "data_of", "Learns from: expected last with offline-po"),
        ({"seed": "soon"}, 400, "seed", "seed: expected a whole number"),
        ({"name": "two words"}, 400, "name", "name: expected 1 to 80 letters, digits"),
        (
            {"name": "taken"},
            409,
            "name",
            "name: expected one that is not taken, got 'taken', used by unfinished campaign 1",
        ),
    ],
)
def test_what_cannot_be_started_is_said_on_the_form_as_it_was_filled_in(
    client: FlaskClient, engine: Engine, base: str, fields: dict[str, Any], status: int, field: str, says: str
) -> None:
    campaign_of(engine, base, "taken")
    answer = client.post("/admin/campaigns/new", data=form(**fields))
    page = html.unescape(answer.text)
    assert (answer.status_code, labelled(says) in page) == (status, True), text_of(answer.text)[:600]
    assert counted(engine) == 1
    marked = re.findall(r'id="([\w-]+)"[^>]*aria-invalid="true"', page) or re.findall(
        r'<p lang="en" class="error"', page
    )
    assert marked in ([field], ['<p lang="en" class="error"'])
    for name, value in fields.items():
        assert all(each.strip() in page for each in ([value] if isinstance(value, str) else value)), name
