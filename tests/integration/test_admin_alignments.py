"""The admin pages of alignments: started from the form, followed through their jobs, shown with what came of them."""

import html
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine

from app.alignments.job import ALIGNMENT
from app.core.config import Settings
from app.core.extensions import db, reading, writing
from app.finetuning.job import TRAINING
from app.jobs import states
from app.jobs.kind import fail
from app.models import Alignment
from app.registry.changes import is_in_use
from app.web.watched import watched_kinds
from tests.assessments import carry_on, make_alignment
from tests.campaigns import add_local, model_named
from tests.datasets import import_rows
from tests.experimenter import signed_in
from tests.integration.test_admin_societies import texts
from tests.societies import add_chat_models

WORLD = {"size": "2", "iterations": "2", "setting": "half_half", "critics": "2", "first_memories": "3", "recall": "1"}
FORM = {
    **WORLD,
    "base": "learner",
    "share": "0.01",
    "share scripted-agent": "1",
    "observers": "scripted-observer",
    "questions": "shipped",
    "priors": "shipped",
    "held_out": "shipped",
    "embedder": "tfidf",
    "preset": "published",
    "seed": "3",
    "action": "start",
}
SMALL = {"agents": {"scripted-agent": 1.0}, "share": 0.01, "society": {"size": 4, "iterations": 3}}


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


@pytest.fixture(autouse=True)
def _learner(engine: Engine, home: Path) -> None:
    folder = home / "checkpoints" / "learner"
    folder.mkdir(parents=True)
    add_local(engine, "learner", str(folder))


def row_of(engine: Engine, number: int) -> Alignment:
    with reading(engine) as session:
        row = ALIGNMENT.get(session, number)
        assert row.material
        return row


@pytest.mark.parametrize("agents", [{"scripted-agent": 1.0}, [["scripted-agent", 1.0]]], ids=["now", "before"])
def test_the_models_that_an_alignment_names_are_in_use(client: FlaskClient, engine: Engine, agents: Any) -> None:
    number = make_alignment(engine, "learner", "mine", **SMALL)
    with writing(engine) as session:
        row = ALIGNMENT.get(session, number)
        row.spec = {**row.spec, "agents": agents}
    for name in ("scripted-agent", "scripted-observer"):
        model = model_named(engine, name)
        assert client.get(f"/admin/models/{model.id}").status_code == 200
        with reading(engine) as session:
            assert is_in_use(session, model)


# ---- The list and the form ---------------------------------------------------------------


def test_an_empty_list_says_what_an_alignment_is_and_leads_to_the_form(client: FlaskClient) -> None:
    page = client.get("/admin/alignments").text
    assert "the whole recipe of Stable Alignment as one job" in texts(page)
    assert "flask alignment run --base MODEL --observers MODEL" in texts(page)
    assert 'href="/admin/alignments/new"' in page
    assert client.get("/admin/alignments?before=nothing").status_code == 400


def test_an_alignment_is_started_from_the_form(
    client: FlaskClient,
    engine: Engine,
    enqueued_jobs: list[tuple[str, int]],
    settings: Settings,
) -> None:
    asked = {"instruction": "What is it?", "input": "", "output": "It is a cat."}
    demonstrations = import_rows(engine, settings.home, "alpaca", asked)
    sent = {
        **FORM,
        "name": "mine",
        "demonstrations": str(demonstrations),
        "sft": "max_steps = 2",
        "train": "max_steps = 3\nbatch = 4",
        "sampling": "published",
        "answer_max_tokens": "32",
        "held_out": "upload",
        "held_out_text": "What of a bee?\nWhat of a fly?",
    }
    answer = client.post("/admin/alignments/new", data=sent)
    assert (answer.status_code, answer.location, enqueued_jobs) == (303, "/admin/alignments/1", [("alignment", 1)])
    row = row_of(engine, 1)
    assert (row.name, row.queued, row.requested_by) == ("mine", True, "admin")
    spec = row.spec
    assert (spec["raters"], spec["demonstrations"], spec["seed"]) == ([], str(demonstrations), 3)
    assert (spec["sft"], spec["train"]) == ({"max_steps": "2"}, {"max_steps": "3", "batch": "4"})
    assert (spec["sampling"]["temperature"], spec["sampling"]["max_tokens"]) == (0.7, 32)
    assert (spec["society"]["size"], spec["society"]["recall"], spec["society"]["global_interaction"]) == (
        2,
        True,
        False,
    )
    assert row.material["held_out"] == ["the held-out of the form", ["What of a bee?", "What of a fly?"]]
    listed = texts(client.get("/admin/alignments").text)
    assert "mine Alignment 1 requested by admin" in listed
    assert "0 of 5" in listed
    again = client.get("/admin/alignments/new?like=1").text
    assert re.search(r'name="held_out" value="again" checked', again)
    assert "max_steps = 3" in again
    like = {**FORM, "like": "1", **dict.fromkeys(("questions", "priors", "held_out"), "again")}
    assert client.post("/admin/alignments/new", data=like).status_code == 303
    assert row_of(engine, 2).material == row.material


@pytest.mark.parametrize(
    ("wrong", "field", "words"),
    [
        ({"base": "nobody"}, "base", "expected one of"),
        ({"base": "scripted-agent"}, "base", "Base: expected a local model, which has weights"),
        ({"demonstrations": "99"}, "demonstrations", "Demonstrations: expected"),
        ({"share": "much"}, "share", "Share of the model that learns: expected a number above 0"),
        ({"share scripted-agent": "-1"}, "agents", "Agents: expected a number above 0"),
        ({"observers": []}, "observers", "Observers: expected 1 to 100 models, got 0"),
        ({"raters": ["scripted"]}, "raters", "Raters: expected a model that answers chats"),
        ({"size": "1"}, "size", "Size: expected a whole number from 2 to 40"),
        ({"critics": "4"}, "critics", "Critics: expected fewer than the 4 agents"),
        ({"max_tokens": "1"}, "max_tokens", "Maximum answer length: expected a whole number from 8 to 4096"),
        ({"embedder": "nothing"}, "embedder", "Embedder: expected one of tfidf"),
        ({"sft": "speed = 3"}, "sft", "speed"),
        ({"train": "max_steps = many"}, "train", "expected a whole number"),
        ({"train": "nothing at all"}, "train", "expected a line such as width = 64"),
        ({"preset": "mine"}, "preset", "Preset: expected published or code"),
        ({"answer_top_p": "2"}, "answer_top_p", "Top-p of the answers: expected a number from 0 to 1"),
        ({"questions": "upload"}, "questions", "Questions: expected a file or lines of text, got nothing"),
        ({"held_out": "upload", "held_out_text": "[1]"}, "held_out", "the held-out of the form, item 1"),
        ({"questions": "upload", "questions_text": "Why?\nHow?", "held_out": "upload", "held_out_text": "Why?"},
         "held_out", "Held-out questions: expected questions that the societies are not asked"),
        ({"priors": "upload", "priors_text": "{"}, "priors", "the priors of the form: expected JSON"),
        ({"name": "with spaces"}, "name", "Name: expected"),
        ({"seed": "x"}, "seed", "Seed: expected a whole number"),
    ],
)  # fmt: skip
def test_bad_input_is_marked_at_its_field(
    client: FlaskClient,
    enqueued_jobs: list[tuple[str, int]],
    wrong: dict[str, Any],
    field: str,
    words: str,
) -> None:
    answer = client.post("/admin/alignments/new", data={**FORM, "train": "batch = 5", **wrong})
    assert (answer.status_code in (400, 404, 409), enqueued_jobs) == (True, [])
    [alert, mark] = re.findall(
        r'<p[^>]* class="(?:note note-bad" role="alert"|error" id="refused")>(.*?)</p>', answer.text
    )
    assert words in html.unescape(alert)
    assert html.unescape(alert) == html.unescape(mark)
    if re.search(rf'id="{field}"', answer.text):
        assert re.search(rf'id="{field}"[^>]* aria-invalid="true"', answer.text)
    if "train" not in wrong:
        assert "batch = 5" in answer.text  # what was typed elsewhere is still there


def test_questions_may_be_uploaded_and_a_fifth_of_them_is_held_out(
    client: FlaskClient,
    engine: Engine,
    enqueued_jobs: list[tuple[str, int]],
) -> None:
    lines = [f"What of case {number}?" for number in range(10)]
    sent = {**FORM, "questions_file": (io.BytesIO("\n".join(lines).encode()), "mine.txt")}
    assert client.post("/admin/alignments/new", data=sent).status_code == 303
    material = row_of(engine, 1).material
    assert (material["questions"][0], len(material["questions"][1])) == ("mine.txt", 8)
    assert sorted(material["questions"][1] + material["held_out"][1]) == lines


def test_an_estimate_starts_nothing_and_a_dear_alignment_is_asked_about(
    make_app: Callable[..., Flask],
    enqueued_jobs: list[tuple[str, int]],
) -> None:
    app = make_app(CONFIRM_COST=0.001)
    with app.app_context():
        add_chat_models(db.engine, "http://127.0.0.1:9/v1", "paid", price_in=1, price_out=2)
    client = signed_in(app)
    paid = {**FORM, "share scripted-agent": "", "share paid": "1"}
    page = client.post("/admin/alignments/new", data={**paid, "action": "estimate"}).text
    assert "Calls, about 128" in texts(page)  # twice those of one society
    assert "Excludes the trainings and the final comparison." in texts(page)
    asked = client.post("/admin/alignments/new", data=paid)
    assert (asked.status_code, enqueued_jobs) == (200, [])
    agreed = re.search(r'name="agreed" value="([^"]+)"', asked.text)
    assert agreed
    assert client.post("/admin/alignments/new", data={**paid, "agreed": agreed[1]}).status_code == 303
    assert enqueued_jobs == [("alignment", 1)]


# ---- One alignment ------------------------------------------------------------------------


def test_its_page_shows_each_step_with_what_it_made_and_both_comparisons(
    client: FlaskClient, engine: Engine, settings: Settings
) -> None:
    number = make_alignment(engine, "learner", "chain", **SMALL)
    waiting = texts(client.get(f"/admin/alignments/{number}").text)
    assert "Step 1 of 4: Society" in waiting
    assert carry_on(engine, settings, number, 4) is None
    page = client.get(f"/admin/alignments/{number}").text
    said = texts(page)
    assert "All steps are done" in said
    with reading(engine) as session:
        made = {step.name: step for step in ALIGNMENT.steps_of(session, number)}
    aligned = model_named(engine, "chain-aligned")
    for address in (
        f"/admin/societies/{made['society'].number}",
        f"/admin/societies/{made['society_again'].number}",
        f"/admin/jobs/{made['training'].number}",
        f"/admin/datasets/{made['comparisons'].dataset_id}",
        f"/admin/assessments/{made['assessment'].number}",
        f"/admin/models/{aligned.id}",
        f"/admin/models/{aligned.id}/lineage",
    ):
        assert f'href="{address}"' in page
    assert "Alignment: chain-aligned is rated 1.12 points higher than learner" in said
    for who in ("agents of the model that learns", "all agents"):
        assert f"Alignment , drafts {who}" in said or f"Alignment, drafts {who}" in said
    listed = texts(client.get("/admin/alignments").text)
    assert "4 of 4" in listed
    assert "chain-aligned" in listed


def test_one_whose_training_failed_says_why_and_goes_on_from_there(
    client: FlaskClient,
    engine: Engine,
    settings: Settings,
    enqueued_jobs: list[tuple[str, int]],
) -> None:
    number = make_alignment(engine, "learner", "chain", **SMALL)
    part = carry_on(engine, settings, number, 1)
    assert part is not None
    assert part.kind is TRAINING
    with writing(engine) as session:
        fail(TRAINING.get(session, part.number), "no memory left; set batch lower")
    carry_on(engine, settings, number, 0)
    page = client.get(f"/admin/alignments/{number}").text
    said = texts(page)
    assert f"It stopped: training {part.number}: no memory left; set batch lower" in said
    assert "then press Resume: earlier steps are kept" in said
    assert "2. Training failed" in said
    assert "1. Society done" in said
    assert client.post(f"/admin/alignments/{number}", data={"action": "resume"}).status_code == 303
    assert row_of(engine, number).status == states.WAITING
    assert enqueued_jobs == [("alignment", number)]
    assert client.post(f"/admin/alignments/{number}", data={"action": "cancel"}).status_code == 303
    with reading(engine) as session:
        assert TRAINING.get(session, part.number).status == states.CANCELLED


def test_an_open_page_is_told_how_far_the_job_is_that_it_waits_for(engine: Engine, settings: Settings) -> None:
    number = make_alignment(engine, "learner", "chain", **SMALL)
    [watched] = [each for each in watched_kinds() if each.kind is ALIGNMENT]

    def told() -> Any:
        with reading(engine) as session:
            return watched.read(session, [number], 0.0)[number]

    seen = [told()]
    for jobs in (0, 1, 3):
        carry_on(engine, settings, number, jobs)
        seen.append(told())
    assert [each["of"] for each in seen] == [None, 48, None, 4]
    assert seen[-1]["status"] == "done"
    assert len({each["at"] for each in seen}) == len(seen)
