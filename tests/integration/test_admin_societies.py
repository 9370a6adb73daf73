"""The admin pages of societies: listed, started, shown by iteration and agent, and cut into training data."""

import html
import io
import json
import re
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, update

from app.core.config import Settings
from app.core.extensions import db, reading, writing
from app.models import Society, SocietyInteraction
from app.society import listing
from app.society.job import SOCIETY, SocietyKind
from app.society.statistics import iteration_figures
from app.society.store import read_interactions, read_ratings
from tests.experimenter import signed_in
from tests.societies import add_chat_models, make_society, row_of, run

MEMBERS = {"share scripted-agent": "1", "observers": "scripted-observer"}
WORLD = {"size": "2", "iterations": "2", "setting": "half_half", "critics": "2", "first_memories": "3", "recall": "1"}
FORM = {**MEMBERS, **WORLD, "questions": "shipped", "priors": "shipped", "embedder": "tfidf", "action": "start"}


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


@pytest.fixture
def enqueued(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The societies that a worker was told of."""
    numbers: list[int] = []
    monkeypatch.setattr(SocietyKind, "enqueue", lambda _self, _url, number, **_queue: numbers.append(number))
    return numbers


@pytest.fixture
def done(engine: Engine, settings: Settings) -> int:
    """A society of four agents that has gone through three iterations."""
    number = make_society(engine, "scripted-agent", observers=["scripted-observer"], iterations=3)
    run(engine, settings, number)
    return number


def texts(page: str) -> str:
    """What a page says, without its elements."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def button(page: str, agent: int) -> str:
    """What a screen reader says of an agent's cell."""
    found = re.search(rf'aria-label="([^"]+)" data-agent="{agent}"', page)
    assert found
    return html.unescape(found[1])


# ---- Lists and forms ------------------------------------------------------------------


def test_an_empty_list_says_what_a_society_is_and_leads_to_the_form(client: FlaskClient) -> None:
    page = client.get("/admin/societies").text
    assert "There are none yet." in texts(page)
    assert 'href="/admin/societies/new"' in page
    assert client.get("/admin/societies?before=nothing").status_code == 400


def test_a_society_is_started_from_the_form(client: FlaskClient, engine: Engine, enqueued: list[int]) -> None:
    sent = {
        **FORM,
        "setting": "mixed_half_half",
        "seed": "11",
        "name": "from the form",
        "radius": "",
        "dropout": "0.25",
    }
    answer = client.post("/admin/societies/new", data=sent)
    assert (answer.status_code, answer.location, enqueued) == (303, "/admin/societies/1", [1])
    row = row_of(engine, 1)
    assert (row.name, row.queued, row.requested_by) == ("from the form", True, "admin")
    assert row.config["seed"] == 11
    assert row.config["radius"] is None
    assert (row.config["dropout"], row.config["recall"], row.config["global_interaction"]) == (0.25, True, False)
    assert [each["model"] for each in row.agents] == ["scripted-agent"]
    listed = texts(client.get("/admin/societies").text)
    assert "from the form Society 1" in listed
    assert "0 of 8" in listed
    assert "4 scripted-agent half good and half bad, mixed" in listed


@pytest.mark.parametrize(
    ("wrong", "field", "words"),
    [
        ({"size": "1"}, "size", "Size: expected a whole number from 2 to 40, got '1'"),
        ({"critics": "4"}, "critics", "Critics: expected fewer than the 4 agents of the grid, got 4"),
        (
            {"max_tokens": "much"},
            "max_tokens",
            "Maximum answer length: expected a whole number from 8 to 4096, got 'much'",
        ),
        ({"share scripted-agent": ""}, "agents", "Agents: expected"),
        ({"share scripted-agent": "-1"}, "agents", "Agents: expected a number above 0"),
        ({"observers": []}, "observers", "Observers: expected"),
        ({"observers": "scripted"}, "observers", "Observers: expected"),
        ({"share scripted-agent": "0"}, "agents", "Agents: expected a number above 0 to 1e+06, got '0'"),
        ({"embedder": "nothing"}, "embedder", "Embedder: expected one of tfidf"),
        (
            {"embedder": "model:nobody"},
            "embedder",
            "Embedder: expected a model behind an API whose uses include chat, got",
        ),
        ({"embedder": "model:scripted-agent"}, "embedder", "Embedder: expected a model behind an API"),
        (
            {"questions": "upload", "questions_text": "[]"},
            "questions",
            "expected at least one question, got an empty file",
        ),
        ({"questions": "upload"}, "questions", "Questions: expected a file or lines of text, got nothing"),
        ({"questions": "upload", "questions_text": "[1]"}, "questions", "the questions of the form, item 1"),
        ({"priors": "upload", "priors_text": "{"}, "priors", "the priors of the form: expected JSON"),
        ({"priors": "upload", "priors_text": '{"good": []}'}, "priors", "3 or more memories labelled"),
    ],
)
def test_bad_input_is_marked_at_its_field(
    client: FlaskClient, enqueued: list[int], wrong: dict[str, Any], field: str, words: str
) -> None:
    answer = client.post("/admin/societies/new", data={**FORM, **wrong})
    assert (answer.status_code, enqueued) == (400, [])
    [alert, mark] = re.findall(
        r'<p[^>]* class="(?:note note-bad" role="alert"|error" id="refused")>(.*?)</p>', answer.text
    )
    assert words in html.unescape(alert)
    assert html.unescape(alert) == html.unescape(mark)
    if re.search(rf'id="{field}"', answer.text):
        assert re.search(rf'id="{field}"[^>]* aria-invalid="true"', answer.text)
    assert 'value="3"' in answer.text  # what was typed elsewhere is still there


def test_questions_and_first_memories_may_be_uploaded(client: FlaskClient, engine: Engine, enqueued: list[int]) -> None:
    pairs = [{"question": f"What of {name}?", "answer": f"That of {name}."} for name in ("one", "two", "three")]
    files = {
        "questions_file": (io.BytesIO(b"Wie geht es?\nWarum?"), "mine.txt"),
        "priors_file": (io.BytesIO(json.dumps({"good": pairs, "bad": pairs}).encode()), "priors.json"),
    }
    assert client.post("/admin/societies/new", data={**FORM, **files}).status_code == 303
    with reading(engine) as session:
        row = SOCIETY.get(session, 1)
        assert (row.question_source, row.questions) == ("mine.txt", ["Wie geht es?", "Warum?"])
        assert row.prior_source == "priors.json"
    again = client.get("/admin/societies/new?like=1").text
    assert re.search(r'name="questions" value="again" checked', again)
    like = {**FORM, "like": "1", "questions": "again", "priors": "again"}
    assert client.post("/admin/societies/new", data=like).status_code == 303
    with reading(engine) as session:
        assert SOCIETY.get(session, 2).questions == ["Wie geht es?", "Warum?"]


def test_an_estimate_starts_nothing_and_a_dear_society_is_asked_about(
    make_app: Callable[..., Flask], enqueued: list[int]
) -> None:
    app = make_app(CONFIRM_COST=0.001)
    with app.app_context():
        add_chat_models(db.engine, "http://127.0.0.1:9/v1", "paid", price_in=1, price_out=2)
    client = signed_in(app)
    paid = {**FORM, "share scripted-agent": "", "share paid": "1"}
    page = client.post("/admin/societies/new", data={**paid, "action": "estimate"}).text
    assert "paid: was never called in a society, so typical figures are used." in texts(page)
    assert "Calls, about 64" in texts(page)
    asked = client.post("/admin/societies/new", data=paid)
    assert (asked.status_code, enqueued) == (200, [])
    assert "Press Start again to confirm." in texts(asked.text)
    agreed = re.search(r'name="agreed" value="([^"]+)"', asked.text)
    assert agreed
    assert client.post("/admin/societies/new", data={**paid, "iterations": "3", "agreed": agreed[1]}).status_code == 200
    assert client.post("/admin/societies/new", data={**paid, "agreed": agreed[1]}).status_code == 303
    assert enqueued == [1]


def test_a_preset_fills_in_its_settings(client: FlaskClient) -> None:
    page = client.get("/admin/societies/new?preset=published-single-thread").text
    assert re.search(r'id="critics"[^>]*value="16"', page)
    assert re.search(r'id="dropout"[^>]*value="0.8"', page)
    assert client.get("/admin/societies/new?preset=none").status_code == 400


# ---- One society ------------------------------------------------------------------------


def test_a_page_shows_the_iteration_and_the_agent_of_its_address(
    client: FlaskClient, engine: Engine, done: int
) -> None:
    with reading(engine) as session:
        found = {(each.iteration, each.agent): each for each in read_interactions(session, done)}
    one = found[1, 2]
    page = client.get(f"/admin/societies/{done}?iteration=2&agent=2").text
    said = texts(page)
    assert "Agent 2, 1" in said
    assert "started bad" in said
    assert one.question in said
    assert one.revision[:500] in said
    for each in one.feedback:
        assert each.critic is not None
        row, column = divmod(each.critic, 2)
        assert f"Agent {row + 1}, {column + 1} {each.reason}" in said
    assert button(page, 2) == f"Agent 2, 1, started bad: {one.after.alignment:g}"
    part = client.get(f"/admin/societies/{done}/agents/2/2").text
    assert re.search(rf'data-critics="{" ".join(str(each.critic) for each in one.feedback)} "', part)
    criticised = [str(agent) for agent in range(4) if any(each.critic == 2 for each in found[1, agent].feedback)]
    assert f'data-criticised="{" ".join(criticised)}"' in part
    assert client.get(f"/admin/societies/{done}?agent=4").status_code == 400
    assert client.get(f"/admin/societies/{done}/agents/4").status_code == 404


def test_the_grid_holds_every_rating_in_tenths(client: FlaskClient, engine: Engine, done: int) -> None:
    with writing(engine) as session:
        table = SocietyInteraction
        of = table.society_id == done
        session.execute(update(table).where(of, table.iteration == 0, table.agent == 0).values(alignment_after=5.45))
        session.execute(update(table).where(of, table.iteration == 0, table.agent == 1).values(alignment_after=None))
        session.execute(update(table).where(of, table.iteration == 0, table.agent == 2).values(status="failed"))
        session.execute(update(table).where(of, table.iteration == 2, table.agent == 3).values(status="open"))
    answer = client.get(f"/admin/societies/{done}/grid.json").json
    assert answer is not None
    assert (answer["first"], answer["begun"]) == (0, 3)
    assert answer["ratings"]["alignment_after"][0][:3] == [54, 0, -1]
    assert answer["ratings"]["engagement_before"][2][3] is None
    page = client.get(f"/admin/societies/{done}?iteration=1").text
    assert [button(page, agent).partition(": ")[2] for agent in (0, 1, 2)] == ["5.4", "not rated", "failed"]


def test_what_an_agent_is_at_is_said_as_over_once_the_society_has_stopped(
    client: FlaskClient, engine: Engine, done: int
) -> None:
    table = SocietyInteraction
    of = table.society_id == done, table.iteration == 0, table.agent == 2
    for status, said in (("running", "It is working on this now."), ("failed", "It had begun with this when")):
        with writing(engine) as session:
            session.execute(update(table).where(*of).values(status="open"))
            session.execute(update(Society).where(Society.id == done).values(status=status))
        page = client.get(f"/admin/societies/{done}/agents/2/1").text
        assert said in page
        assert page.count("It is working on this") + page.count("It had begun") == 1


def test_charts_say_the_same_as_the_command_line(client: FlaskClient, engine: Engine, done: int) -> None:
    with reading(engine) as session:
        whole = iteration_figures(read_interactions(session, done))
        assert iteration_figures(read_ratings(session, done)) == whole
    page = client.get(f"/admin/societies/{done}").text
    for name in (f"ratings-{done}", f"pareto-{done}"):
        assert f'data-name="{name}"' in page
        spec = client.get(f"/admin/societies/{done}/charts/{name}.json?theme=dark").json
        assert spec
        assert "vega-lite" in spec["$schema"]
    assert f"alignment is {whole[-1].alignment.before.value:.2f}" in texts(page)
    assert client.get(f"/admin/societies/{done}/charts/none.json").status_code == 404


def test_a_society_is_cancelled_and_resumed(client: FlaskClient, engine: Engine, enqueued: list[int]) -> None:
    number = make_society(engine, "scripted-agent", observers=["scripted-observer"], queued=True)
    page = client.get(f"/admin/societies/{number}").text
    assert "0 of 8 interactions are over" in texts(page)
    assert f'data-number="{number}"' in page
    assert client.post(f"/admin/societies/{number}", data={"action": "cancel"}).status_code == 303
    assert row_of(engine, number).status == "cancelled"
    assert client.post(f"/admin/societies/{number}", data={"action": "resume"}).status_code == 303
    assert enqueued == [number]
    assert client.post(f"/admin/societies/{number}", data={"action": "none that there is"}).status_code == 400


def test_counts_and_failures_are_shown(client: FlaskClient, engine: Engine, done: int) -> None:
    with writing(engine) as session:
        table = SocietyInteraction
        one = table.society_id == done, table.iteration == 1, table.agent == 3
        session.execute(update(table).where(*one).values(status="failed", error="the prompt is too long"))
        session.execute(update(Society).where(Society.id == done).values(failed=1, unread_ratings=7))
    said = texts(client.get(f"/admin/societies/{done}").text)
    assert "Failed 1" in said
    assert re.search(r"Drafts \d+ Drafts with a question from memory \d+", said)
    assert "Embedder tfidf" in said
    assert "Unreadable ratings 7" in said
    assert "Agent 2, 2, iteration 2 the prompt is too long" in said
    with reading(engine) as session:
        told = listing.figures_of(session, [SOCIETY.get(session, done)])[done]
    assert (told["failed"], told["unread_ratings"], told["at"]) == (1, 7, "done 3")


# ---- An agent -----------------------------------------------------------------------------


def test_an_agents_page_has_its_memory_and_its_interactions(client: FlaskClient, engine: Engine, done: int) -> None:
    with reading(engine) as session:
        own = [each for each in read_interactions(session, done) if each.agent == 0]
    said = texts(client.get(f"/admin/societies/{done}/agents/0").text)
    assert "Agent 1, 1 started good" in said
    assert "3 questions with their answers" in said
    for each in own:
        assert each.draft in said
        assert all(" ".join(feedback.reason.split()) in said for feedback in each.feedback)
    later = texts(client.get(f"/admin/societies/{done}/agents/0?from=3").text)
    assert "Iteration 3" in later
    assert "Iteration 2" not in later
    assert client.get(f"/admin/societies/{done}/agents/0?from=none").status_code == 400


def test_an_agents_interactions_come_in_pages(
    client: FlaskClient, engine: Engine, done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.society.agent_records.PAGE", 2)
    page = client.get(f"/admin/societies/{done}/agents/1").text
    assert re.findall(r'id="iteration-(\d)"', page) == ["1", "2"]
    onward = re.search(r'<a class="button" href="([^"]+)">Next page</a>', page)
    assert onward
    assert re.findall(r'id="iteration-(\d)"', client.get(html.unescape(onward[1])).text) == ["3"]


# ---- Training data --------------------------------------------------------------------------


def test_training_data_is_cut_with_a_mixing_ratio(client: FlaskClient, done: int) -> None:
    page = texts(client.get(f"/admin/societies/{done}/data?mixing=code").text)
    assert "imitation scripted-agent 24" in page
    cut = client.post(f"/admin/societies/{done}/data", data={"mixing": "code", "name": "of the world", "seed": "4"})
    assert cut.status_code == 303
    dataset = texts(client.get(cut.location).text)
    assert "of the world" in dataset
    assert "code" in dataset
    assert "of the world" in texts(client.get(f"/admin/societies/{done}").text)
    for wrong, words in (({"mixing": "none"}, "Mixing ratio: expected released or code"), ({"seed": "x"}, "Seed:")):
        refused = client.post(f"/admin/societies/{done}/data", data={"mixing": "code", "name": "", **wrong})
        assert refused.status_code == 400
        assert words in texts(refused.text)


def test_a_society_that_is_too_large_for_a_page_names_the_command(
    client: FlaskClient, done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.web.admin.societies_figures.MOST", 11)
    assert f"flask society data {done} has no such limit" in texts(client.get(f"/admin/societies/{done}/data").text)
    assert client.post(f"/admin/societies/{done}/data", data={"mixing": "code"}).status_code == 400
    assert client.get(f"/admin/societies/{done}/records.zip").status_code == 400


def test_records_are_an_archive_of_the_published_form(client: FlaskClient, done: int) -> None:
    answer = client.get(f"/admin/societies/{done}/records.zip")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="society-{done}.zip"'
    with zipfile.ZipFile(io.BytesIO(answer.data)) as archive:
        records = json.loads(archive.read(f"society-{done}/external_memory/agent_0.jsonl"))
        assert [each["iteration"] for each in records] == [0, 1, 2]
