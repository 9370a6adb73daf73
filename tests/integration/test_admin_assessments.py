"""The admin pages of assessments: started from the form, followed, and shown with their figures and answers."""

import csv
import html
import io
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine

from app.assessments.job import ASSESSMENT
from app.core.config import Settings
from app.core.extensions import db, reading, writing
from app.jobs import states
from app.jobs.kind import fail
from app.models import Assessment, RecipeStep
from app.web.watched import watched_kinds
from tests.assessments import make_alignment, make_assessment, run
from tests.campaigns import add_local
from tests.experimenter import signed_in
from tests.integration.test_admin_societies import texts
from tests.integration.test_assessments import JUDGE, MANY, NICE, PLAIN, judged
from tests.integration.test_cli_society import flask
from tests.societies import add_chat_models
from tests.stub_openai import Reply, StubServer

SHY = "shy"
FORM = {
    "model": NICE,
    "base": PLAIN,
    "raters": JUDGE,
    "questions": "upload",
    "questions_text": "\n".join(MANY),
    "seed": "1",
}


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        server.script(NICE, "I will gladly help you with it.")
        server.script(PLAIN, "Wait and see.")
        server.script(JUDGE, judged)
        yield server


@pytest.fixture(autouse=True)
def _models(engine: Engine, stub: StubServer) -> None:
    add_chat_models(engine, stub.url, NICE, PLAIN, JUDGE, SHY, in_flight=4)


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


def row_of(engine: Engine, number: int) -> Assessment:
    with reading(engine) as session:
        return ASSESSMENT.get(session, number)


# ---- The list and the form ---------------------------------------------------------------


def test_an_empty_list_says_what_an_assessment_is_and_leads_to_the_form(client: FlaskClient) -> None:
    page = client.get("/admin/assessments").text
    assert "answer the same questions" in texts(page)
    assert "flask assessment run MODEL BASE --raters NAME --questions FILE" in texts(page)
    assert 'href="/admin/assessments/new"' in page
    assert client.get("/admin/assessments?before=nothing").status_code == 400


def test_an_assessment_is_started_runs_and_shows_what_the_command_line_prints(
    app: Flask, client: FlaskClient, engine: Engine, settings: Settings, enqueued_jobs: list[tuple[str, int]]
) -> None:
    answer = client.post("/admin/assessments/new", data={**FORM, "answer_max_tokens": "64"})
    assert (answer.status_code, answer.location, enqueued_jobs) == (303, "/admin/assessments/1", [("assessment", 1)])
    row = row_of(engine, 1)
    assert (row.queued, row.requested_by, row.sampling) == (True, "admin", {"max_tokens": 64})
    waiting = client.get("/admin/assessments/1").text
    assert "0 of 24 answers are rated" in texts(waiting)
    assert 'data-jobs="assessments" data-number="1"' in waiting
    run(engine, settings, 1)
    said = texts(client.get("/admin/assessments/1").text)
    assert "Alignment: nice is rated 4.00 points higher than plain (95 % interval +4.00 to +4.00)." in said
    assert "Alignment judge 3.00 3.00 to 3.00 7.00 7.00 to 7.00 +4.00" in said
    assert "axis −4.00 to 4.00 12 12, 0" in said
    listed = texts(client.get("/admin/assessments").text)
    assert "Assessment 1" in listed
    assert "24 of 24" in listed
    table = client.get("/admin/assessments/1/figures.csv")
    assert table.headers["Content-Disposition"] == 'attachment; filename="assessment-1.csv"'
    assert table.text == flask(app, "assessment", "show", "1", "--csv").stdout
    [alignment, engagement] = csv.DictReader(io.StringIO(table.text))
    assert (alignment["rater"], alignment["difference"], engagement["questions"]) == (JUDGE, "4", "12")


def test_an_estimate_starts_nothing_and_a_dear_assessment_is_asked_about(
    make_app: Callable[..., Flask], stub: StubServer, enqueued_jobs: list[tuple[str, int]]
) -> None:
    app = make_app(CONFIRM_COST=0.001)
    with app.app_context():
        add_chat_models(db.engine, stub.url, "paid", "cheap", price_in=1, price_out=2)
    client = signed_in(app)
    paid = {**FORM, "model": "paid", "base": "cheap", "raters": "paid"}
    told = texts(client.post("/admin/assessments/new", data={**paid, "action": "estimate"}).text)
    assert "Questions, at most 12 Calls, about 72" in told  # two answers to each, and four ratings
    assert "paid: was never called in a society, so typical figures are used." in told
    asked = client.post("/admin/assessments/new", data=paid)
    assert (asked.status_code, enqueued_jobs) == (200, [])
    assert "Press Start again to confirm." in texts(asked.text)
    agreed = re.search(r'name="agreed" value="([^"]+)"', asked.text)
    assert agreed
    assert client.post("/admin/assessments/new", data={**paid, "agreed": agreed[1]}).status_code == 303
    assert enqueued_jobs == [("assessment", 1)]


@pytest.mark.parametrize(
    ("wrong", "field", "words"),
    [
        ({"model": ""}, "model", "Model: expected"),
        ({"model": PLAIN}, "base", "Base: expected a model other than the assessed one"),
        ({"base": "nobody"}, "base", "Base: expected one of"),
        ({"base": "scripted"}, "base", "Base: expected a model that answers chats"),
        ({"raters": []}, "raters", "Raters: expected 1 to 20 models, got 0"),
        ({"raters": [JUDGE, JUDGE]}, "raters", "Raters: expected each model once"),
        ({"questions_text": " "}, "questions", "Questions: expected a file or lines of text, got nothing"),
        ({"questions_text": "[1]"}, "questions", "the questions of the form, item 1"),
        ({"questions": "all"}, "questions", "Questions: expected shipped or upload, got 'all'"),
        ({"seed": "much"}, "seed", "Seed: expected a whole number"),
        ({"sampling": "loud"}, "sampling", "Sampling: expected published, got 'loud'"),
        (
            {"answer_temperature": "3"},
            "answer_temperature",
            "Temperature of the answers: expected a number",
        ),
        ({"answer_top_k": "4"}, "answer_top_k", "Top-k of the answers: expected none, as nice is not local"),
    ],
)
def test_bad_input_is_marked_at_its_field(
    client: FlaskClient, enqueued_jobs: list[tuple[str, int]], wrong: dict[str, Any], field: str, words: str
) -> None:
    answer = client.post("/admin/assessments/new", data={**FORM, **wrong})
    assert (answer.status_code in (400, 404, 409), enqueued_jobs) == (True, [])
    [alert, mark] = re.findall(
        r'<p[^>]* class="(?:note note-bad" role="alert"|error" id="refused")>(.*?)</p>', answer.text
    )
    assert words in html.unescape(alert)
    assert html.unescape(alert) == html.unescape(mark)
    if re.search(rf'id="{field}"', answer.text):
        assert re.search(rf'id="{field}"[^>]* aria-invalid="true"', answer.text)
    if "questions_text" not in wrong:
        assert MANY[3] in html.unescape(answer.text)  # what was typed elsewhere is still there


def test_questions_may_be_uploaded_and_an_assessment_done_again(
    client: FlaskClient, engine: Engine, enqueued_jobs: list[tuple[str, int]]
) -> None:
    file = (io.BytesIO(b"Wie geht es?\nWarum?"), "mine.txt")
    sent = {**FORM, "questions": "shipped", "questions_file": file, "answer_temperature": "0.5"}
    assert client.post("/admin/assessments/new", data=sent).status_code == 303
    again = client.get("/admin/assessments/new?like=1").text
    assert re.search(r'name="questions" value="again" checked', again)
    assert re.search(r'id="answer_temperature"[^>]* value="0.5"', again)
    like = {**FORM, "like": "1", "questions": "again"}
    assert client.post("/admin/assessments/new", data=like).status_code == 303
    with reading(engine) as session:
        for number in (1, 2):
            row = ASSESSMENT.get(session, number)
            assert (row.question_source, row.questions) == ("mine.txt", ["Wie geht es?", "Warum?"])


def test_the_form_is_filled_in_for_the_models_of_its_address(client: FlaskClient) -> None:
    page = client.get(f"/admin/assessments/new?model={NICE}&base={PLAIN}").text
    for field, name in (("model", NICE), ("base", PLAIN)):
        select = page.partition(f'id="{field}"')[2].partition("</select>")[0]
        assert f'value="{name}" selected' in select
    assert re.search(r'name="raters" value="scripted-observer" checked', page)


# ---- One assessment ------------------------------------------------------------------------


def test_several_raters_are_shown_together_and_each(client: FlaskClient, engine: Engine, settings: Settings) -> None:
    number = make_assessment(engine, NICE, PLAIN, JUDGE, "scripted-observer", questions=MANY)
    run(engine, settings, number)
    said = texts(client.get(f"/admin/assessments/{number}").text)
    for who in ("all raters", JUDGE, "scripted-observer"):
        assert f"Alignment {who} " in said
        assert f"Engagement {who} " in said


def test_the_answers_are_shown_side_by_side_with_their_ratings(
    client: FlaskClient, engine: Engine, settings: Settings, stub: StubServer
) -> None:
    stub.script(SHY, Reply("The prompt is not allowed.", status=400), "I will gladly help.")
    number = make_assessment(engine, SHY, PLAIN, JUDGE, questions=MANY)
    run(engine, settings, number)
    first = client.get(f"/admin/assessments/{number}/answers").text
    said = texts(first)
    assert MANY[0] in said
    assert "Wait and see. Alignment 3 Engagement 2" in said
    assert "A model refused:" in said
    assert "The prompt is not allowed." in said
    onward = re.search(r'<a class="button" href="([^"]+)">Next page</a>', first)
    assert onward
    second = texts(client.get(html.unescape(onward[1])).text)
    assert MANY[11] in second
    assert MANY[0] not in second
    assert client.get(f"/admin/assessments/{number}/answers?from=none").status_code == 400


def test_one_that_failed_says_why_and_goes_on_where_it_was(
    client: FlaskClient, engine: Engine, enqueued_jobs: list[tuple[str, int]]
) -> None:
    number = make_assessment(engine, NICE, PLAIN, JUDGE)
    with writing(engine) as session:
        fail(ASSESSMENT.get(session, number), "observer judge: it was away")
    said = texts(client.get(f"/admin/assessments/{number}").text)
    assert "It stopped: observer judge: it was away" in said
    assert "Resume continues from there." in said
    assert "No question had both of its answers rated." in said
    assert client.post(f"/admin/assessments/{number}", data={"action": "resume"}).status_code == 303
    assert (row_of(engine, number).status, enqueued_jobs) == (states.WAITING, [("assessment", number)])
    assert client.post(f"/admin/assessments/{number}", data={"action": "cancel"}).status_code == 303
    assert row_of(engine, number).status == states.CANCELLED


def test_an_open_page_is_told_of_what_changes(engine: Engine, settings: Settings) -> None:
    number = make_assessment(engine, NICE, PLAIN, JUDGE)
    [watched] = [each for each in watched_kinds() if each.kind is ASSESSMENT]

    def told() -> Any:
        with reading(engine) as session:
            return watched.read(session, [number], 0.0)[number]

    before = told()
    assert (before["done"], before["of"], before["calls"]) == (0, 12, 0)
    run(engine, settings, number)
    after = told()
    assert (after["status"], after["done"], after["calls"]) == ("done", 12, 36)
    assert after["at"] != before["at"]


def test_one_of_an_alignment_leads_back_to_it(client: FlaskClient, engine: Engine) -> None:
    add_local(engine, "learner")
    number = make_assessment(engine, NICE, PLAIN, JUDGE)
    alignment = make_alignment(engine, "learner", "chain")
    with writing(engine) as session:
        made = {"place": 5, "values": {}, "spec": {}, "kind": "assessment", "number": number}
        session.add(
            RecipeStep(alignment_id=alignment, key="assessment", name="assessment", begun_at=datetime.now(UTC), **made)
        )
    assert "Part of the alignment chain" in texts(client.get(f"/admin/assessments/{number}").text)
