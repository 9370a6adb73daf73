"""A model's row is what played: what can be edited, what makes a clone, and what is archived or removed."""

import json
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, select

from app.campaigns.job import CAMPAIGN
from app.core.extensions import reading, writing
from app.jobs import states
from app.model_calls import request_runner
from app.model_calls.request_lifecycle import take_forgotten
from app.models import LanguageModel, MatchRow, ModelRequest, SeatRow
from app.registry import add_api_model
from tests.campaigns import add_local, campaign_of
from tests.experimenter import signed_in
from tests.model_requests import generation_of, latest
from tests.rounds import make_round, play
from tests.shell import Finished
from tests.stub_openai import StubServer

OPTIONS = {"model": "stub-negotiator", "base_url": "http://127.0.0.1:9/v1", "key_env": "", "temperature": None}


@pytest.fixture
def client(app: Flask, engine: Engine) -> FlaskClient:
    add(engine, "mine", label="Robin")
    return signed_in(app)


def add(engine: Engine, name: str, label: str | None = None, **options: Any) -> None:
    with writing(engine) as session:
        add_api_model(session, name, label, ["negotiation"], OPTIONS | options)


def found(engine: Engine, name: str = "mine") -> LanguageModel | None:
    with reading(engine) as session:
        return session.scalar(select(LanguageModel).where(LanguageModel.name == name))


def page_of(engine: Engine, name: str = "mine") -> str:
    row = found(engine, name)
    assert row is not None
    return f"/admin/models/{row.id}"


# ---- On the pages --------------------------------------------------------------


def test_prices_limits_and_notes_are_edited_on_the_row_that_played(client: FlaskClient, engine: Engine) -> None:
    form = {"action": "edit", "label": "Kim", "price_in": "0.15", "price_out": "0.6", "in_flight": "4", "timeout": "30"}
    assert client.post(page_of(engine), data={**form, "notes": "paid by the lab\r\nuntil May"}).status_code == 303
    row = found(engine)
    assert row is not None
    assert (row.label, row.notes) == ("Kim", "paid by the lab\nuntil May")
    assert row.options == OPTIONS | {"price_in": 0.15, "price_out": 0.6, "in_flight": 4, "timeout": 30}
    assert client.post(page_of(engine), data={"action": "edit", "label": "Kim"}).status_code == 303  # all left empty
    assert found(engine).options == OPTIONS  # type: ignore[union-attr]


def test_what_is_out_of_range_is_said_at_its_field_and_nothing_changes(client: FlaskClient, engine: Engine) -> None:
    form = {"action": "edit", "label": "Kim", "retries": "99", "notes": "typed"}
    answer = client.post(page_of(engine), data=form)
    assert (answer.status_code, "Retries: expected a whole number from 0 to 20" in answer.text) == (400, True)
    field = answer.text.partition('<input id="retries"')[2].partition(">")[0]
    assert 'aria-invalid="true"' in field
    assert 'value="99"' in field
    assert ">typed</textarea>" in answer.text
    assert found(engine).label == "Robin"  # type: ignore[union-attr]


def test_another_temperature_makes_a_clone_that_knows_where_it_comes_from(client: FlaskClient, engine: Engine) -> None:
    form = client.get(f"{page_of(engine)}/clone").text
    assert 'value="http://127.0.0.1:9/v1"' in form
    assert form.partition('id="temperature"')[2].partition(">")[0].find('value="none"') > 0  # not sent, as before
    given = {"name": "calm", "model": "stub-negotiator", "base_url": "http://127.0.0.1:9/v1", "key_env": "",
             "temperature": "0.2", "prompt_style": "compact"}  # fmt: skip
    answer = client.post(f"{page_of(engine)}/clone", data=given)
    assert answer.status_code == 303
    row, original = found(engine, "calm"), found(engine)
    assert row is not None
    assert original is not None
    assert (row.options["temperature"], row.prompt_style, row.cloned_from_id) == (0.2, "compact", original.id)
    assert original.options == OPTIONS
    page = client.get(answer.location).text
    assert "A clone of" in page
    assert "A worker was asked" in page
    taken = client.post(f"{page_of(engine)}/clone", data=given)
    assert (taken.status_code, "Name: expected one that is not taken" in taken.text) == (409, True)


def test_an_archived_model_leaves_the_lists_and_comes_back(client: FlaskClient, engine: Engine) -> None:
    where = page_of(engine)
    assert client.post(where, data={"action": "archive"}).status_code == 303
    assert where not in client.get("/admin/models").text
    assert "In the archive: 1" in client.get("/admin/models").text
    assert where in client.get("/admin/models?archived=1").text
    assert '<option value="mine"' not in client.get("/admin/rounds/new?game=negotiation").text
    for at, sent in (("", {"action": "rounds-on"}), ("", {"action": "test"}), ("/play", {"game": "negotiation"})):
        refused = client.post(where + at, data=sent)
        assert (refused.status_code, "expected one that is not archived" in refused.text) == (409, True), sent
    assert "Play Deal or No Deal" not in client.get(where).text
    assert client.post(where, data={"action": "restore"}).status_code == 303
    assert client.post(where, data={"action": "rounds-on"}).status_code == 303
    assert where in client.get("/admin/models").text
    assert client.post("/admin/models/1", data={"action": "archive"}).status_code == 409  # the baseline


def test_only_a_model_that_nothing_refers_to_is_removed(client: FlaskClient, engine: Engine, app: Flask) -> None:
    add(engine, "played")
    with writing(engine) as session:
        scripted = session.scalar(select(LanguageModel.id).where(LanguageModel.name == "scripted"))
    number = make_round(engine, "scripted", matches=2)
    play(engine, app.config["SETTINGS"], number)
    with writing(engine) as session:
        row = session.scalar(select(LanguageModel).where(LanguageModel.name == "played"))
        assert row is not None
        for seat in session.scalars(select(SeatRow).where(SeatRow.language_model_id == scripted)):
            seat.language_model_id = row.id
    assert "Remove it" not in client.get(page_of(engine, "played")).text
    refused = client.post(page_of(engine, "played"), data={"action": "remove"})
    assert (refused.status_code, "archive" in refused.text) == (409, True)
    client.post(page_of(engine), data={"action": "test"})  # whose request goes with it
    assert "Remove it" in client.get(page_of(engine)).text
    assert client.post(page_of(engine), data={"action": "remove"}).location == "/admin/models"
    assert found(engine) is None


@pytest.mark.parametrize("named", [{"play_with": {"partner": 0.5}}, {"partners": ["partner"]}, {"teacher": "partner"}])
def test_a_model_that_a_campaign_only_names_is_removed_once_that_is_done(
    client: FlaskClient, engine: Engine, named: dict[str, Any]
) -> None:
    for name in ("base", "partner"):
        add_local(engine, name)
    number = campaign_of(engine, "base", **named)
    assert "Remove it" not in client.get(page_of(engine, "partner")).text
    assert client.post(page_of(engine, "partner"), data={"action": "remove"}).status_code == 409
    with writing(engine) as session:
        CAMPAIGN.get(session, number).status = states.DONE
    assert client.post(page_of(engine, "partner"), data={"action": "remove"}).location == "/admin/models"


def test_an_experimenter_plays_a_model_that_people_are_not_offered(client: FlaskClient, engine: Engine) -> None:
    page = client.get(page_of(engine)).text
    assert "Play Deal or No Deal" in page
    assert "Play Adversarial Taboo" not in page
    started = client.post(f"{page_of(engine)}/play", data={"game": "negotiation"})
    assert started.status_code == 303
    assert client.get(started.location).status_code == 200
    with reading(engine) as session:
        seats = session.scalars(select(SeatRow).order_by(SeatRow.kind)).all()
        assert [(seat.kind, seat.language_model_id) for seat in seats] == [
            ("model", found(engine).id), ("person", None),  # type: ignore[union-attr]
        ]  # fmt: skip
    assert client.post(f"{page_of(engine)}/play", data={"game": "taboo"}).status_code == 409
    assert client.application.test_client().post(f"{page_of(engine)}/play", data={}).status_code == 404
    with reading(engine) as session:
        assert len(session.scalars(select(MatchRow.id)).all()) == 1


# ---- On the command line ---------------------------------------------------------


@pytest.fixture
def run(flask: Callable[..., Finished]) -> Callable[..., Finished]:
    return lambda *arguments: flask("model", *arguments)


def test_the_command_line_edits_clones_archives_and_removes(run: Callable[..., Finished], engine: Engine) -> None:
    add(engine, "mine")
    edited = run("edit", "mine", "--price-in", "2", "--notes", "the lab's", "--json")
    assert (edited.exit_code, json.loads(edited.stdout)["options"]["price_in"]) == (0, 2)
    back = run("edit", "mine", "--price-in", "none", "--json")
    assert "price_in" not in json.loads(back.stdout)["options"]
    nothing = run("edit", "mine")
    assert (nothing.exit_code, nothing.stderr.count("\n")) == (2, 1)
    cloned = run("clone", "mine", "calm", "--temperature", "0.2", "--json")
    assert (cloned.exit_code, json.loads(cloned.stdout)["options"]["temperature"]) == (0, 0.2)
    wrong = run("clone", "mine", "hot", "--temperature", "3")
    assert (wrong.exit_code, found(engine, "hot")) == (2, None)
    assert "temperature: expected a number from 0 to 2" in wrong.stderr
    kept = run("remove", "mine")
    assert (kept.exit_code, "flask model archive mine" in kept.stderr) == (2, True)  # calm is its clone
    assert run("archive", "mine").exit_code == 0
    assert "mine" not in run("list").stdout
    assert "nothing (archived)" in run("list", "--archived").stdout
    assert run("set", "mine", "--rounds", "on").exit_code == 2
    assert run("restore", "mine").exit_code == 0
    assert run("set", "mine", "--rounds", "on").exit_code == 0
    assert run("remove", "calm").exit_code == 0
    assert found(engine, "calm") is None


def test_a_model_is_asked_anything_and_the_call_is_kept(
    run: Callable[..., Finished], engine: Engine, stub: StubServer
) -> None:
    stub.script("oracle", "Forty-two.")
    add(engine, "mine", model="oracle", base_url=stub.url, temperature=0.9, max_tokens=99)
    answered = run("ask", "mine", "What is it?", "--system", "Be brief.", "--temperature", "0", "--max-tokens", "7")
    assert (answered.exit_code, answered.stdout) == (0, "Forty-two.\n")
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is it?"}]
    body = stub.requests[0].body
    assert (body["messages"], body["temperature"], body["max_tokens"]) == (chat, 0, 7)
    with reading(engine) as session:
        call = generation_of(session, latest(engine))
        assert call is not None
        assert (call.match_id, call.prompt, call.text) == (None, chat, "Forty-two.")
        assert (call.sampling["temperature"], call.sampling["max_tokens"]) == (0, 7)
    run("ask", "mine", "Again?")
    again = stub.requests[1].body
    assert (again["temperature"], again["max_tokens"]) == (0.9, 99)  # its own
    failed = run("ask", "scripted", "Are you there?")
    assert (failed.exit_code, failed.stderr.count("\n")) == (2, 1)
    assert "expected one that takes calls, got scripted" in failed.stderr
    refused = run("ask", "mine", "Which?", "--top-k", "3")
    assert (refused.exit_code, "top_k: expected none for a model behind an API" in refused.stderr) == (2, True)
    assert run("ask", "mine", "hot?", "--temperature", "9").exit_code == 2
    assert len(stub.requests) == 2


def test_a_call_that_is_interrupted_is_not_made_once_more_by_a_worker(
    app: Flask, engine: Engine, stub: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(engine, "mine", base_url=stub.url)
    monkeypatch.setattr(request_runner.asyncio, "run", interrupted)
    with app.app_context():
        asked = app.test_cli_runner().invoke(args=["model", "ask", "mine", "Are you there?"])
    assert asked.exit_code != 0
    with writing(engine) as session:
        request = session.get_one(ModelRequest, latest(engine))
        assert (request.status, request.error) == ("failed", "interrupted")
        request.created_at -= timedelta(minutes=1)
        session.flush()
        assert list(take_forgotten(session, 60)) == []


def interrupted(call: Coroutine[Any, Any, Any]) -> None:
    """What asyncio.run does when somebody presses Ctrl-C."""
    call.close()
    raise KeyboardInterrupt
